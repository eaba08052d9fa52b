"""Tokens that make tokens that make tokens: none has more than the one before it."""

from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from factbook.auth import permissions
from factbook.auth.permissions import CATALOG_READ, FACT_WRITE, SET_WRITE, TOKEN_MANAGE
from factbook.auth.tokens import DIMENSIONS
from tests.service import Service

ACCESS = "/api/access/v1/tokens"
NAMES = ("a", "ab", "b", "ba")
PATTERNS = st.sampled_from((*NAMES, "*", "a*", "ab*", "b*"))
NARROWINGS = st.dictionaries(
    st.sampled_from(DIMENSIONS), st.lists(PATTERNS, min_size=1, max_size=2), max_size=3
)
PERMISSIONS = st.sets(st.sampled_from((CATALOG_READ, SET_WRITE, FACT_WRITE)))


class Wish(NamedTuple):
    """A token that is asked for with one of those that were made before."""

    maker: int
    permissions: set[str]
    narrowing: dict[str, list[str]]


WISHES = st.lists(
    st.builds(Wish, st.integers(0, 6), PERMISSIONS, NARROWINGS), min_size=1, max_size=6
)


def reach(token: dict[str, Any]) -> set[tuple[str, str]]:
    """Every permission, and every name of each dimension that a token is not kept from."""
    narrowing = token.get("narrowing", {})
    found = {("permission", name) for name in token["permissions"]}
    for dimension in DIMENSIONS:
        patterns = narrowing.get(dimension, ["*"])
        for name in (*NAMES, "other"):
            if any(
                name == one or (one[-1] == "*" and name.startswith(one[:-1])) for one in patterns
            ):
                found.add((dimension, name))
    return found


@pytest.mark.slow
@pytest.mark.spec("token.narrowed-never-widens")
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(WISHES)
async def test_no_chain_of_tokens_gives_more_than_its_first_has(
    service: Service, wishes: list[Wish]
) -> None:
    first = await service.http.post(
        ACCESS, json={"name": "first", "permissions": sorted(permissions.PERMISSION_NAMES)}
    )
    made = [first.json()]
    for wish in wishes:
        maker = made[wish.maker % len(made)]
        body: dict[str, Any] = {
            "name": "next",
            "permissions": sorted({TOKEN_MANAGE, *wish.permissions}),
        }
        if wish.narrowing:
            body["narrowing"] = wish.narrowing
        async with service.client(maker["value"]) as http:
            answer = await http.post(ACCESS, json=body)
        wished = reach(body)
        if answer.status_code == 201:
            found = answer.json()
            assert reach(found) <= reach(maker)
            assert reach(found) <= wished
            made.append(found)
        else:
            assert answer.status_code == 403, answer.text
            # What is refused would have been more, and not just something else.
            assert not wished <= reach(maker)
