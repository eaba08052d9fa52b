"""YAML's own values, and one kind of error for a document that has none."""

from typing import Any, Final

import yaml

# Of a number. One of base 60, such as 1:30, is read digit by digit, each a larger sum than before.
_LONGEST: Final = 1_000
_NUMBERS: Final = frozenset({"tag:yaml.org,2002:int", "tag:yaml.org,2002:float"})
# What the library lets through, such as IndexError for `!!int ""` and KeyError for `!!bool x`.
_ESCAPING: Final = (LookupError, ValueError, ArithmeticError, AttributeError, TypeError)


class Loader(yaml.CSafeLoader):
    """Makes plain values only; raises YAMLError, and nothing else, for what cannot be made."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """The value of a node. Raises ConstructorError when it is not what its tag says."""
        if node.tag in _NUMBERS and len(node.value) > _LONGEST:
            raise _wrong(node, f"a number has more than {_LONGEST} characters")
        try:
            return super().construct_object(node, deep)
        except _ESCAPING:
            raise _wrong(node, f"a value is none of {node.tag}") from None


def _wrong(node: yaml.Node, problem: str) -> yaml.constructor.ConstructorError:
    return yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
