"""Work on many items in pieces."""

from hypothesis import given
from hypothesis import strategies as st

from factbook.catalog.piecewise import PIECE, ordered, slices, weighed


@given(st.lists(st.integers()), st.integers(1, 5))
def test_slices_hold_every_item_in_its_place(items: list[int], size: int) -> None:
    found = list(slices(items, size))
    assert [item for piece in found for item in piece] == items
    assert all(len(piece) == size for piece in found[:-1])
    assert all(found)


def test_more_items_than_a_piece_are_ordered() -> None:
    items = [(number * 7919) % 100_003 for number in range(2 * PIECE + 5)]
    assert list(ordered(items)) == sorted(items)
    assert list(ordered([])) == []


@given(st.lists(st.integers(0, 9)))
def test_weighed_pieces_are_bounded_by_number_and_weight(weights: list[int]) -> None:
    found = [list(piece) for piece in weighed(weights, int, most=3, heaviest=7)]
    assert [item for piece in found for item in piece] == weights
    assert all(len(piece) <= 3 and (sum(piece) <= 7 or len(piece) == 1) for piece in found)
