"""What the importer makes of an organization of AWS, and of an AWS that fails."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import Response

from factbook.errors import ConfigurationError
from factbook.importers.aws import (
    AwsImportOptions,
    AwsKeys,
    AwsRequest,
    Scope,
    make_canonical_query,
    sign_request,
)
from tests.fakes import faults
from tests.fakes.aws import faults as aws_faults
from tests.fakes.aws.app import ASSUMED_ID, ORGANIZATION, ROOT, Account, Unit
from tests.fakes.faults import Answer, Fault
from tests.importers.accounts import AwsOrganization

PAYMENTS, LEDGER = "ou-exam-payments1", "ou-exam-ledger123"
KEYS = AwsKeys("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
MOMENT = int(datetime(2015, 8, 30, 12, 36, tzinfo=UTC).timestamp() * 1_000)


def many(count: int) -> list[Account]:
    return [Account(f"account-{number}", number) for number in range(1, count + 1)]


async def test_an_account_is_a_resource_with_what_names_it() -> None:
    accounts = AwsOrganization(Account("Master Account", 7, (PAYMENTS,), tags={"Team": "core"}))
    assert await accounts.entities() == {
        "Master Account": {
            "apiVersion": "backstage.io/v1alpha1",
            "kind": "Resource",
            "metadata": {
                "name": "Master Account",
                "annotations": {
                    "amazonaws.com/account-id": "000000000007",
                    "amazonaws.com/arn": (
                        f"arn:aws:organizations::111111111111:account/{ORGANIZATION}/000000000007"
                    ),
                    "amazonaws.com/organization-id": ORGANIZATION,
                    "amazonaws.com/organizational-unit-path": f"{ROOT}/{PAYMENTS}",
                },
                "labels": {"amazonaws.com/state": "ACTIVE"},
            },
            "spec": {"type": "cloud-account", "owner": "group:default/core"},
        }
    }


async def test_an_account_keeps_its_id_under_another_name() -> None:
    accounts = AwsOrganization(Account("old", 7))
    [before] = (await accounts.part()).items
    accounts.fake.accounts[0].name = "new"
    [after] = (await accounts.part()).items
    assert before.external_id == after.external_id == "amazonaws.com/account/000000000007"


async def test_the_owner_is_what_a_tag_says_or_nobody(subtests: pytest.Subtests) -> None:
    cases: list[tuple[dict[str, str], str | None]] = [
        ({}, None),
        ({"owner": ""}, None),
        ({"team": "core", "owner": "user:alice"}, "user:default/alice"),
        ({"OWNER": "shop/core"}, "group:shop/core"),
        ({"owner": "a@b/c d:e/"}, None),
    ]
    for tags, owner in cases:
        with subtests.test(tags=tags):
            found = await AwsOrganization(Account("shop", 1, tags=tags)).entities()
            assert found["shop"]["spec"].get("owner") == owner


async def test_a_tag_that_is_no_reference_is_a_problem_of_its_account() -> None:
    part = await AwsOrganization(Account("shop", 1, tags={"owner": "a:b:c/"})).part()
    [problem] = part.problems
    assert (part.complete, problem.origin) == (True, "amazonaws.com/account/000000000001")


async def test_without_owner_tags_no_tag_is_asked_for() -> None:
    accounts = AwsOrganization(*many(3), owner_tags=())
    await accounts.read()
    assert accounts.fake.requests == {"ListAccounts": 1}


async def test_accounts_of_one_name_get_their_ids_behind_it() -> None:
    accounts = AwsOrganization(Account("Prod", 1), Account("prod", 2), Account("a/b: c", 3))
    found = await accounts.entities()
    assert sorted(found) == ["Prod-000000000001", "a-b- c", "prod-000000000002"]
    assert found["a-b- c"]["metadata"]["title"] == "a/b: c"


async def test_a_name_with_an_id_behind_it_is_that_of_no_other_account() -> None:
    named = Account("prod-000000000002", 3)
    accounts = AwsOrganization(Account("prod", 1), Account("prod", 2), named)
    found = await accounts.part()
    assert len({item.entity["metadata"]["name"] for item in found.items}) == 3


async def test_accounts_and_units_are_in_the_namespace_of_the_options() -> None:
    account = Account("web", 1, (PAYMENTS,))
    accounts = AwsOrganization(
        account, units=(Unit(PAYMENTS, "Payments"),), systems=True, namespace="cloud"
    )
    [one] = [item.entity for item in (await accounts.part()).items]
    [unit] = [item.entity for item in (await accounts.part("units")).items]
    assert (one["metadata"]["namespace"], unit["metadata"]["namespace"]) == ("cloud", "cloud")
    assert one["spec"]["system"] == "system:cloud/Payments"


async def test_names_do_not_depend_on_pages_that_fail() -> None:
    accounts = AwsOrganization(*many(20), Account("prod", 98), Account("prod", 99))
    names = set(await accounts.entities())
    accounts.fake.accounts.insert(0, accounts.fake.accounts.pop())
    accounts.fake.fail("ListAccounts", aws_faults.denied, after=1)
    assert set(await accounts.entities()) < names


async def test_closed_accounts_are_left_out_unless_they_are_asked_for() -> None:
    given = [Account("a", 1), *(Account(s, n) for n, s in enumerate(("b", "c", "d"), 2))]
    for account, state in zip(given[1:], ("SUSPENDED", "PENDING_CLOSURE", "CLOSED"), strict=True):
        account.state = state
    accounts = AwsOrganization(*given)
    snapshot = await accounts.read()
    assert [one.entity["metadata"]["name"] for one in snapshot.parts[0].items] == ["a"]
    assert snapshot.left_out == {"suspended and closed accounts": 3}
    found = await AwsOrganization(*given, closed=True).entities()
    assert found["d"]["metadata"]["labels"] == {"amazonaws.com/state": "CLOSED"}


async def test_units_are_systems_of_their_accounts() -> None:
    units = (Unit(PAYMENTS, "Payments"), Unit(LEDGER, "Ledger", PAYMENTS))
    inside, outside = Account("shop", 1, (PAYMENTS, LEDGER)), Account("root", 2)
    accounts = AwsOrganization(inside, outside, units=units, systems=True)
    found, systems = await accounts.entities(), await accounts.entities("units")
    assert found["shop"]["spec"]["system"] == "system:default/Ledger"
    assert "system" not in found["root"]["spec"]
    assert systems["Ledger"]["metadata"]["description"] == "Root / Payments / Ledger"
    assert systems["Ledger"]["metadata"]["annotations"] == {
        "amazonaws.com/organizational-unit-id": LEDGER,
        "amazonaws.com/arn": f"arn:aws:organizations::111111111111:ou/{ORGANIZATION}/{LEDGER}",
    }


async def test_an_account_of_a_unit_that_cannot_be_read_changes_nothing() -> None:
    units = (Unit(PAYMENTS, "Payments"), Unit(LEDGER, "Ledger", PAYMENTS))
    accounts = AwsOrganization(Account("shop", 1, (PAYMENTS, LEDGER)), units=units, systems=True)
    accounts.fake.fail("ListOrganizationalUnitsForParent", aws_faults.denied, after=1)
    snapshot = await accounts.read()
    assert [part.complete for part in snapshot.parts] == [True, False]
    assert [item.tentative for item in snapshot.parts[0].items] == [True]


async def test_a_throttled_page_is_asked_for_again() -> None:
    accounts = AwsOrganization(*many(45), owner_tags=())
    accounts.fake.fail("ListAccounts", aws_faults.throttled, after=1, times=2)
    part = await accounts.part()
    assert (part.complete, len(part.items)) == (True, 45)


async def test_a_page_that_fails_makes_the_accounts_incomplete(subtests: pytest.Subtests) -> None:
    cases: list[tuple[Fault, str]] = [
        (aws_faults.throttled, "rate-limited"),
        (aws_faults.denied, "forbidden: needs organizations:ListAccounts"),
        (aws_faults.expired, "forbidden: the keys are not accepted"),
        (aws_faults.outage, "upstream-error"),
        (aws_faults.error_within, "upstream-error"),
        (aws_faults.same_token, "answered with the same page again"),
        (faults.saying({}), "upstream-error"),
        (faults.saying({"Accounts": [{"Id": "x"}]}), "upstream-error"),
        (faults.saying({"Accounts": None}), "upstream-error"),
        (faults.bad_gateway, "upstream-error"),
        (faults.not_json, "upstream-error"),
        (faults.cut_off, "upstream-error"),
    ]
    for fault, word in cases:
        with subtests.test(fault=fault, word=word):
            accounts = AwsOrganization(*many(45), owner_tags=())
            accounts.fake.fail("ListAccounts", fault, after=1, times=9)
            part = await accounts.part()
            assert not part.complete
            assert 20 <= len(part.items) <= 40
            [problem] = part.problems
            assert word in problem.message


async def test_without_the_right_to_read_tags_one_call_is_spent_and_nothing_changes() -> None:
    accounts = AwsOrganization(*many(5))
    accounts.fake.fail("ListTagsForResource", aws_faults.denied, times=9)
    part = await accounts.part()
    assert (part.complete, {item.tentative for item in part.items}) == (True, {True})
    assert [str(one) for one in part.problems] == [
        "amazonaws.com: tags: forbidden: needs organizations:ListTagsForResource"
    ]
    assert accounts.fake.requests["ListTagsForResource"] == 1


@pytest.mark.slow
async def test_tags_of_many_accounts_are_asked_for_with_signatures_that_are_still_valid() -> None:
    accounts = AwsOrganization(*many(400))

    async def a_second_later(request: Request, answer: Answer) -> Response:
        accounts.time.advance(1_000)
        return await answer(request)

    accounts.fake.fail("ListTagsForResource", a_second_later, times=400)
    part = await accounts.part()
    assert (part.problems, {item.tentative for item in part.items}) == ((), {False})


async def test_another_organization_has_other_rights() -> None:
    assert (await AwsOrganization(*many(1)).part()).rights == {f"organization {ORGANIZATION}"}


async def test_a_role_is_assumed_with_the_keys() -> None:
    role = "arn:aws:iam::111122223333:role/factbook"
    accounts = AwsOrganization(*many(1), role=role, external_id="shop")
    assert (await accounts.part()).complete
    [query] = accounts.fake.queries
    assert (query["RoleArn"], query["ExternalId"]) == (role, "shop")
    assert accounts.fake.key_ids == {ASSUMED_ID}


async def test_a_service_account_of_kubernetes_assumes_its_role(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("a.b.c\n")
    accounts = AwsOrganization(*many(1), access_key_id="", secret_access_key="")
    accounts.environment = {
        "AWS_WEB_IDENTITY_TOKEN_FILE": str(file),
        "AWS_ROLE_ARN": "arn:aws:iam::111122223333:role/factbook",
    }
    assert (await accounts.part()).complete
    assert accounts.fake.queries[0]["WebIdentityToken"] == "a.b.c"


@pytest.mark.parametrize("fault", [faults.saying({}, 403), faults.saying({}), faults.bad_gateway])
async def test_a_role_that_cannot_be_assumed_leaves_everything_unread(fault: Fault) -> None:
    accounts = AwsOrganization(role="arn:aws:iam::111122223333:role/factbook", systems=True)
    accounts.fake.fail("AssumeRole", fault, times=9)
    assert [part.complete for part in (await accounts.read()).parts] == [False, False]


async def test_keys_of_the_environment_are_taken_where_the_settings_have_none() -> None:
    accounts = AwsOrganization(*many(1), access_key_id="", secret_access_key="")
    part = await accounts.part()
    assert not part.complete
    assert "there is no credential" in part.problems[0].message
    accounts.environment = {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "s"}
    assert (await accounts.part()).complete


def test_a_signature_is_that_of_the_published_example() -> None:
    request = AwsRequest("GET", "https://example.amazonaws.com/")
    proof = sign_request(request, KEYS, Scope("service", "us-east-1"), MOMENT)["authorization"]
    assert proof.endswith("5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31")


# As botocore 1.44.5 signs the same requests at the same moment.
def test_a_body_and_a_query_are_signed_as_others_do() -> None:
    headers = {
        "Content-Type": "application/x-amz-json-1.1",
        "X-Amz-Target": "AWSOrganizationsV20161128.ListAccounts",
    }
    url, content = "https://organizations.us-east-1.amazonaws.com/", b'{"MaxResults":20}'
    posted = sign_request(
        AwsRequest("POST", url, "", headers, content),
        KEYS,
        Scope("organizations", "us-east-1"),
        MOMENT,
    )
    assert posted["authorization"].endswith(
        "1f8e9c7b3ed5e11a5d2a9f58ae62e701deb97002766af4c895aa12addffe88da"
    )
    query = make_canonical_query(
        {
            "Action": "AssumeRole",
            "RoleArn": "arn:aws:iam::111122223333:role/factbook",
            "RoleSessionName": "factbook",
            "Version": "2011-06-15",
        }
    )
    asked = sign_request(
        AwsRequest("GET", "https://sts.eu-central-1.amazonaws.com/", query),
        KEYS._replace(token="a/token=="),
        Scope("sts", "eu-central-1"),
        MOMENT,
    )
    assert asked["authorization"].endswith(
        "2ec29ef61fb0fff04d38d29a6cbd741852913d40c713e35c7ae6d759f7bb12c9"
    )


@pytest.mark.parametrize(
    "table",
    [
        {"access_key_id": "A"},
        {"role": "factbook"},
        {"region": "europe"},
        {"url": "organizations.example.com"},
    ],
)
def test_a_mistake_in_the_options_is_told_without_its_value(table: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError) as error:
        AwsImportOptions(**table)
    assert next(iter(table.values())) not in error.value.message.split()
    assert "secret" not in repr(AwsImportOptions(access_key_id="x", secret_access_key="secret"))
