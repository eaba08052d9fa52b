from typing import Any

import pytest

from factbook.checks import takeover
from factbook.checks.rules import check_trial
from factbook.checks.rules.check_definition import parse_check
from factbook.checks.takeover import TakenOver
from factbook.errors import InputError

LEAF = {"fact": "hasGroupOwner", "operator": "equal", "value": True}


def one(**members: Any) -> dict[str, Any]:
    return {
        "type": "json-rules-engine",
        "name": "Group owner",
        "factIds": ["entityOwnershipFactRetriever"],
        "rule": {"conditions": {"all": [LEAF]}},
        **members,
    }


def taken(**checks: Any) -> TakenOver:
    config = {"techInsights": {"factChecker": {"checks": checks}}}
    return takeover.take_over_backstage(config, {"githubFactRetriever": "github"})


def remarks(found: TakenOver) -> dict[str, str]:
    return {
        f"{item}: {remark.path}": f"{remark.kind}: {remark.message}"
        for item, remark in found.remarks
    }


def test_a_check_keeps_what_it_says_and_gets_tests() -> None:
    found = taken(
        groupOwnerCheck=one(
            description="Has a group",
            filter={"kind": "component"},
            metadata={"category": "Ownership", "solution": "Name a group."},
            failureMetadata={"link": "https://wiki.example/owner"},
        )
    )

    [(kind, document)] = found.documents
    assert (kind, found.remarks) == ("check", [])
    tests = document.pop("tests")
    assert document == {
        "id": "groupOwnerCheck",
        "title": "Group owner",
        "description": "Has a group",
        "appliesTo": {"kind": "component"},
        "rule": {
            "all": [
                {
                    "source": "entity-ownership",
                    "fact": "hasGroupOwner",
                    "operator": "equal",
                    "value": True,
                }
            ]
        },
        "fix": {"link": "https://wiki.example/owner", "instructions": "Name a group."},
        "labels": ["Ownership"],
    }
    assert [test["expect"] for test in tests] == ["pass", "fail", "unknown"]


def test_tests_that_are_made_hold_and_leave_nothing_out() -> None:
    conditions = {
        "any": [
            {"fact": "language", "operator": "in", "value": ["go", "c"]},
            {"not": {"all": [{"fact": "tags", "operator": "contains", "value": "old"}]}},
            {"fact": "a", "operator": "lessThan", "value": {"fact": "b"}},
        ]
    }
    found = taken(x=one(factIds=["githubFactRetriever"], rule={"conditions": conditions}))

    read = parse_check(found.documents[0].document)
    assert [result.passed for result in check_trial.try_check(read, 0)] == [True, True, True]
    assert list(check_trial.list_test_gaps(read)) == []


def test_facts_are_found_in_the_source_that_has_them() -> None:
    techdocs = {"fact": "hasAnnotationBackstageIoTechdocsRef", "operator": "equal", "value": True}
    own = {"fact": "stars", "operator": "greaterThan", "value": 3}
    ids = ["entityOwnershipFactRetriever", "techdocsFactRetriever", "githubFactRetriever"]
    found = taken(x=one(factIds=ids, rule={"conditions": {"all": [techdocs]}}))
    several = taken(
        x=one(factIds=[*ids, "otherRetriever"], rule={"conditions": {"all": [own, LEAF]}})
    )

    assert "refused: hasAnnotation" in remarks(found)["x: rule.conditions.all[0].fact"]
    assert remarks(several)["x: rule.conditions.all[0].fact"] == (
        "refused: stars could be a fact of github or otherRetriever"
    )
    alone = taken(x=one(factIds=ids[:2], rule={"conditions": {"all": [techdocs, LEAF]}}))
    sources = [leaf["source"] for leaf in alone.documents[0].document["rule"]["all"]]
    assert sources == ["techdocs", "entity-ownership"]


def test_the_first_link_and_solution_of_a_check_become_its_fix(subtests: pytest.Subtests) -> None:
    how, why = {"title": "How", "url": "https://wiki.example/how"}, "https://wiki.example/why"
    cases: list[tuple[dict[str, Any], dict[str, str], list[str]]] = [
        ({"links": [how]}, {"link": how["url"]}, []),
        ({"links": [{"url": "/docs"}, how]}, {"link": how["url"]}, ["links[0]"]),
        ({"links": [how], "failureMetadata": {"link": why}}, {"link": why}, ["links[0]"]),
        ({"links": how["url"]}, {"link": how["url"]}, []),
        ({"links": how}, {"link": how["url"]}, []),
        ({"links": {"href": why, "text": "Why"}}, {"link": why}, []),
        ({"links": {"Why": why, "How": how}}, {"link": why}, ["links.How"]),
        ({"links": [why]}, {"link": why}, []),
        ({"links": "none"}, {}, ["links"]),
        ({"links": 3}, {}, ["links"]),
        ({"links": [None, {"title": "How"}, how]}, {"link": how["url"]}, ["links[0]", "links[1]"]),
        ({"failureMetadata": {"link": [how]}}, {"link": how["url"]}, []),
        ({"failureMetadata": {"link": "javascript:a"}}, {}, ["failureMetadata.link"]),
        ({"failureMetadata": "Do."}, {"instructions": "Do."}, []),
        ({"failureMetadata": ["Do.", "Wait."]}, {"instructions": "Do.\nWait."}, []),
        ({"failureMetadata": 3}, {}, ["failureMetadata"]),
        ({"metadata": "Plan."}, {"instructions": "Plan."}, []),
        (
            {"failureMetadata": {"solution": ["Do.", {"a": 1}]}},
            {"instructions": "Do."},
            ["failureMetadata.solution[1]"],
        ),
        ({"failureMetadata": {"solution": {"a": 1}}}, {}, ["failureMetadata.solution"]),
        (
            {"metadata": {"team": "a", "rank": "high", "category": {}}},
            {},
            ["metadata.category", "metadata.rank", "metadata.team"],
        ),
        (
            {"metadata": {"rank": True, "category": True}},
            {},
            ["metadata.category", "metadata.rank"],
        ),
        ({"failureMetadata": {"solution": "Do."}}, {"instructions": "Do."}, []),
        (
            {"failureMetadata": {"solution": "Do."}, "metadata": {"solution": "Plan."}},
            {"instructions": "Do."},
            ["metadata.solution"],
        ),
        ({"failureMetadata": {"b": 1, "a": 1}}, {}, ["failureMetadata.a", "failureMetadata.b"]),
    ]
    for members, fix, left_out in cases:
        with subtests.test(members=members):
            found = taken(x=one(**members))
            assert found.documents[0].document.get("fix", {}) == fix
            assert sorted(remarks(found)) == [f"x: {path}" for path in left_out]


def test_a_variable_that_nothing_fills_in_is_told() -> None:
    found = taken(x=one(name="${CHECK_NAME}", failureMetadata={"solution": "See ${WIKI}."}))
    assert remarks(found) == {
        f"x: {path}": f"changed: {name} is a variable of the configuration, and isn't filled in"
        for path, name in (("title", "${CHECK_NAME}"), ("fix.instructions", "${WIKI}"))
    }


def test_what_is_lost_is_told(subtests: pytest.Subtests) -> None:
    cases: list[tuple[Any, str, str]] = [
        ({"type": "other"}, "type", "refused"),
        ({"rule": None}, "rule", "refused: is missing"),
        ({"rule": {"conditions": {"all": []}}}, "rule.conditions.all", "refused"),
        ({"factIds": []}, "rule.conditions.all[0].fact", "refused: hasGroupOwner isn't a fact of"),
        ({"factIds": ["mine"]}, "factIds", "changed: mine is assumed to be the data source mine"),
        ({"filter": 3}, "appliesTo", "refused"),
        ({"name": "x" * 300}, "title", "refused"),
        ({"rule": {"conditions": {"all": [LEAF]}, "priority": 3}}, "rule.priority", "changed"),
        ({"successMetadata": {"link": "a"}}, "successMetadata", "changed"),
        ({"description": {"a": 1}}, "description", "changed: is left out: it isn't text"),
        ({"factIds": [None, "entityOwnershipFactRetriever"]}, "factIds", "changed: has parts"),
        ({"weight": 3}, "weight", "changed: is left out"),
    ]
    for members, path, words in cases:
        with subtests.test(members=members, path=path):
            found = taken(x=one(**members))

            assert remarks(found)[f"x: {path}"].startswith(words)
            assert len(found.documents) == (not words.startswith("refused"))


def test_texts_may_be_lists_of_lines_and_the_only_source_a_text() -> None:
    members = {"name": ["Group", "owner"], "description": ["Has a group.", "Or a person."]}
    category = {"category": ["Ownership", "Security"]}
    found = taken(x=one(**members, factIds="entityOwnershipFactRetriever", metadata=category))

    assert found.documents[0].document["description"] == "Has a group.\nOr a person."
    assert found.documents[0].document["labels"] == ["Ownership", "Security"]
    assert found.remarks == []


def test_one_that_is_refused_keeps_no_other_from_being_taken() -> None:
    found = taken(a=one(type="other"), b=one(), c=None, B=one())

    assert found.taken("check") == ["b", "B"]


def test_names_that_become_one_id_are_refused() -> None:
    found = taken(**{"a b": one(), "a-b": one()})

    assert found.taken("check") == ["a-b"]
    assert remarks(found)["a-b: id"] == "refused: a-b is already the id of another check"


@pytest.mark.parametrize(
    ("ranks", "levels"),
    [((1, 3), ["bronze", "gold"]), ((100, 200), ["rank-100", "rank-200"])],
)
def test_ranks_become_a_scorecard(ranks: tuple[int, int], levels: list[str]) -> None:
    low, high = (one(metadata={"rank": rank}) for rank in ranks)

    found = taken(high=high, low=low, none=one(), bad=one(type="other", metadata={"rank": 2}))

    scorecard = found.documents[-1].document
    assert scorecard["levels"] == levels
    assert scorecard["entries"] == [
        {"check": "high", "level": levels[1]},
        {"check": "low", "level": levels[0]},
    ]


@pytest.mark.parametrize("config", [None, [], {}, {"techInsights": {"factChecker": 3}}])
def test_a_configuration_without_checks_is_refused(config: Any) -> None:
    with pytest.raises(InputError, match="no checks below"):
        takeover.take_over_backstage(config, {})
