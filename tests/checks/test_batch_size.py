"""Sizes of batches, by the time that the ones before took."""

from factbook.checks.results.evaluator import BatchSize


def test_a_batch_that_took_too_long_is_followed_by_one_that_fits() -> None:
    size = BatchSize()
    size.note(200, 5.0)
    assert size.entities == 20


def test_batches_that_are_quick_double_up_to_a_limit() -> None:
    size = BatchSize()
    size.note(200, 0.01)
    assert size.entities == 400
    for _ in range(9):
        size.note(size.entities, 0.01)
    assert size.entities == 5_000


def test_a_batch_is_never_empty_however_slow_entities_are() -> None:
    size = BatchSize()
    size.note(5, 600.0)
    assert size.entities == 5
    size.note(0, 0.0)
    assert size.entities > 0
