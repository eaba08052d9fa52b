"""`factbook checks import`: the files that it writes, and what it reports."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.api.checking import RESULTS, evaluated
from tests.cli.bridge import Run
from tests.cli.conftest import Command
from tests.service import Service, component

CHECK = {
    "type": "json-rules-engine",
    "name": "Group owner",
    "factIds": ["entityOwnershipFactRetriever"],
    "rule": {
        "conditions": {"all": [{"fact": "hasGroupOwner", "operator": "equal", "value": True}]}
    },
    "metadata": {"rank": 1},
}
REPORTS = Path(__file__).parents[1] / "data" / "reports"
CUSTOM: dict[str, Any] = {
    "all": [{"fact": "version", "operator": "semver", "value": "1.0"}],
}
RULES = [
    {"key": "success", "expression": "<10"},
    {"key": "warning", "expression": "10-50"},
    {"key": "error", "expression": ">50"},
]


def config(**checks: Any) -> str:
    """A file of Backstage with checks, and thresholds."""
    document = {
        "app": {"title": "${TITLE}"},
        "techInsights": {"factChecker": {"checks": checks}},
        "scorecard": {"plugins": {"github": {"openPRs": {"thresholds": {"rules": RULES}}}}},
    }
    Path("app-config.yaml").write_text(yaml.safe_dump(document))
    return "app-config.yaml"


def test_checks_of_backstage_become_files_that_can_be_tried(factbook: Command) -> None:
    answer = factbook("checks", "import", config(owner=CHECK), "--from", "backstage", "--to", "ti")

    assert (answer.exit_code, answer.stdout.splitlines()) == (
        0,
        ["ti/checks/owner.yaml", "ti/scorecards/maturity.yaml", "1 check; 1 scorecard"],
    )
    tried = factbook("checks", "test", "ti")
    assert (tried.exit_code, tried.stdout) == (0, "owner: 3 tests passed\n")


def test_thresholds_of_rhdh_become_files_that_can_be_tried(factbook: Command) -> None:
    answer = factbook("checks", "import", config(), "--from", "rhdh", "--source", "github=code")

    assert answer.exit_code == 0
    assert "2 checks" in answer.stdout
    assert "changed: scorecard: scorecard.io/ annotations" in answer.stdout
    text = Path("checks/github.openPRs.yaml").read_text()
    assert yaml.safe_load(text)["rule"]["not"]["source"] == "code"
    assert factbook("checks", "test", "checks").exit_code == 0


def test_an_answer_of_roadie_is_read_from_standard_input(factbook: Command) -> None:
    leaf = {"fact": "open", "operator": "lessThan", "value": 4, "dataSource": "snyk"}
    answer = factbook(
        *("checks", "import", "-", "--from", "roadie"),
        input=json.dumps([{"id": "1", "name": "Few", "rule": {"conditions": {"all": [leaf]}}}]),
    )

    assert (answer.exit_code, answer.stdout) == (0, "checks/few.yaml\n1 check\n")


def test_what_could_not_be_taken_over_is_told_and_the_rest_is_written(factbook: Command) -> None:
    file = config(owner=CHECK, tools={**CHECK, "rule": {"conditions": CUSTOM}})

    answer = factbook("checks", "import", file, "--from", "backstage")

    assert answer.exit_code == 1
    line = "refused: tools: rule.conditions.all[0].operator semver isn't built into the engine"
    assert line in answer.stdout.splitlines()
    assert "Not converted: tools." in answer.stderr
    assert Path("checks/owner.yaml").exists()


async def test_a_filter_of_backstage_chooses_the_same_entities(
    served: Run, service: Service
) -> None:
    file = REPORTS / "43-filters-of-checks" / "app-config.yaml"
    entities = [component("live"), component("old", lifecycle="deprecated")]
    for name, tags in (("first", ["tier1", "web"]), ("second", ["tier2"]), ("bare", [])):
        system = {
            "kind": "System",
            "metadata": {"name": name, "tags": tags},
            "spec": {"owner": "a"},
        }
        entities.append(component(name) | system)
    api = {"kind": "API", "spec": {"type": "rpc", "lifecycle": "production", "owner": "a"}}
    assert (await service.push("all", *entities, component("rpc") | api)).status_code == 200
    assert (await served("checks", "import", str(file), "--from", "backstage")).exit_code == 0
    tried = await served("checks", "test", "checks")
    assert (tried.exit_code, tried.stdout) == (0, "filtered: 3 tests passed\n")
    assert (await served("checks", "apply", "checks", "--yes")).exit_code == 0
    await evaluated(service)
    answer = await service.http.get(RESULTS)
    applies = ["api:default/rpc", "component:default/live", "system:default/first"]
    assert sorted(one["entityRef"] for one in answer.json()["results"]) == applies


def test_thresholds_with_gaps_are_read_in_their_order_and_other_keys_are_reported(
    factbook: Command,
) -> None:
    file = REPORTS / "46-thresholds-with-gaps" / "app-config.yaml"

    answer = factbook("checks", "import", str(file), "--from", "rhdh")

    assert (answer.exit_code, answer.stdout.splitlines()[2:4]) == (
        1,
        [
            "2 checks",
            "refused: dora.x: thresholds.rules[0].key is not one of success, warning, error",
        ],
    )
    assert "changed: scorecard: scorecard.io/ annotations" in answer.stdout
    for name, states in {
        "openssf.code_review": {3.9: "fail", 4: "pass", 7.9: "pass", 8: "pass"},
        "openssf.code_review-no-warning": {3.9: "fail", 4: "fail", 7.9: "fail", 8: "pass"},
    }.items():
        check = yaml.safe_load(Path(f"checks/{name}.yaml").read_text())
        check["tests"] += [
            {"facts": {"openssf": {"code_review": value}}, "expect": state}
            for value, state in states.items()
        ]
        Path(f"checks/{name}.yaml").write_text(yaml.safe_dump(check))
    assert factbook("checks", "test", "checks").exit_code == 0


def test_a_fact_of_two_retrievers_is_asked_about_and_not_guessed(factbook: Command) -> None:
    report = Path(__file__).parents[1] / "data" / "reports" / "44-facts-of-two-retrievers"

    answer = factbook("checks", "import", str(report / "app-config.yaml"), "--from", "backstage")

    assert answer.exit_code == 1
    both, misspelt = answer.stdout.splitlines()[1:]
    assert both.endswith("hasOwner could be a fact of entity-ownership or entity-metadata")
    assert misspelt.endswith("hasTitel isn't a fact of entity-metadata")


def test_the_report_is_json(factbook: Command) -> None:
    answer = factbook("checks", "import", config(owner=CHECK), "--from", "backstage", "--json")

    report = json.loads(answer.stdout)
    assert report["written"][0] == {"kind": "check", "id": "owner"}
    assert report["remarks"] == []


def test_no_file_is_replaced(factbook: Command) -> None:
    Path("scorecards").mkdir()
    Path("scorecards/maturity.yaml").write_text("mine")

    answer = factbook("checks", "import", config(owner=CHECK), "--from", "backstage")

    assert answer.exit_code == 2
    assert "scorecards/maturity.yaml exists already; nothing was written." in answer.stderr
    assert not Path("checks").exists()


def test_a_file_of_nothing_is_refused(factbook: Command, subtests: pytest.Subtests) -> None:
    Path("empty.yaml").write_text("app: {}")
    Path("broken.yaml").write_text("app: [")
    cases: list[tuple[list[str], str]] = [
        (["none.yaml", "--from", "backstage"], "none.yaml cannot be read"),
        (["empty.yaml", "--from", "backstage"], "There are no checks below"),
        (["empty.yaml", "--from", "rhdh"], "There are no thresholds below"),
        (["empty.yaml", "--from", "roadie"], "There are neither checks nor scorecards"),
        (["empty.yaml", "--from", "port"], "'port' is not one of"),
        (["empty.yaml", "--from", "rhdh", "--source", "a"], "--source has to be THEIRS=OURS"),
        (["broken.yaml", "--from", "rhdh"], "broken.yaml is not valid YAML"),
    ]
    for arguments, wrong in cases:
        with subtests.test(arguments=arguments):
            answer = factbook("checks", "import", *arguments)
            assert answer.exit_code == 2
            assert wrong in answer.stderr


def test_conditions_nested_without_end_are_refused(factbook: Command) -> None:
    condition: Any = {"fact": "a", "operator": "equal", "value": 1}
    for _ in range(300):
        condition = {"not": condition}
    Path("deep.json").write_text(json.dumps([{"name": "a", "rule": {"conditions": condition}}]))

    answer = factbook("checks", "import", "deep.json", "--from", "roadie")

    assert answer.exit_code in (1, 2)
    assert "nested too deeply" in answer.stdout + answer.stderr
    assert not isinstance(answer.exception, RecursionError)
