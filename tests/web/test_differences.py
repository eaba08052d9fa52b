"""What changed between two documents, line by line."""

import difflib
import random
from collections import Counter
from functools import partial

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factbook.web import sets
from factbook.web.sets import DiffLine, compare_documents
from tests.steps import steps


def document(**members: object) -> str:
    return msgspec.json.encode(members).decode()


def test_a_changed_line_stands_between_those_around_it() -> None:
    found = compare_documents(document(a=1, b=2, c=3), document(a=1, b=4, c=3))
    assert DiffLine("removed", '-   "b": 2,') in found.lines
    assert DiffLine("added", '+   "b": 4,') in found.lines
    assert DiffLine("same", '    "a": 1,') in found.lines
    assert not found.cut


def test_a_document_that_was_not_there_is_all_new() -> None:
    found = compare_documents(None, document(a=1))
    assert {line.kind for line in found.lines} == {"added"}
    found = compare_documents(document(a=1), None)
    assert {line.kind for line in found.lines} == {"removed"}


def test_equal_documents_have_no_difference() -> None:
    assert compare_documents(document(a=1), document(a=1)).lines == []


def test_what_is_far_from_a_change_is_left_out() -> None:
    members = {f"k{n:03}": n for n in range(200)}
    found = compare_documents(document(**members), document(**{**members, "k000": -1, "k199": -1}))
    assert len(found.lines) < 20
    assert DiffLine("same", "…") in found.lines


def test_a_long_difference_is_cut() -> None:
    found = compare_documents(None, document(**{f"k{n}": n for n in range(5_000)}))
    assert found.cut
    assert len(found.lines) == 400


@pytest.mark.slow
@given(st.lists(st.sampled_from("abc"), max_size=12), st.lists(st.sampled_from("abc"), max_size=12))
def test_what_is_removed_and_added_leads_from_one_document_to_the_other(
    before: list[str], after: list[str]
) -> None:
    """However little of it stands in the same order; read against difflib's own matching."""
    lines = compare_documents(document(a=before), document(a=after)).lines
    old, new = laid_out(before), laid_out(after)
    removed = Counter(line.text[2:] for line in lines if line.kind == "removed")
    added = Counter(line.text[2:] for line in lines if line.kind == "added")
    same = Counter(old) - removed
    assert same + added == Counter(new)
    ratio = difflib.SequenceMatcher(None, old, new, autojunk=False)
    matched = sum(block.size for block in ratio.get_matching_blocks())
    assert removed.total() <= len(old) - matched


def laid_out(items: list[str]) -> list[str]:
    return msgspec.json.format(document(a=items), indent=2).splitlines()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_documents_made_to_take_long_are_compared_in_bounded_steps(seed: int) -> None:
    """Whoever pushes chooses them: twenty-five of these stand on one page."""
    chance = random.Random(seed)
    one, other = ([chance.randint(0, 1) for _ in range(1_990)] for _ in range(2))
    for before, after in ((one, other), (one, one[1:]), ([0] * 1_990, [0, 1] * 995)):
        old, new = document(a=before), document(a=after)
        assert {line.kind for line in compare_documents(old, new).lines} >= {"removed"}
        # The shortest edits between some of these take millions.
        assert steps(sets, partial(compare_documents, old, new)) < 50_000


def test_a_long_line_is_cut() -> None:
    found = compare_documents(document(a="x" * 100_000), document(a="y" * 2_000_000))
    assert found.cut
    assert all(len(line.text) < 1_100 for line in found.lines)
