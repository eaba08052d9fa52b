"""`factbook facts --across`: one fact of all entities, as tables, JSON or CSV."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

from factbook.cli.failures import USAGE, CommandError
from factbook.cli.output import note, print_json, print_table, printable, say

if TYPE_CHECKING:
    from factbook.client import Client, FactDistribution

By = Literal["owner", "system", "kind"]
Output = Literal["table", "json", "csv"]

_PART: Final = ("kind", "namespace", "owner", "system", "type", "lifecycle")
_BAR: Final = 30  # characters of the longest


def part_of(pairs: Sequence[str]) -> dict[str, str]:
    """The part of the catalog in pairs `key=value`; raises CommandError."""
    found: dict[str, str] = {}
    for pair in pairs:
        key, sign, value = pair.partition("=")
        if key not in _PART or not sign or key in found:
            known = ", ".join(_PART)
            raise CommandError(f"--where takes KEY=VALUE once for each of {known}.", USAGE)
        found[key] = value
    return found


def show(
    client: "Client",
    source: str,
    fact: str,
    *,
    by: By | None,
    part: Mapping[str, str],
    output: Output,
) -> None:
    """Print the fact as the output wanted."""
    if output == "csv":
        text = client.fact_values_csv(source, fact, part=part)
        # A terminal shows it; whatever else takes it gets the bytes as they are.
        print(printable(text.replace("\r\n", "\n")) if sys.stdout.isatty() else text, end="")
        return
    found = client.fact_distribution(source, fact, by=by, part=part)
    if output == "json":
        print_json(found)
        return
    unit = f", {found.fact.unit}" if found.fact.unit else ""
    say(f"{found.data_source_id} {found.fact.name}{unit}")
    print_table(["Entities", "Number"], _numbers(found))
    for title, rows in _tables(found):
        say("")
        print_table(title, rows)
    if found.as_of:
        note(f"As of {found.as_of}.")
    if found.truncated:
        note("There is too much to count: the figures are of a part of the entities.")
    if found.more_groups:
        note(f"{found.more_groups:,} smaller groups are left out.")


def _numbers(found: "FactDistribution") -> Iterator[tuple[object, object]]:
    yield "all", f"{found.entities:,}"
    yield "known", f"{found.known:,}"
    if found.kept:
        yield "  of these stale", f"{found.kept:,}"
    yield "unknown", f"{found.unknown:,}"
    for reason, count in found.unknown_reasons.items():
        yield f"  {reason}", f"{count:,}"


def _tables(found: "FactDistribution") -> Iterator[tuple[Sequence[str], list[Sequence[object]]]]:
    if found.booleans is not None:
        yield _bars(list(found.booleans.items()))
    if found.spread is not None:
        spread = found.spread
        figures = [
            ("lowest", spread.min),
            ("lower quartile", spread.lower_quartile),
            ("median", spread.median),
            ("upper quartile", spread.upper_quartile),
            ("highest", spread.max),
            ("mean", spread.mean),
        ]
        yield (
            ("Figure", "Value"),
            [(name, _text(value)) for name, value in figures if value is not None],
        )
        yield _bars([(_range(one.min, one.below), one.count) for one in found.histogram or ()])
    if found.top:
        yield _bars([(_text(one.value), one.count) for one in found.top])
    for name, rows in (("Lowest", found.lowest), ("Highest", found.highest)):
        if rows:
            shown = [f"{_text(row.value)}{' (stale)' if row.stale else ''}" for row in rows]
            refs = [row.entity_ref for row in rows]
            yield (name, "Value"), list(zip(refs, shown, strict=True))
    if found.groups is not None:
        yield _groups(found)


def _bars(
    rows: Sequence[tuple[object, int]],
) -> tuple[Sequence[str], list[Sequence[object]]]:
    most = max((count for _, count in rows), default=0) or 1
    return ("Value", "Entities", ""), [
        (name, f"{count:,}", "█" * round(_BAR * count / most)) for name, count in rows
    ]


def _groups(found: "FactDistribution") -> tuple[Sequence[str], list[Sequence[object]]]:
    figure = "True" if found.booleans is not None else "Median"
    return ((found.by or "").capitalize(), "Entities", "Known", "Unknown", figure), [
        (
            group.name or "none",
            f"{group.entities:,}",
            f"{group.known:,}",
            f"{group.entities - group.known:,}",
            _share(group.true, group.known) if group.true is not None else _text(group.median),
        )
        for group in found.groups or ()
    ]


def _share(part: int, whole: int) -> str:
    return f"{part:,} of {whole:,}" if whole else ""


def _range(start: Any, end: Any) -> str:
    if end is None:
        return f"from {_text(start)}"
    return f"below {_text(end)}" if start is None else f"{_text(start)} to below {_text(end)}"


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return printable(f"{value:,.6g}" if isinstance(value, float) else str(value))
