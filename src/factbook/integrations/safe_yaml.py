"""YAML 1.2 with its core schema, read as plain values; every failure is a YAMLError.

Source: YAML 1.2.2, chapter 10.3. By itself the library reads YAML 1.1, where `on` is true, `0755`
is 493, `12:30:45` is 45045 and U+2028 ends a line.
"""

from typing import Any, Final

import yaml

# Of a number. One of base 60, such as 1:30, is read digit by digit, each a larger sum than before.
_LONGEST: Final = 1_000
_NUMBERS: Final = frozenset({"tag:yaml.org,2002:int", "tag:yaml.org,2002:float"})
# The library calls itself for what is nested; much deeper, the process has no room for that.
_DEEPEST: Final = 1_000
# What the library lets through, such as IndexError for `!!int ""` and KeyError for `!!bool x`.
_ESCAPING: Final = (LookupError, ValueError, ArithmeticError, AttributeError, TypeError)


class Loader(yaml.CSafeLoader):
    """Constructs plain values only; raises YAMLError, and nothing else, for everything else."""

    _depth = 0

    def descend_resolver(self, current_node: Any, current_index: Any) -> None:
        """Called before a node is read. Raises ComposerError if it is nested too deeply."""
        if self._depth > _DEEPEST:
            problem = f"it is nested more than {_DEEPEST} deep"
            mark = current_node.start_mark
            raise yaml.composer.ComposerError(None, None, problem, mark)
        self._depth += 1
        super().descend_resolver(current_node, current_index)

    def ascend_resolver(self) -> None:
        """Called after a node is read."""
        self._depth -= 1
        super().ascend_resolver()

    def construct_document(self, node: yaml.Node) -> Any:
        """The value of a document. Raises ConstructorError if it is nested too deeply."""
        try:
            return super().construct_document(node)
        except RecursionError:
            raise _wrong(node, "it is nested too deeply") from None

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """The value of a node. Raises ConstructorError if it does not match its tag."""
        if node.tag in _NUMBERS and len(node.value) > _LONGEST:
            raise _wrong(node, f"a number has more than {_LONGEST} characters")
        try:
            return super().construct_object(node, deep)
        except _ESCAPING:
            raise _wrong(node, f"a value is none of {node.tag}") from None


def _wrong(node: yaml.Node, problem: str) -> yaml.constructor.ConstructorError:
    return yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
