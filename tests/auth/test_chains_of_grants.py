"""People who invite, give roles and make tokens that make tokens: nobody gives what they lack."""

import json
import re
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import httpx2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from factbook.auth import permissions
from factbook.auth.permissions import ROLES, TOKEN_MANAGE, add_included
from tests.service import Service
from tests.web.visiting import Browser, signed_in

PEOPLE = "/administration/people"
ACCESS = "/api/access/v1/tokens"
TOKENS = "/administration/account/api-access/tokens"
NUMBERS = st.integers(0, 9)
SOME = st.sets(st.sampled_from(sorted(permissions.PERMISSION_NAMES)), min_size=1, max_size=4)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("make"), NUMBERS, SOME),
        st.tuples(st.just("derive"), NUMBERS, SOME),
        st.tuples(st.just("invite"), NUMBERS, st.sampled_from(list(ROLES))),
        st.tuples(st.just("promote"), NUMBERS, NUMBERS, st.sampled_from(list(ROLES))),
    ),
    min_size=3,
    max_size=10,
)
_people = count()


@dataclass
class Grants:
    """What there is after some steps: people with their roles, and tokens with their values."""

    service: Service
    names: list[str] = field(default_factory=list)
    browsers: list[Browser] = field(default_factory=list)
    values: list[str] = field(default_factory=list)
    requests: Any = field(default_factory=count)

    async def stored(self) -> dict[str, str]:
        """The role of each person."""
        rows = await self.service.state.database.all("SELECT ref, role FROM people")
        return {str(ref): str(role) for ref, role in rows}

    async def tokens(self) -> list[tuple[str, frozenset[str]]]:
        """The owner and the permissions of each token that works."""
        rows = await self.service.state.database.all(
            "SELECT owner, permissions FROM tokens WHERE revoked_at IS NULL"
        )
        return [(owner, frozenset(json.loads(text))) for owner, text in rows]

    async def make(self, who: int, wanted: set[str]) -> httpx2.Response:
        """Have a person make a token by the form."""
        answer = await self.browsers[who].send(
            TOKENS,
            name="made",
            preset="some",
            permission=sorted(wanted),
            expires="90d",
            request=f"request-{next(self.requests)}",
        )
        if answer.status_code == 201:
            self.values += re.findall(r"fbk_\w{46}", answer.text)[:1]
        return answer

    async def derive(self, number: int, wanted: set[str]) -> httpx2.Response | None:
        """Have a token make another one."""
        if not self.values:
            return None
        value = self.values[number % len(self.values)]
        async with self.service.client(value) as http:
            body = {"name": "derived", "permissions": sorted({*wanted, TOKEN_MANAGE})}
            answer = await http.post(ACCESS, json=body)
        if answer.status_code == 201:
            self.values.append(answer.json()["value"])
        return answer


async def begun(service: Service) -> Grants:
    """One person of each role, none of whom an earlier example knew."""
    found = Grants(service)
    for role in ROLES:
        found.names.append(f"p{next(_people)}")
        found.browsers.append(await signed_in(service, found.names[-1], role))
    return found


@pytest.mark.slow
@pytest.mark.spec("roles.nobody-gives-more-than-they-have")
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(STEPS)
async def test_no_chain_of_grants_gives_more_than_its_grantor_has(
    service: Service, steps: list[tuple[Any, ...]]
) -> None:
    grants = await begun(service)
    for kind, number, *rest in steps:
        roles, who = await grants.stored(), number % len(ROLES)
        actor = roles[f"user:default/{grants.names[who]}"]
        if kind == "make":
            answer = await grants.make(who, rest[0])
            assert (answer.status_code == 201) == (rest[0] <= ROLES[actor]), answer.text
        elif kind == "derive":
            await grants.derive(number, rest[0])
        elif kind == "invite":
            answer = await grants.browsers[who].send(
                f"{PEOPLE}/-/invitations", role=rest[0], name=f"p{next(_people)}"
            )
            assert (answer.status_code == 201) == (ROLES[actor] >= ROLES[rest[0]] | {TOKEN_MANAGE})
        else:
            other = grants.names[rest[0] % len(ROLES)]
            await grants.browsers[who].send(f"{PEOPLE}/{other}/role", role=rest[1])
            if TOKEN_MANAGE not in ROLES[actor]:
                assert await grants.stored() == roles
        await none_exceeds_its_owner(grants)


async def none_exceeds_its_owner(grants: Grants) -> None:
    """Fail where a token can do more than the role of its owner allows at this moment."""
    roles = await grants.stored()
    for owner, held in await grants.tokens():
        assert owner not in roles or add_included(held) <= ROLES[roles[owner]], owner
