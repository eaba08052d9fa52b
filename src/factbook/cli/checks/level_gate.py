"""The level that an entity has in a scorecard, against the one that a pipeline asks for."""

from typing import Any, NamedTuple

from factbook.cli.output import age_members, as_of, say
from factbook.client import Client
from factbook.client.calls import get, segment
from factbook.errors import InputError
from factbook.schemas.checks import ShownScorecard
from factbook.schemas.results import NextSteps

_PATH = "/api/tech-insights/v1"


class GateResult(NamedTuple):
    """Standing of an entity; `passed` if it has the wanted level."""

    standing: NextSteps
    wanted: str
    passed: bool

    def as_json(self) -> dict[str, Any]:
        """The result in the form of `--json`."""
        return {
            "entityRef": self.standing.entity_ref,
            "scorecardId": self.standing.scorecard_id,
            "wanted": self.wanted,
            "level": self.standing.level,
            "levelIfKnown": self.standing.level_if_known,
            "passed": self.passed,
            **age_members(self.standing),
            "missing": [
                {"checkId": one.check_id, "state": one.state, "level": one.level}
                for one in self.standing.steps
            ],
        }


def asked(
    client: Client, entity: str, scorecard: str, wanted: str, *, if_known: bool
) -> GateResult:
    """Standing of the entity; raises InputError for a level that the scorecard does not have."""
    path = segment(scorecard)
    shown = client.send(get(f"{_PATH}/scorecards/{path}", ShownScorecard))
    levels = [_name(one) for one in shown.levels or []]
    if wanted not in levels:
        there = ", ".join(levels) or "none"
        raise InputError(f"{scorecard} has no level {wanted}; its levels: {there}.")
    call = get(f"{_PATH}/scorecard-results/{path}/next-steps", NextSteps, entity=entity)
    standing = client.send(call)
    level = standing.level_if_known if if_known else standing.level
    passed = level is not None and levels.index(level) >= levels.index(wanted)
    return GateResult(standing, wanted, passed)


def show(result: GateResult) -> None:
    """Print the level, and what is missing for the next one."""
    standing = result.standing
    level, best = standing.level or "no level", standing.level_if_known or "no level"
    known = "" if best == level else f", {best} once everything is known"
    say(f"{standing.entity_ref}: {level} of {standing.scorecard_id}{known}{as_of(standing)}")
    for one in standing.steps if not result.passed else ():
        told = f": {one.message}" if one.message else ""
        say(f"  {one.state}: {one.title} ({one.check_id}){told}")


def _name(level: Any) -> str:
    return str(level["id"]) if isinstance(level, dict) else str(level)
