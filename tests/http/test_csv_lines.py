"""CSV that a spreadsheet opens: every cell comes back, and none as a formula."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factbook.http import csv_lines

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


def lines(rows: list[list[str]]) -> str:
    return "".join(map(csv_lines.line, rows))


def read(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text, newline=""), strict=True))


@pytest.mark.slow
@given(st.lists(st.lists(texts, min_size=2, max_size=4), max_size=4))
def test_every_cell_comes_back_but_for_the_mark_of_a_formula(rows: list[list[str]]) -> None:
    for wanted, cells in zip(rows, read(lines(rows)), strict=True):
        for text, cell in zip(wanted, cells, strict=True):
            assert cell in {text, f"'{text}"}
            assert not cell.lstrip().startswith(("=", "+", "-", "@"))


def test_a_cell_that_begins_as_a_formula_gets_a_quote_in_front(subtests: pytest.Subtests) -> None:
    for text in [
        *("=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", '=cmd|"/c"!A1'),
        *("\n1", "\uff1d1", " =1", "\u00a0=1", "\u3000@1", "\ufeff=1", "\x0b=1"),
    ]:
        with subtests.test(text=text):
            assert read(csv_lines.line([text])) == [[f"'{text}"]]


def test_numbers_are_written_as_they_are() -> None:
    assert csv_lines.line([-1, 2.5, None, ""]) == "-1,2.5,,\r\n"


def test_a_record_ends_as_the_standard_says() -> None:
    assert lines([["a"], ['say "hi"'], ["x,y"]]) == 'a\r\n"say ""hi"""\r\n"x,y"\r\n'
