"""CSV that a spreadsheet opens: every cell comes back, and none as a formula."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factbook.http.csv_lines import render_csv_line

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
hostile = st.text(st.sampled_from("=+@;|,\t\n \"'\ufeffx"))


def lines(rows: list[list[str]]) -> str:
    return "".join(map(render_csv_line, rows))


def read(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text, newline=""), strict=True))


@pytest.mark.slow
@given(st.lists(st.lists(texts, min_size=2, max_size=4), max_size=4))
def test_every_cell_comes_back_but_for_the_mark_of_a_formula(rows: list[list[str]]) -> None:
    for wanted, cells in zip(rows, read(lines(rows)), strict=True):
        for text, cell in zip(wanted, cells, strict=True):
            assert cell.replace("'", "") == text.replace("'", "")
            assert cell.startswith("'") or cell.lstrip()[:1] not in tuple("=+-@")


@given(st.lists(texts | hostile, min_size=1, max_size=4), st.sampled_from(";|\t,"))
def test_no_spreadsheet_finds_a_formula_whatever_it_splits_at(cells: list[str], at: str) -> None:
    # With quotes and without, as some spreadsheets are told.
    for quoting in (csv.QUOTE_MINIMAL, csv.QUOTE_NONE):
        if quoting == csv.QUOTE_NONE and at == ",":
            continue  # without quotes no text with a comma can be told from two cells
        written = io.StringIO(render_csv_line(cells), newline="")
        parts = [part for row in csv.reader(written, delimiter=at, quoting=quoting) for part in row]
        assert [part for part in parts if part.lstrip('" \ufeff')[:1] in tuple("=+-@")] == []


def test_a_formula_behind_a_separator_gets_a_quote_in_front(subtests: pytest.Subtests) -> None:
    cases = {
        "x;=1+1": "x;'=1+1",
        "x; \ufeff@SUM(A1)": "x;' \ufeff@SUM(A1)",
        'x;"=A1&";y': 'x;\'"=A1&";y',
        "x;;=1;-1": "x;;'=1;'-1",
        "x|+1": "x|'+1",
        "x\t=1": "x\t'=1",
        "x\n=1": "x\n'=1",
        "x;\uff1d1": "x;'\uff1d1",
        ";=1": "';'=1",
        "x\u200b;\u200b=1": "x\u200b;'\u200b=1",
        "x;1=1": "x;1=1",
        "a-b; c": "a-b; c",
        "x, -1": "x, -1",
    }
    for text, wanted in cases.items():
        with subtests.test(text=text):
            assert read(render_csv_line([text, "z"])) == [[wanted, "z"]]


def test_a_long_run_of_separators_takes_time_by_its_length() -> None:
    text = ";" * 2_000_000 + "x"
    assert render_csv_line([text, "z"]) == f'"{text}",z\r\n'


def test_a_cell_that_begins_as_a_formula_gets_a_quote_in_front(subtests: pytest.Subtests) -> None:
    for text in [
        *("=1+1", "+1", "-1", "@SUM(A1)", '=cmd|"/c"!A1', "\t1", "\r1", "\n1", "\uff1d1"),
        *(" =1", "\u00a0=1", "\u3000@1", "\ufeff=1", "\ufeff \ufeff=1", "\x0b=1", "\u200b=1"),
    ]:
        with subtests.test(text=text):
            assert read(render_csv_line([text])) == [[f"'{text}"]]


def test_numbers_are_written_as_they_are() -> None:
    assert render_csv_line([-1, 2.5, None, ""]) == "-1,2.5,,\r\n"


def test_a_record_ends_as_the_standard_says() -> None:
    assert lines([["a"], ['say "hi"'], ["x,y"]]) == 'a\r\n"say ""hi"""\r\n"x,y"\r\n'
