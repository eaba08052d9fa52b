from typing import Any

import pytest

from factbook.checks import takeover
from factbook.checks.takeover import TakenOver
from factbook.errors import InputError

SOURCES = [
    {
        "id": "7f3a",
        "schema": {
            "0b1c": {"type": "boolean", "metadata": {"key": "branchProtection"}},
            "stars": {"type": "integer"},
        },
    }
]


def leaf(fact: str = "0b1c", **members: Any) -> dict[str, Any]:
    return {"fact": fact, "operator": "equal", "value": True, **members}


def one(*leaves: dict[str, Any], **members: Any) -> dict[str, Any]:
    rule = {"conditions": {"all": list(leaves or (leaf(),))}}
    return {"id": "c1", "name": "Protected Branch", "rule": rule, **members}


def taken(*checks: dict[str, Any], scorecards: Any = ()) -> TakenOver:
    export = {"checks": list(checks), "scorecards": list(scorecards), "dataSources": SOURCES}
    return takeover.take_over_roadie(export, {"7f3a": "github"})


def test_ids_of_facts_become_their_names() -> None:
    [(_, document)] = taken(one(leaf(), leaf("stars", dataSource="7f3a"))).documents

    assert document["id"] == "protected-branch"
    assert [(each["source"], each["fact"]) for each in document["rule"]["all"]] == [
        ("github", "branchProtection"),
        ("github", "stars"),
    ]


def test_a_fact_is_compared_with_a_fact_of_another_source() -> None:
    other = {"fact": "limit", "dataSource": "quota"}

    [(_, document)] = taken(one(leaf("stars", operator="lessThan", value=other))).documents

    [compared] = document["rule"]["all"]
    assert compared["value"] == {"source": "quota", "fact": "limit"}


def test_members_are_kept_under_our_names(subtests: pytest.Subtests) -> None:
    cases: list[tuple[Any, Any]] = [
        ({"failIfMissing": True}, {"onUnknown": "fail"}),
        ({"failIfMissing": False}, {}),
        ({"entityFilter": [{"kind": "component"}]}, {"appliesTo": [{"kind": "component"}]}),
        (
            {"entityFilter": [{"metadata.annotations.a": "*"}]},
            {"appliesTo": [{"metadata.annotations.a": {"exists": True}}]},
        ),
        ({"labels": ["security"]}, {"labels": ["security"]}),
        (
            {"failureMetadata": {"link": "https://a.example"}},
            {"fix": {"link": "https://a.example"}},
        ),
        ({"failureMetadata": "Ask."}, {"fix": {"instructions": "Ask."}}),
        ({"links": {"How": "https://a.example"}}, {"fix": {"link": "https://a.example"}}),
    ]
    for members, kept in cases:
        with subtests.test(members=members):
            [(_, document)] = taken(one(**members)).documents

            names = ("onUnknown", "appliesTo", "labels", "fix")
            assert {name: document[name] for name in names if name in document} == kept


def test_metadata_that_is_not_kept_is_listed() -> None:
    found = taken(one(metadata={"solution": "Ask.", "rank": 1}, failureMetadata={"team": "a"}))

    assert [one.remark.path for one in found.remarks] == ["failureMetadata.team", "metadata.rank"]


def test_a_scorecard_has_the_checks_that_were_taken_over() -> None:
    bad = one(leaf(operator="semver"), id="c2", name="Bad")
    listed = [{"id": "c1", "level": "Bronze"}, {"id": "c2", "level": "Gold"}]

    found = taken(one(), bad, scorecards=[{"id": "s", "name": "Ready!", "checks": listed}])

    [card] = [document for kind, document in found.documents if kind == "scorecard"]
    assert card["id"] == "ready"
    assert card["levels"] == [{"id": "Bronze", "title": "Bronze"}]
    assert card["entries"] == [{"check": "protected-branch", "level": "Bronze"}]
    told = [f"{item}: {remark.path}: {remark.message}" for item, remark in found.remarks]
    assert "Ready!: checks[1]: is left out: c2 was not taken over" in told


@pytest.mark.parametrize(
    "export", [[one()], {"checks": {"items": [one()]}}, {"checks": [one()]}, one()]
)
def test_any_of_their_answers_is_read(export: Any) -> None:
    found = takeover.take_over_roadie(export, {})

    # Without the data sources nobody knows whose fact it is.
    assert [remark.path for _, remark in found.remarks] == ["rule.conditions.all[0].fact"]


def test_an_export_of_nothing_is_refused(subtests: pytest.Subtests) -> None:
    exports: list[Any] = [None, 3, {}, {"checks": []}, {"checks": "a"}]
    message = "neither checks nor scorecards"
    for export in exports:
        with subtests.test(export=export), pytest.raises(InputError, match=message):
            takeover.take_over_roadie(export, {})
