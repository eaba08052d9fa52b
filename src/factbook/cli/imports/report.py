"""Imports from the command line, and what is printed of their reports."""

from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple, Protocol

import msgspec
import typer

from factbook.cli.failures import CommandError
from factbook.cli.imports.part_lines import part_json, part_name
from factbook.cli.local import settings_from
from factbook.cli.output import note, note_each, print_json, print_table, progress, say

if TYPE_CHECKING:
    from factbook.backend import Backend
    from factbook.importers.single_import import ImportReport
    from factbook.importers.writer import PartResult

# How one decides on the removals that a part holds.
DECIDE: Final = (
    "Look at them and decide: factbook import show {0}, then factbook import apply {0}, or "
    "factbook import discard {0} to keep them."
)

Plan = Annotated[bool, typer.Option("--plan", help="Write nothing; show what would change.")]

# Imports, and tells the function what is being read.
Work = Callable[["Backend", Callable[[str], None]], Coroutine[Any, Any, "list[ImportReport]"]]


class Chosen(NamedTuple):
    """Import that a command describes.

    `account` stands in for the table `[integrations.<vendor>.<instance>]`; `variable` is the one of
    the environment that gives its credential.
    """

    kind: str
    options: Mapping[str, Any]
    instance: str = "default"
    account: Mapping[str, Any] | None = None
    variable: str = ""


def import_chosen(chosen: Chosen, database_url: str | None, *, plan: bool, as_json: bool) -> None:
    """Import what somebody chose, or plan that, and print the report.

    Raises CommandError if something could not be read.
    """
    from factbook.operations import imports

    async def work(backend: "Backend", show: Callable[[str], None]) -> "list[ImportReport]":
        given = imports.ChosenImport(*chosen)
        return [await imports.import_chosen(backend, given, plan=plan, show=show)]

    [report] = reports(work, database_url)
    if as_json:
        print_json(report_json(report, plan=plan))
    else:
        print_report(report, plan=plan)
    check_reports([report])


def reports(work: Work, database_url: str | None) -> "list[ImportReport]":
    """Do the work on the database of the settings in force."""
    import asyncio

    from factbook.backend import Backend

    settings = msgspec.structs.replace(settings_from(database_url), log_level="error")

    with Backend.traced_meanwhile(settings) as backend, progress("Reading") as show:
        return asyncio.run(work(backend, show))


def check_whole(states: Mapping[str, str], decide: str = DECIDE) -> None:
    """Raise CommandError for a part, by its name, that is partial, or that holds removals.

    `decide` says how one decides on these.
    """
    partial = [name for name, state in states.items() if state == "partial"]
    held = [name for name, state in states.items() if state == "held"]
    if partial:
        hint = (
            "Solve the problems, or import again once the system answers. "
            f"They are listed by: factbook import show {partial[0]}"
        )
        raise CommandError(
            "Not everything could be read; what could not stays as it was.", hint=hint
        )
    if held:
        raise CommandError("Removals are held; the entities stay.", hint=decide.format(held[0]))


def check_reports(found: Iterable["ImportReport"]) -> None:
    """`check_whole` of the parts of reports."""
    check_whole(
        {part_name(one.record): one.record.state for report in found for one in report.parts}
    )


def print_report(report: "ImportReport", *, plan: bool) -> None:
    """Print the parts, what changed by kind, the problems, and the calls."""
    columns = ["Part", "State", "Added", "Updated", "Removed", "Unchanged", "Held", "Problems"]
    print_table(columns, map(_result_row, report.parts))
    print_table(["Kind", "Change", "Entities"], _by_kind(report.parts))
    print_moves(report.parts)
    for word, count in sorted(report.snapshot.left_out.items()):
        say(f"Left out: {count:,} {word}")
    problems = [str(problem) for one in report.parts for problem in one.record.problems]
    if problems:
        note(f"Problems: {len(problems)}")
        note_each(problems)
    for one in report.parts:
        if one.record.held:
            note(f"{part_name(one.record)}: {len(one.record.held)} removals are held, because")
            note(f"  {one.record.reason}. See: factbook import show {part_name(one.record)}")
    left = "" if report.left is None else f"; {report.left:,} of the limit are left"
    say(f"{report.calls:,} calls{left}{' (plan: nothing was written)' if plan else ''}")


class _Moving(Protocol):
    @property
    def moves(self) -> Mapping[str, str]: ...


def print_moves(parts: Iterable[_Moving]) -> None:
    """Print the entities that get another reference, if there are any."""
    if moves := [move for one in parts for move in sorted(one.moves.items())]:
        print_table(["Moved from", "To"], moves)


def moves_json(one: _Moving) -> list[dict[str, str]]:
    """The entities of a part that get another reference."""
    return [{"from": old, "to": new} for old, new in sorted(one.moves.items())]


def _result_row(one: "PartResult") -> tuple[object, ...]:
    record, changes = one.record, one.changes
    counts = (changes[word] for word in ("added", "updated", "removed", "unchanged"))
    return (part_name(record), record.state, *counts, len(record.held), record.problem_count)


def _by_kind(parts: Sequence["PartResult"]) -> Iterator[tuple[object, ...]]:
    counts = Counter(
        (each.entity_ref.partition(":")[0], each.change) for one in parts for each in one.difference
    )
    for (kind, change), count in sorted(counts.items()):
        yield kind, change, count


def report_json(report: "ImportReport", *, plan: bool) -> dict[str, Any]:
    """The report as JSON, with every entity that changed."""
    return {
        "importer": report.importer,
        "plan": plan,
        "calls": report.calls,
        "limitLeft": report.left,
        "leftOut": dict(report.snapshot.left_out),
        "parts": [
            part_json(one.record)
            | {
                "changes": dict(one.changes),
                "moves": moves_json(one),
                "difference": [
                    {"entityRef": each.entity_ref, "change": each.change} for each in one.difference
                ],
            }
            for one in report.parts
        ],
    }
