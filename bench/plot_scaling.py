"""`python -m bench.plot_scaling FIGURES FOLDER` draws what `--only size --output FIGURES` found."""

import sys
from pathlib import Path
from statistics import median
from typing import Any

import msgspec

from bench.line_charts import Axis, Points, lines

_ACROSS = Axis("entities", logarithmic=True)
_UP = Axis("CPU of service and database, ms", logarithmic=True)
_PICTURES = {
    "growth-reads": (
        "Reads",
        {
            "name": "by name",
            "refs": "50 by reference",
            "page": "page of a type",
            "owned": "page of a team",
            "page-total": "page of a kind",
            "text": "page with a text",
            "text-one": "a rare text",
            "filter-total": "total of a type",
        },
    ),
    "growth-tools": (
        "Tool calls",
        {
            "discovery": "discovery",
            "facts": "get-entity-facts",
            "all-facts": "page of all facts",
            "codehost": "metrics",
            "compliance": "compliance",
            "past": "fact history",
            "changed": "changed facts",
        },
    ),
    "growth-writes": (
        "Writes and housekeeping",
        {
            "push-same": "10,000 unchanged",
            "push-some": "1 % changed",
            "push-all": "all changed",
            "facts-write": "facts, 1,000",
            "sweep": "a sweep",
        },
    ),
}


def points(context: dict[str, list[float]]) -> Points:
    """CPU milliseconds by the number of entities: the medians of service and database together."""
    sizes = sorted({int(name.partition("_")[0]) for name in context})
    return [
        (size, sum(median(context[f"{size}_{part}_ms"]) for part in ("service", "database")))
        for size in sizes
    ]


def main() -> None:
    """Write the pictures."""
    report: dict[str, Any] = msgspec.json.decode(Path(sys.argv[1]).read_bytes())
    found = {goal["key"]: goal["context"] for goal in report["goals"] if goal["context"]}
    for file, (title, chosen) in _PICTURES.items():
        series = {name: points(found[key]) for key, name in chosen.items() if key in found}
        (Path(sys.argv[2]) / f"{file}.svg").write_text(lines(title, series, _ACROSS, _UP), "utf-8")


if __name__ == "__main__":
    main()
