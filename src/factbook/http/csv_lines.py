"""Lines of CSV (RFC 4180) that no spreadsheet takes for formulas."""

from collections.abc import Iterable
from typing import Final

CSV: Final = "text/csv"
CONTENT_TYPE: Final = b"text/csv; charset=utf-8; header=present"

# What spreadsheets take for the start of a formula, also in the width of East Asian characters.
_FORMULA: Final = tuple("=+-@\t\r\n＝＋－＠")  # noqa: RUF001
_QUOTED: Final = frozenset('",\r\n')


def line(cells: Iterable[object]) -> str:
    """One line with its end; None is an empty cell.

    A text that could be a formula begins with an apostrophe; a number stays as it is.
    """
    return ",".join(map(_cell, cells)) + "\r\n"


def _cell(value: object) -> str:
    if value is None:
        return ""
    text = str(value)
    if isinstance(value, str) and text.startswith(_FORMULA):
        text = f"'{text}"
    if _QUOTED.isdisjoint(text) and text == text.strip():
        return text
    return '"' + text.replace('"', '""') + '"'
