"""CSV as in RFC 4180, of which no cell is a formula where a spreadsheet opens it."""

from collections.abc import Iterable, Sequence
from typing import Final

MEDIA_TYPE: Final = "text/csv; charset=utf-8; header=present"
# A spreadsheet takes a cell that begins so for a formula, or drops what hides one.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
_QUOTED: Final = frozenset('",\r\n')

Cell = str | int | float | bool | None


def line(cells: Iterable[Cell]) -> str:
    """A record with its end; None is an empty cell."""
    return ",".join(map(_written, cells)) + "\r\n"


def text(header: Sequence[str], rows: Iterable[Iterable[Cell]]) -> str:
    """A whole document."""
    return line(header) + "".join(map(line, rows))


def _written(cell: Cell) -> str:
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if not isinstance(cell, str):
        # A negative number begins as a formula does, and is none.
        return str(cell)
    written = f"'{cell}" if cell.startswith(_FORMULA) else cell
    if _QUOTED.isdisjoint(written):
        return written
    return '"{}"'.format(written.replace('"', '""'))
