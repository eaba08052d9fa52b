"""The list of faults fits the current code."""

import ast
from collections import Counter

import pytest

from tests.planted import faults
from tests.planted.faults import ROOT
from tests.planted.nearest import files_of


def test_each_fault_applies_once_and_leaves_code_that_compiles() -> None:
    for fault in faults.faults().values():
        text = fault.apply((ROOT / fault.path).read_text("utf-8"))
        assert fault.new != fault.old, fault.id
        ast.parse(text)


def test_all_faults_can_be_planted_at_once() -> None:
    texts: dict[str, str] = {}
    for fault in faults.faults().values():
        text = texts.get(fault.path) or (ROOT / fault.path).read_text("utf-8")
        texts[fault.path] = fault.apply(text)
    assert all(ast.parse(text).body for text in texts.values())


@pytest.mark.slow
def test_each_fault_has_tests_in_its_room() -> None:
    for fault in faults.faults().values():
        assert files_of(ROOT, fault).all, fault.id


def test_each_fault_has_a_recorded_result() -> None:
    assert faults.results().keys() == faults.faults().keys()


def test_there_are_enough_faults_of_each_kind() -> None:
    kinds = Counter(fault.kind for fault in faults.faults().values())
    assert kinds["sql"] >= 8
    assert kinds["permission"] >= 6
    assert kinds["migration"] >= 4
    assert kinds["drawn"] >= 20
    assert kinds.total() >= 40
