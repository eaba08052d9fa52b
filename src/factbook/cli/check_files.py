"""Files of checks: new ones, those converted from another tool, and the tests that checks have."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from factbook.checks import document_readers, takeover
from factbook.checks.document_readers import DefinitionDocument, Kind
from factbook.checks.rules import check_trial, language
from factbook.checks.rules.check_definition import Check
from factbook.checks.rules.check_trial import CheckTrial
from factbook.checks.rules.rule_evaluation import Evidence
from factbook.checks.state import name_state
from factbook.checks.takeover import REFUSED, ItemRemark, Sources, TakenOver
from factbook.cli.connection import format_count
from factbook.cli.definitions import file_content, write_new_file
from factbook.cli.documents import STDIN, parse_entity_file
from factbook.cli.output import say
from factbook.datasources.custom import yaml_text
from factbook.errors import InputError

_LONGEST_NAME: Final = 150

_READERS: Final[Mapping[str, Callable[[object, Sources], TakenOver]]] = {
    "backstage": takeover.take_over_backstage,
    "rhdh": takeover.take_over_rhdh,
    "roadie": takeover.take_over_roadie,
}


def check_skeleton(name: str) -> str:
    """A check with comments that say how to go on, and tests that hold."""

    def refuse(path: str, message: str) -> None:
        raise InputError(f'"{name}" {message}.')

    document_readers.read_identifier(name, "", refuse)
    title = name.replace("-", " ").replace("_", " ").replace(".", " ").strip()
    return _SKELETON.format(name=name, title=f"{title[:1].upper()}{title[1:]}")


_SKELETON: Final = """\
check: {name}
title: {title}
description: >-
  What is asked of an entity, and what it is good for.
# Who answers for the check:
# owner: group:default/platform

# The entities that it is about, by paths of the catalog; without it, all of them.
appliesTo: {{kind: component}}

# `all`, `any` or `not` over comparisons of facts. A fact that is missing neither passes nor fails.
rule:
  all:
    - {{source: entity-ownership, fact: hasGroupOwner, operator: equal, value: true}}
    - {{source: entity-metadata, fact: hasDescription, operator: equal, value: true}}

# With values of the entity, {{{{ metadata.name }}}}, and of facts, {{{{ facts.SOURCE['FACT'] }}}}.
messages:
  fail: "{{{{ metadata.name }}}} has no group as its owner, or no description."
# fix: {{link: "https://wiki.example.com/owners#{{{{ metadata.name }}}}"}}

# `factbook checks test {name}.yaml` runs them: at least a pass, a fail and an unknown.
tests:
  - facts:
      entity-ownership: {{hasGroupOwner: true}}
      entity-metadata: {{hasDescription: true}}
    expect: pass
  - facts:
      entity-ownership: {{hasGroupOwner: false}}
    expect: fail
  - facts: {{}}
    expect: unknown
"""


def convert_file(file: str, peer: str, sources: Sequence[str]) -> TakenOver:
    """The checks and scorecards of a file; raises InputError if there are none."""
    ids = dict(_source_pair(one) for one in sources)
    name = "standard input" if file == STDIN else file
    try:
        data = file_content(file)
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}.") from None
    found = [
        msgspec.json.decode(one.entity) for one in parse_entity_file(data, name, f"of {peer}") or []
    ]
    try:
        return _READERS[peer](found[0] if len(found) == 1 else found, ids)
    except RecursionError:
        raise InputError(f"{name} is nested too deeply.") from None


def write_converted(
    found: Sequence[DefinitionDocument], folder: Path, *, quiet: bool = False
) -> None:
    """Write each document to a new file; raises InputError, before any, if one is there."""
    written: dict[Path, dict[str, Any]] = {}
    taken: set[str] = set()
    for kind, document in found:
        file = (
            folder
            / f"{kind}s"
            / f"{_distinct_name(_document_name(kind, document), kind, taken)}.yaml"
        )
        written[file] = document_readers.make_file_document(kind, document)
    for file in written:
        if file.exists():
            raise InputError(f"{file} is there already; nothing was written.")
    for file, document in written.items():
        write_new_file(file, yaml_text.write_yaml(document), quiet=quiet)


def _document_name(kind: Kind, document: Mapping[str, Any]) -> str:
    """The name of the file of a document, as short as any file system wants it."""
    if kind != "exemption":
        return str(document["id"])
    entity = str(document["entity"]).rpartition("/")[2]
    return f"{document.get('check') or document['scorecard']}-{entity}"[:_LONGEST_NAME]


def _distinct_name(name: str, kind: Kind, taken: set[str]) -> str:
    """The name with a number if another is the same where the case of letters is nothing."""
    found, number = name, 1
    while f"{kind} {found}".casefold() in taken:
        number += 1
        found = f"{name}-{number}"
    taken.add(f"{kind} {found}".casefold())
    return found


def list_refused_items(found: TakenOver) -> list[str]:
    """The items that could not be taken over."""
    items = (one.item for one in found.remarks if one.remark.kind == REFUSED)
    return list(dict.fromkeys(items))


def print_conversion(found: TakenOver) -> None:
    """Print how much was written, and every remark."""
    ids = {kind: list(found.taken(kind)) for kind in document_readers.KINDS}
    say(
        "; ".join(format_count(ids[kind], kind) for kind in document_readers.KINDS if ids[kind])
        or "nothing"
    )
    for one in found.remarks:
        say(_remark_line(one))


def conversion_json(found: TakenOver) -> dict[str, Any]:
    """Files written, and every remark, as JSON."""
    return {
        "written": [{"kind": kind, "id": document["id"]} for kind, document in found.documents],
        "remarks": [{"item": item, **remark._asdict()} for item, remark in found.remarks],
    }


def _remark_line(one: ItemRemark) -> str:
    path = f" {one.remark.path}" if one.remark.path else ""
    return f"{one.remark.kind}: {one.item}:{path} {one.remark.message}"


def _source_pair(text: str) -> tuple[str, str]:
    theirs, mark, ours = text.partition("=")
    if not mark or not theirs or not ours:
        raise InputError(f"--source has to be THEIRS=OURS, not {text}.")
    return theirs, ours


class TriedCheck(NamedTuple):
    """A check with the results of its tests, and what these leave out, by path."""

    check: Check
    trials: list[CheckTrial]
    gaps: list[tuple[str, str]]

    @property
    def failed(self) -> bool:
        """True if a test has another result than the expected one, or something is left out."""
        return bool(self.gaps) or not all(one.passed for one in self.trials)


def run_check_tests(check: Check, now: int) -> TriedCheck:
    """The results of a check's own tests."""
    return TriedCheck(
        check, check_trial.try_check(check, now), list(check_trial.list_test_gaps(check))
    )


def print_check_tests(found: TriedCheck) -> None:
    """Print the results: a line if all is well, and what was seen where it is not."""
    if not found.failed:
        say(f"{found.check.id}: {len(found.trials)} tests passed")
        return
    say(f"{found.check.id}: {language.describe_rule(found.check.rule)}")
    for path, message in found.gaps:
        say(f"  {path} {message}")
    for position, one in enumerate(found.trials):
        if not one.passed:
            _print_failed_test(position, one)


def check_tests_json(found: TriedCheck) -> dict[str, Any]:
    """The results as JSON."""
    return {
        "check": found.check.id,
        "passed": not found.failed,
        "problems": [{"path": path, "message": message} for path, message in found.gaps],
        "tests": [
            {"title": one.test.title, "expect": one.test.expect, "state": one.state}
            for one in found.trials
        ],
    }


def _print_failed_test(position: int, one: CheckTrial) -> None:
    title = f" ({one.test.title})" if one.test.title else ""
    say(f"  tests[{position}]{title} expects {one.test.expect}, and is {one.state}:")
    if one.explanation is None:
        say("    appliesTo does not match the entity")
        return
    for evidence in one.explanation.because:
        say(f"    {_evidence_line(evidence)}")


def _evidence_line(evidence: Evidence) -> str:
    value = msgspec.json.encode(evidence.value).decode()
    saw = f"unknown, {evidence.reason}" if evidence.reason else f"it is {value}"
    rule = language.describe_rule(evidence.leaf).removesuffix(".")
    return f"{name_state(evidence.state)}: {rule}; {saw}"
