"""Filters of lists over SCIM."""

import pytest

from tests.scim.provisioning import GROUPS, USERS, Provider, problem
from tests.service import Service

pytestmark = pytest.mark.both_databases


async def test_a_resource_is_found_by_its_names_and_ids(service: Service) -> None:
    provider = await Provider.at(service)
    kim = await provider.user("Kim@example.com", externalId="00U1", displayName='Kim "K"')
    lee = await provider.user("lee@example.com", active=False)
    team = await provider.group("Team É", kim)
    for place, text, wanted in (
        (USERS, 'userName eq "kim@EXAMPLE.com"', [kim]),
        (USERS, 'externalId eq "00U1"', [kim]),
        (USERS, 'externalId eq "00u1"', []),
        (USERS, 'displayName eq "kim \\"k\\""', [kim]),
        (USERS, 'urn:ietf:params:scim:schemas:core:2.0:User:userName Eq "lee@example.com"', [lee]),
        (USERS, "active eq False", [lee]),
        (USERS, f'id eq "{lee["id"]}" or userName eq "kim@example.com"', [kim, lee]),
        (USERS, f'id eq "{lee["id"]}" and userName eq "kim@example.com"', []),
        (USERS, '(userName eq "x" or active eq true) and externalId eq "00U1"', [kim]),
        (USERS, f'groups[value eq "{team["id"]}"]', [kim]),
        (GROUPS, 'displayName eq "team é"', [team]),
        (GROUPS, f'id eq "{team["id"]}" and members[value eq "{kim["id"]}"]', [team]),
        (GROUPS, f'id eq "{team["id"]}" and members eq "{lee["id"]}"', []),
        (GROUPS, 'externalId eq ""', []),
        (GROUPS, "displayName eq null", []),
    ):
        found = await provider.found(place, text)
        assert sorted(found) == sorted(one["id"] for one in wanted), text


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_any_other_filter_is_refused_by_its_type(
    service: Service, subtests: pytest.Subtests
) -> None:
    provider = await Provider.at(service)
    for text in [
        'userName sw "k"',
        "userName pr",
        'title eq "Boss"',
        'not (userName eq "k")',
        'userName eq "k" and',
        'userName eq "k',
        "userName eq k",
        '(userName eq "k"',
        'userName eq "k")',
        '"k" eq userName',
        'members[value eq "1" and type eq "User"]',
        "(" * 50 + 'id eq "1"' + ")" * 50,
        'id eq "' + "1" * 2000 + '"',
        r'id eq "\u12"',
        r'id eq "\ud800"',
    ]:
        with subtests.test(text=text):
            answer = await provider.http.get(USERS, params={"filter": text})
            assert problem(answer)[:2] == (400, "invalidFilter")


async def test_a_value_has_the_escapes_of_json(service: Service) -> None:
    provider = await Provider.at(service)
    kim = await provider.user(
        "j\u00fcrgen@x", displayName='a "b" \\ c/d', externalId="one\ttwo \U0001f600"
    )
    for text in (
        r'userName eq "j\u00fcrgen@x"',
        r'userName eq "J\u00FCRGEN@x"',
        r'displayName eq "a \"b\" \\ c\/d"',
        r'externalId eq "one\ttwo \ud83d\ude00"',
    ):
        assert await provider.found(USERS, text) == [kim["id"]], text
    emails = [{"value": "j\u00fc@x", "type": "work"}, {"value": "other@x", "type": "home"}]
    lee = await provider.user("lee@x", emails=emails)
    removal = {"op": "remove", "path": r'emails[value eq "j\u00fc@x"]'}
    assert (await provider.patched(lee, removal))["emails"] == emails[1:]
