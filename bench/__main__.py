"""`python -m bench`: measure everything, print the table, and write the figures where told.

The servers run on the first core of this process, the load and this process on the last. Every
figure is the median of several rounds, in which the things compared take turns; a ratio is taken
within a round. Exits with 1 when something could not be measured, with 0 when a goal was missed.
"""

import argparse
import os
import platform
import signal
import sys
import traceback
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table

from bench.findings import Findings, written
from bench.measures import MEASURES, Goal, Measure
from bench.processes import Cores
from bench.run import Options, Proof, Run

_QUICK = Options(
    rounds=1,
    entities=1000,
    seconds=1.0,
    repositories=200,
    sources=100,
    history=100_000,
    minutes=0.5,
    sizes=(500, 1_000),
    compared=500,
)


class Outcome(msgspec.Struct, frozen=True):
    """What came of a goal; without values when the measure failed."""

    measure: str
    key: str
    text: str
    most: float
    unit: str
    value: float | None
    values: list[float]
    context: dict[str, list[float]]
    explained: str

    @property
    def met(self) -> bool:
        return self.value is not None and self.value <= self.most


def main() -> int:
    """Run what the arguments ask for."""
    arguments = _arguments()
    chosen = _chosen(arguments.only)
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    cores = Cores.available()
    os.sched_setaffinity(0, {cores.load})
    options = _options(arguments)
    outcomes: list[Outcome] = []
    with Run.start(options, cores) as run:
        for measure in chosen:
            outcomes += _measured(measure, run)
    _print(outcomes, options, cores, run.proof)
    if arguments.output:
        report = {"machine": _machine(cores), "options": options, "catalog": run.proof}
        report["goals"] = [msgspec.structs.asdict(item) | {"met": item.met} for item in outcomes]
        content = msgspec.json.format(msgspec.json.encode(report, enc_hook=str))
        arguments.output.write_bytes(content + b"\n")
    failed = [one for one in outcomes if one.value is None or (arguments.strict and not one.met)]
    return int(bool(failed))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    names = ", ".join(measure.name for measure in MEASURES)
    parser.add_argument("--only", metavar="NAME[,NAME]", help=f"some of: {names}")
    parser.add_argument("--rounds", type=int, metavar="N", help="rounds of each measure (5)")
    parser.add_argument("--entities", type=int, metavar="N", help="size of the catalog (10000)")
    parser.add_argument("--minutes", type=float, metavar="N", help="of steady load (30)")
    parser.add_argument(
        "--pictures", type=Path, metavar="FOLDER", help="where steady load is drawn"
    )
    parser.add_argument("--sizes", type=_numbers, metavar="N[,N]", help="of catalogs compared")
    parser.add_argument("--kept", type=Path, metavar="FOLDER", help="where those catalogs stay")
    parser.add_argument("--strict", action="store_true", help="exit with 1 when a goal is missed")
    parser.add_argument("--quick", action="store_true", help="one short round, 1000 entities")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the figures as JSON")
    return parser.parse_args()


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(sorted(int(part) for part in text.split(",")))


def _options(arguments: argparse.Namespace) -> Options:
    options = _QUICK if arguments.quick else Options()
    names = ("rounds", "entities", "minutes", "pictures", "sizes", "kept")
    given = {name: getattr(arguments, name) for name in names}
    return msgspec.structs.replace(options, **{name: n for name, n in given.items() if n})


def _chosen(only: str | None) -> list[Measure]:
    names = only.split(",") if only else [one.name for one in MEASURES if not one.lasts]
    known = {measure.name: measure for measure in MEASURES}
    if unknown := [name for name in names if name not in known]:
        sys.exit(f"No measure {', '.join(unknown)}; there are: {', '.join(known)}.")
    return [known[name] for name in names]


def _measured(measure: Measure, run: Run) -> list[Outcome]:
    run.say(measure.name)
    try:
        findings = measure.run(run)
    except Exception as error:  # noqa: BLE001 - one that fails must not take the others with it
        traceback.print_exc()
        return [_outcome(measure, goal, Findings(), str(error)) for goal in measure.goals]
    return [_outcome(measure, goal, findings) for goal in measure.goals]


def _outcome(measure: Measure, goal: Goal, findings: Findings, failure: str = "") -> Outcome:
    finding = findings.get(goal.key)
    value, explained = (finding.value, finding.explained()) if finding else (None, failure)
    values, context = (finding.values, finding.context) if finding else ([], {})
    return Outcome(measure.name, *goal, value, values, context, explained)


def _print(outcomes: list[Outcome], options: Options, cores: Cores, proof: Proof | None) -> None:
    table = Table(title=f"{options.entities:,} entities, medians of {options.rounds} rounds")
    table.add_column("measure")
    table.add_column("goal", justify="right", no_wrap=True)
    table.add_column("figure", justify="right", no_wrap=True)
    table.add_column("met?")
    table.add_column("made of")
    previous = ""
    for outcome in outcomes:
        if previous and outcome.measure != previous:
            table.add_section()
        previous = outcome.measure
        table.add_row(outcome.text, *_figures(outcome), outcome.explained)
    console = Console(width=max(140, Console().width))
    console.print(table)
    if proof:
        console.print(
            f"Entities: at least {proof.least_bytes:,} bytes of JSON, {proof.mean_bytes:,.0f} on "
            f"average; {proof.search_rows:.2f} search rows on average."
        )
    console.print(f"Servers and databases on core {cores.server}, load on core {cores.load}.")


def _figures(outcome: Outcome) -> tuple[str, str, str]:
    most = f"≤ {written(outcome.most, outcome.unit)}"
    if outcome.value is None:
        return most, "", "[red]failed"
    met = "[green]yes" if outcome.met else f"[red]no, {_miss(outcome)}"
    return most, written(outcome.value, outcome.unit), met


def _miss(outcome: Outcome) -> str:
    assert outcome.value is not None
    return f"{outcome.value / outcome.most:.2f}x" if outcome.most else "any is too many"


def _machine(cores: Cores) -> dict[str, Any]:
    return {
        "python": platform.python_version(),
        "system": platform.platform(),
        "processor": _processor(),
        "server_core": cores.server,
        "load_core": cores.load,
    }


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


if __name__ == "__main__":
    sys.exit(main())
