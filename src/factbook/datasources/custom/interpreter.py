"""Evaluation of JMESPath within a number of steps.

What comes of an expression and a document is always the same, however busy the machine is: steps
are counted, and what one of them costs is known from the sizes of what it works on.
"""

from typing import Any, Final

from jmespath.visitor import TreeInterpreter

from factbook.datasources.custom.functions import FactbookFunctions

# What a text may take, in characters of JSON, and how deep a value may be.
LARGEST: Final = 1024 * 1024
DEEPEST: Final = 100
# Characters of JSON that are read in a step, or so.
_IN_A_STEP: Final = 4
_EQUALITIES: Final = frozenset({"eq", "ne"})
_MAKING_TEXTS: Final = frozenset({"to_string", "join"})
# Functions that look at all of their arguments, rather than at their members only.
_THOROUGH: Final = _MAKING_TEXTS | {"contains", "max", "min", "sort"}


class TooManyStepsError(Exception):
    """The expression takes too many steps for the document."""


class TooLargeError(Exception):
    """A text would exceed the size of any fact."""


class BoundedInterpreter(TreeInterpreter):
    """Evaluates an expression in a number of steps; raises TooManyStepsError, TooLargeError."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.left = most
        self._called = FactbookFunctions()

    def visit(self, node: Any, *args: Any, **kwargs: Any) -> Any:
        """The value of a node."""
        self._take(1)
        return super().visit(node, *args, **kwargs)

    def visit_flatten(self, node: Any, value: Any) -> Any:
        """The items of the lists in a list; the same list may be in it many times."""
        base = self.visit(node["children"][0], value)
        if not isinstance(base, list):
            return None
        self._take(sum(len(one) for one in base if isinstance(one, list)))
        return [one for part in base for one in (part if isinstance(part, list) else [part])]

    def visit_slice(self, node: Any, value: Any) -> Any:
        """A part of a list."""
        self._take(_length(value))
        return super().visit_slice(node, value)

    def visit_comparator(self, node: Any, value: Any) -> Any:
        """The comparison of two values; none of an order that they do not have."""
        left, right = (self.visit(child, value) for child in node["children"])
        if type(left) is type(right) and isinstance(left, str | list | dict):
            self._read(min(left, right, key=len))
        is_known = node["value"] in _EQUALITIES or (_has_order(left) and _has_order(right))
        return self.COMPARATOR_FUNC[node["value"]](left, right) if is_known else None

    def visit_function_expression(self, node: Any, value: Any) -> Any:
        """The result of a function."""
        name: str = node["value"]
        arguments = [self.visit(child, value) for child in node["children"]]
        if name in _MAKING_TEXTS and json_size(arguments, LARGEST) > LARGEST:
            raise TooLargeError
        if name in _THOROUGH:
            self._read(arguments)
        else:
            self._take(sum(map(_length, arguments)) // _IN_A_STEP)
        found = self._called.call_function(name, arguments)
        if name == "split":
            self._take(len(found))
        return found

    def _read(self, value: Any) -> None:
        """Count the steps that reading all of a value takes."""
        self._take(json_size(value, self.left * _IN_A_STEP) // _IN_A_STEP)

    def _take(self, steps: int) -> None:
        self.left -= steps
        if self.left < 0:
            raise TooManyStepsError


def json_size(value: Any, most: int) -> int:
    """The approximate JSON length of a value, in characters; more than `most` if it is too deep."""
    size, level = 0, [value]
    for _ in range(DEEPEST):
        below: list[Any] = []
        for one in level:
            is_long = isinstance(one, str | dict | list)
            size += 1 + (len(one) if is_long else 0)
            if isinstance(one, dict):
                size += sum(map(len, one))
            if size > most:
                return size
            if isinstance(one, dict | list):
                below.extend(one.values() if isinstance(one, dict) else one)
        if not below:
            return size
        level = below
    return most + 1


def _has_order(value: Any) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def depth(node: Any) -> int:
    """The levels of a parsed expression, each of which takes some of Python's stack."""
    children = [one for one in node["children"] if isinstance(one, dict)]
    return 1 + max(map(depth, children), default=0)


def _length(value: Any) -> int:
    return len(value) if isinstance(value, str | list | dict) else 0
