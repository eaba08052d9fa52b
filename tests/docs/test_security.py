"""The threat model: every threat has what is done against it, where, and a test that shows it."""

import ast
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.docs.parts import DOCS

PAGE = DOCS / "security.md"
ROOT = DOCS.parent
TESTS = ROOT / "tests"
PACKAGE = ROOT / "src" / "factbook"
AREAS = [
    "Push and read interface",
    "Tool-call endpoint",
    "Tokens",
    "Agents that sign in (OAuth)",
    "Identity providers that push people",
    "People, sessions and invitations",
    "Webhooks",
    "Outgoing calls",
    "Repositories",
    "Importers",
    "Sources that users define",
    "Checks that users write",
    "Secrets at rest, in logs and in messages",
    "Audit",
    "Exhaustion",
    "Files of the pages",
    "Pipelines",
    "Kubernetes",
    "Supply chain",
    "Many machines, backups and upgrades",
    "Mistakes of operators",
]
_CODE = re.compile(r"`([^`]+)`")


class Threat(NamedTuple):
    """A row of a table."""

    area: str
    threat: str
    done: str
    where: list[str]
    tests: list[str]


def threats(page: str) -> list[Threat]:
    """The rows of the tables below *Threats*."""
    found, area = [], ""
    section = page.partition("\n## Threats\n")[2].partition("\n## ")[0]
    for line in section.splitlines():
        area = line.removeprefix("### ") if line.startswith("### ") else area
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("|") and not line.startswith(("| ---", "| Threat")):
            threat, done, where, tests = cells
            found.append(Threat(area, threat, done, _CODE.findall(where), _CODE.findall(tests)))
    return found


def missing(threat: Threat) -> list[str]:
    """What a row names that does not exist."""
    found = [
        name
        for name in threat.where
        if not any(
            place.exists() for place in (PACKAGE / name, PACKAGE / f"{name}.py", ROOT / name)
        )
    ]
    for name in threat.tests:
        file, _, test = name.partition("::")
        if test not in names_in(TESTS / file):
            found.append(name)
    return found


@cache
def names_in(file: Path) -> frozenset[str]:
    """The names of the tests in a file, which is not run for it."""
    if not file.is_file():
        return frozenset()
    return frozenset(
        node.name
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
    )


THREATS = threats(PAGE.read_text())


def test_every_area_has_its_threats() -> None:
    assert list(dict.fromkeys(threat.area for threat in THREATS)) == AREAS


@pytest.mark.slow
@pytest.mark.spec("security.every-threat-has-a-test")
def test_a_threat_has_a_mitigation_a_module_and_a_test_that_exist(
    subtests: pytest.Subtests,
) -> None:
    assert THREATS
    for threat in THREATS:
        with subtests.test(threat.threat[:50]):
            assert threat.threat
            assert threat.done
            assert threat.where
            assert threat.tests
            assert missing(threat) == []


def test_a_test_or_module_that_does_not_exist_is_found() -> None:
    row = "| a | b | `edge/nothing` | `web/test_security.py::test_that_nobody_wrote` |"
    [threat] = threats(f"\n## Threats\n\n### Here\n\n| Threat | x |\n{row}\n\n## Next\n")
    assert missing(threat) == ["edge/nothing", "web/test_security.py::test_that_nobody_wrote"]


def test_what_is_not_protected_has_a_section_of_its_own() -> None:
    section = PAGE.read_text().partition("\n## What is not protected\n")[2]
    assert section.count("\n- **") >= 5
