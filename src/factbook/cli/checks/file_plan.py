"""Plan of what makes a server match files: of checks and scorecards, and then of exemptions."""

from collections.abc import Sequence
from typing import NamedTuple

from factbook.cli.checks import change_plan, exemption_plan
from factbook.cli.checks.change_plan import DefinitionStep
from factbook.cli.checks.exemption_plan import ExemptionChange, ExemptionOptions
from factbook.cli.checks.files import ReadDocument
from factbook.cli.definition_plan import PlanStep
from factbook.client import Client


class FilePlan(NamedTuple):
    """Steps for definitions and for exemptions, and what to know of files without any."""

    steps: list[PlanStep]
    notes: list[str]


def plan(
    client: Client,
    read: Sequence[ReadDocument],
    options: ExemptionOptions,
    *,
    drafts: bool,
    prune: bool,
) -> FilePlan:
    """The steps from the server to the files; an exemption may name a check that is new."""
    definitions = [one for one in read if one.kind != "exemption"]
    steps = change_plan.plan(client, definitions, drafts=drafts, prune=prune)
    exemptions = exemption_plan.plan(client, read, options)
    return FilePlan([*steps, *exemptions.steps], exemptions.notes)


def run(step: PlanStep, client: Client, *, drafts: bool) -> str:
    """Execute a step, and say what was done."""
    if isinstance(step, ExemptionChange):
        return exemption_plan.run(step, client)
    assert isinstance(step, DefinitionStep)
    return change_plan.run(step, client, drafts=drafts)
