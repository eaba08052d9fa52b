"""What changed between two documents, line by line."""

import msgspec

from factbook.web.differences import Line, difference


def document(**members: object) -> str:
    return msgspec.json.encode(members).decode()


def test_a_changed_line_stands_between_those_around_it() -> None:
    found = difference(document(a=1, b=2, c=3), document(a=1, b=4, c=3))
    assert Line("removed", '-   "b": 2,') in found.lines
    assert Line("added", '+   "b": 4,') in found.lines
    assert Line("same", '    "a": 1,') in found.lines
    assert not found.cut


def test_a_document_that_was_not_there_is_all_new() -> None:
    found = difference(None, document(a=1))
    assert {line.kind for line in found.lines} == {"added"}
    found = difference(document(a=1), None)
    assert {line.kind for line in found.lines} == {"removed"}


def test_equal_documents_have_no_difference() -> None:
    assert difference(document(a=1), document(a=1)).lines == []


def test_what_is_far_from_a_change_is_left_out() -> None:
    members = {f"k{n:03}": n for n in range(200)}
    found = difference(document(**members), document(**{**members, "k000": -1, "k199": -1}))
    assert len(found.lines) < 20
    assert Line("same", "…") in found.lines


def test_a_long_difference_is_cut() -> None:
    found = difference(None, document(**{f"k{n}": n for n in range(5_000)}))
    assert found.cut
    assert len(found.lines) == 400
