"""A group of very many members."""

from typing import Any

import pytest

from factbook.scim import patch, store
from factbook.scim.store import ScimRow
from factbook.storage import Transaction
from tests.scim.provisioning import GROUPS, Provider, ids, members_of, place_of
from tests.service import NOON, Service

pytestmark = pytest.mark.both_databases


def rows(count: int) -> list[ScimRow]:
    """Users, stored without the calls that made them."""
    blank = [
        ScimRow(f"id-{number:05}", "User", "", "", "", True, "{}", "", "", 1, NOON, NOON)
        for number in range(count)
    ]
    names = [{"userName": f"person-{number}@example.com"} for number in range(count)]
    refs = [f"user:default/person-{number}" for number in range(count)]
    return [
        store.replace_attributes(row._replace(ref=ref), resource)
        for row, ref, resource in zip(blank, refs, names, strict=True)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("many", [1_000, pytest.param(10_000, marks=pytest.mark.system)])
async def test_very_many_members_come_at_once_and_go_one_by_one(
    service: Service, many: int
) -> None:
    provider, people = await Provider.at(service), rows(many)

    def seed(transaction: Transaction) -> None:
        store.save_rows(transaction, people)

    await service.state.database.write(seed)
    members = [{"value": row.id} for row in people]
    team = await provider.make(GROUPS, displayName="Everyone", members=members)
    assert len(team["members"]) == many
    assert len(await members_of(service, "group:default/everyone")) == many
    one = {"op": "remove", "path": 'members[value eq "id-00007"]'}
    assert len(ids(await provider.patched(team, one))) == many - 1
    gone = await service.catalog("user:default/person-7")
    assert gone is not None
    assert gone["spec"]["memberOf"] == []
    shown = await provider.http.get(place_of(team), params={"excludedAttributes": "members"})
    assert len(shown.content) < 1000


def test_a_change_of_a_member_does_not_read_the_others() -> None:
    """The work is counted in members that are looked at, not in seconds."""
    looked = 0

    class Member(dict[str, Any]):
        def get(self, *names: Any) -> Any:
            nonlocal looked
            looked += 1
            return super().get(*names)

    members = [Member(value=str(number)) for number in range(1_000)]
    removals = [
        {"op": "remove", "path": f'members[value eq "{number}"]'} for number in range(0, 1_000, 2)
    ]
    changes = patch.parse_operations({"Operations": removals})
    after = patch.apply_operations("Group", {"displayName": "Team", "members": members}, changes)
    assert len(after["members"]) == 500
    assert looked < 2_000
