"""Output of `factbook checks test`."""

from typing import Any, NamedTuple

import msgspec

from factbook.checks.rules import language
from factbook.checks.rules.check_definition import Check
from factbook.checks.rules.explanation import Evidence
from factbook.checks.state import name_state
from factbook.checks.trials import trial
from factbook.checks.trials.trial import CheckTrial
from factbook.cli.output import say


class TriedCheck(NamedTuple):
    """A check with the results of its tests, and what these leave out, by path."""

    check: Check
    trials: list[CheckTrial]
    gaps: list[tuple[str, str]]

    @property
    def failed(self) -> bool:
        """True if a test has another result than the expected one, or something is left out."""
        return bool(self.gaps) or not all(one.passed for one in self.trials)


def tried(check: Check, now: int) -> TriedCheck:
    """The results of a check's own tests."""
    return TriedCheck(check, trial.tried(check, now), list(trial.gaps(check)))


def show(found: TriedCheck) -> None:
    """Print the results: a line if all is well, and what was seen where it is not."""
    if not found.failed:
        say(f"{found.check.id}: {len(found.trials)} tests passed")
        return
    say(f"{found.check.id}: {language.describe_rule(found.check.rule)}")
    for path, message in found.gaps:
        say(f"  {path} {message}")
    for position, one in enumerate(found.trials):
        if not one.passed:
            _show_failed(position, one)


def as_json(found: TriedCheck) -> dict[str, Any]:
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


def _show_failed(position: int, one: CheckTrial) -> None:
    title = f" ({one.test.title})" if one.test.title else ""
    say(f"  tests[{position}]{title} expects {one.test.expect}, and is {one.state}:")
    if one.explanation is None:
        say("    appliesTo does not match the entity")
        return
    for evidence in one.explanation.because:
        say(f"    {_line(evidence)}")


def _line(evidence: Evidence) -> str:
    value = msgspec.json.encode(evidence.value).decode()
    saw = f"unknown, {evidence.reason}" if evidence.reason else f"it is {value}"
    rule = language.describe_rule(evidence.leaf).removesuffix(".")
    return f"{name_state(evidence.state)}: {rule}; {saw}"
