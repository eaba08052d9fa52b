"""The planted faults and their recorded results, both read from TOML.

`faults.toml` may grow, but an entry never changes in meaning: when code moves, `path` and `old`
follow it. `results.toml` is written by `python -m tests.planted --record`.
"""

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[2]
FAULTS: Final = Path(__file__).with_name("faults.toml")
RESULTS: Final = Path(__file__).with_name("results.toml")

# Where a fault was caught. "missed": not by its room, and the whole suite was not run.
Caught = Literal["room", "suite", "nowhere", "missed", "untried"]

_HEADER: Final = """\
# Which test catches each fault of faults.toml, and where: in the tests of the fault's room, only
# in the whole suite, or nowhere. "missed": not in its room, and the whole suite was not run.
# Written by `python -m tests.planted --record`.

"""


class Fault(NamedTuple):
    """A change of one file that makes the product wrong: `old` becomes `new`."""

    id: str
    kind: str
    path: str
    old: str
    new: str
    about: str = ""

    def apply(self, text: str) -> str:
        """The text of the file with the fault; raises ValueError unless `old` occurs once."""
        count = text.count(self.old)
        if count != 1:
            raise ValueError(f"{self.id}: `old` occurs {count} times in {self.path}, not once.")
        return text.replace(self.old, self.new)


class Result(NamedTuple):
    """Where a fault was caught, and the first test that failed."""

    caught: Caught
    test: str = ""

    @property
    def is_caught(self) -> bool:
        """True if a test catches the fault."""
        return self.caught in ("room", "suite")

    @property
    def is_open(self) -> bool:
        """True if the fault was not tried to the end."""
        return self.caught in ("missed", "untried")


UNTRIED: Final = Result("untried")


def faults() -> dict[str, Fault]:
    """All faults by id, in the order of the file."""
    rows = tomllib.loads(FAULTS.read_text("utf-8"))["fault"]
    return {row["id"]: Fault(**row) for row in rows}


def results() -> dict[str, Result]:
    """The recorded results by the id of the fault."""
    if not RESULTS.exists():
        return {}
    rows = tomllib.loads(RESULTS.read_text("utf-8"))
    return {fault_id: Result(**row) for fault_id, row in rows.items()}


def save(recorded: Mapping[str, Result]) -> None:
    """Write the results, in the order of the faults."""
    lines = [
        f"{fault_id} = {{ caught = {_quoted(result.caught)}, test = {_quoted(result.test)} }}\n"
        for fault_id in faults()
        if (result := recorded.get(fault_id)) is not None
    ]
    RESULTS.write_text(_HEADER + "".join(lines), "utf-8")


def row(fault: Fault) -> str:
    """The fault as an entry of faults.toml."""
    about = f"about = {_quoted(fault.about)}\n" if fault.about else ""
    return (
        f"\n[[fault]]\nid = {_quoted(fault.id)}\nkind = {_quoted(fault.kind)}\n"
        f"path = {_quoted(fault.path)}\n{about}old = '''\n{fault.old}'''\n"
        f"new = '''\n{fault.new}'''\n"
    )


def _quoted(text: str) -> str:
    # A JSON string is a TOML string.
    return json.dumps(text, ensure_ascii=False)
