"""YAML that cannot be made into values: one kind of error, and the process goes on."""

import pytest
import yaml

from factbook import safe_yaml

LISTS = "[" * 100_000 + "]" * 100_000
MERGED = "{<<: " * 990 + "{}" + "}" * 990
MAPPED = "{a: " * 5_000 + "1" + "}" * 5_000


def load(text: str) -> object:
    return yaml.load(text, safe_yaml.Loader)  # noqa: S506 - the loader makes plain values only


def test_what_is_nested_too_deeply_is_an_error_of_yaml(subtests: pytest.Subtests) -> None:
    for text in [LISTS, MERGED, MAPPED]:
        with subtests.test(text=text), pytest.raises(yaml.YAMLError, match="nested"):
            load(text)


def test_what_stands_side_by_side_is_not_nested() -> None:
    assert load("[[], {a: 1}]\n" + "# none\n") == [[], {"a": 1}]
    assert load("- [1]\n" * 2_000) == [[1]] * 2_000
    assert load("- &a [1]\n" + "- *a\n" * 2_000) == [[1]] * 2_001
