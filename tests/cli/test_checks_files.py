"""The files of checks: what `new` writes, what `test` tells, and how bad ones are refused."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.conftest import Command

RULE = {"source": "code", "fact": "protected", "operator": "equal", "value": True}
TESTS: list[dict[str, Any]] = [
    {"facts": {"code": {"protected": True}}, "expect": "pass"},
    {"facts": {"code": {"protected": False}}, "expect": "fail"},
    {"reasons": {"code": {"": "forbidden"}}, "expect": "unknown"},
]


def file(name: str, *documents: dict[str, Any]) -> str:
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_text(yaml.safe_dump_all(documents, sort_keys=False))
    return name


def check(id_: str = "protected", **members: Any) -> dict[str, Any]:
    return {"check": id_, "title": "Protected", "rule": RULE, "tests": TESTS, **members}


def test_a_new_file_is_a_check_whose_tests_pass(factbook: Command) -> None:
    answer = factbook("checks", "new", "has-owner.v2")

    assert (answer.exit_code, answer.stdout) == (0, "has-owner.v2.yaml\n")
    assert "title: Has owner v2" in Path("has-owner.v2.yaml").read_text()
    tried = factbook("checks", "test", "has-owner.v2.yaml")
    assert (tried.exit_code, tried.stdout) == (0, "has-owner.v2: 3 tests passed\n")


def test_a_new_file_replaces_none(factbook: Command) -> None:
    factbook("checks", "new", "one")

    answer = factbook("checks", "new", "one")

    assert (answer.exit_code, "exists already" in answer.stderr) == (2, True)


@pytest.mark.parametrize("name", ["../one", "a b", "-"])
def test_a_name_that_no_check_can_have_is_refused(factbook: Command, name: str) -> None:
    answer = factbook("checks", "new", "--", name)

    assert (answer.exit_code, "has to be 1 to 100 letters" in answer.stderr) == (2, True)
    assert list(Path().iterdir()) == []


def test_a_folder_of_checks_scorecards_and_exemptions_is_tried(factbook: Command) -> None:
    file("all/checks/a.yaml", check("a"), check("b"))
    scorecard = {"scorecard": "s", "title": "S", "levels": ["gold"], "entries": [{"check": "a"}]}
    file("all/scorecards/s.yaml", scorecard)
    about = {"check": "a", "entity": "component:default/x", "until": "2999-01-01", "reason": "old"}
    file("all/exemptions/e.yaml", {"exemption": about})

    answer = factbook("checks", "test", "all")

    assert (answer.exit_code, answer.stdout) == (0, "a: 3 tests passed\nb: 3 tests passed\n")


def test_a_test_with_another_result_tells_what_it_saw(factbook: Command) -> None:
    wrong = {"title": "off", "facts": {"code": {"protected": False}}, "expect": "pass"}
    file("a.yaml", check(tests=[*TESTS, wrong]))

    answer = factbook("checks", "test", "a.yaml")

    assert answer.exit_code == 1
    assert answer.stdout.splitlines() == [
        "protected: protected (code) is true.",
        "  tests[3] (off) expects pass, and is fail:",
        "    fail: protected (code) is true; it is false",
    ]
    assert "missing: protected." in answer.stderr


@pytest.mark.parametrize(
    ("members", "line"),
    [
        ({"tests": TESTS[:2]}, "  tests have none that expects unknown"),
        ({"tests": []}, "  tests have none that expects pass"),
        (
            {"tests": [*TESTS, {"facts": {"code": {"protectd": True}}, "expect": "unknown"}]},
            "  tests[3].facts.code.protectd is not read by the check",
        ),
        (
            {"rule": {"any": [RULE, {**RULE, "value": False}]}},
            "  rule holds for every value; to ask if there is one, use the operator isKnown",
        ),
    ],
)
def test_tests_that_show_too_little_are_told(
    factbook: Command, members: dict[str, Any], line: str
) -> None:
    file("a.yaml", check(**members))

    answer = factbook("checks", "test", "a.yaml")

    assert answer.exit_code == 1
    assert line in answer.stdout.splitlines()


def test_a_check_that_is_never_unknown_needs_no_test_for_it(factbook: Command) -> None:
    known = {"source": "entity", "fact": "metadata.title", "operator": "isKnown"}
    with_title = {"kind": "Component", "metadata": {"name": "a", "title": "A"}}
    tests = [{"entity": with_title, "expect": "pass"}, {"expect": "fail"}]
    file(
        "a.yaml", check("a", rule=known, tests=tests), check("b", tests=TESTS[:2], onUnknown="fail")
    )

    answer = factbook("checks", "test", "a.yaml")

    assert (answer.exit_code, answer.stdout) == (0, "a: 2 tests passed\nb: 2 tests passed\n")


def test_a_check_is_not_about_an_entity_that_does_not_match(factbook: Command) -> None:
    api = {"kind": "API", "metadata": {"name": "a"}}
    tests = [*TESTS, {"entity": api, "expect": "not-applicable"}]
    file("a.yaml", check(appliesTo={"kind": "component"}, tests=tests))

    assert factbook("checks", "test", "a.yaml").exit_code == 0


def test_results_are_json(factbook: Command) -> None:
    file("a.yaml", check(tests=[*TESTS[:2], {"facts": {}, "expect": "pass", "title": "none"}]))

    answer = factbook("checks", "test", "a.yaml", "--json")

    [found] = json.loads(answer.stdout)
    assert (found["check"], found["passed"]) == ("protected", False)
    assert found["tests"][2] == {"title": "none", "expect": "pass", "state": "unknown"}
    assert found["problems"] == [{"path": "tests", "message": "have none that expects unknown"}]


def test_every_problem_of_every_file_is_told(factbook: Command) -> None:
    file("bad/a.yaml", check("a b"), {"title": "of nothing"}, check("one"))
    file("bad/b.yaml", check("one"), {"exemption": {"check": "a"}, "title": "x"})
    file("bad/c.yaml", {"check": "a", "scorecard": "b"}, check("c", id="d"))
    file(
        "bad/d.yaml", {"exemption": {"check": "a", "entity": "component:default/x", "reason": "r"}}
    )
    Path("bad/e.yaml").write_text("check: [")

    answer = factbook("checks", "test", "bad")

    assert answer.exit_code == 2
    for line in (
        "bad/a.yaml document 1 (line 1): id: has to be 1 to 100 letters",
        "bad/a.yaml document 2 (line 23) has to have exactly one of",
        "bad/b.yaml document 1 (line 1): check: is bad/a.yaml document 3",
        "can have only `exemption:`",
        "bad/c.yaml document 1 (line 1) has to have exactly one of",
        "has `id` beside `check:`, which is the id",
        "bad/d.yaml document 1 (line 1): until: is required in a file",
        "bad/e.yaml is not valid YAML",
    ):
        assert line in answer.stderr, answer.stderr


def test_a_folder_without_checks_is_refused(factbook: Command) -> None:
    Path("empty").mkdir()

    answer = factbook("checks", "test", "empty")

    assert answer.exit_code == 2
    assert "No check, scorecard or exemption in empty." in answer.stderr
