"""Extraction of facts from a document by JMESPath or pattern, and templates of values."""

import math
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import quote

import jmespath
import msgspec
from jmespath.exceptions import JMESPathError
from jmespath.functions import Functions, signature
from jmespath.parser import ParsedResult
from jmespath.visitor import TreeInterpreter
from msgspec import Struct

from factbook import user_patterns
from factbook.errors import InputError
from factbook.facts.schema import FactType, moment_of_text
from factbook.outbound.client import has_dot_segments
from factbook.outbound.outcomes import Missing, Outcome
from factbook.user_patterns import UserPattern

if TYPE_CHECKING:
    from jmespath.functions import _Signature
if TYPE_CHECKING:
    import re2

_TEXT_ARGUMENT: Final["_Signature"] = {"types": ["string"]}
_NUMBER_ARGUMENT: Final["_Signature"] = {"types": ["number"]}
_DAY_SECONDS: Final = 86_400
# Largest text, in characters of JSON, and deepest value.
LARGEST_RESULT: Final = 1024 * 1024
DEEPEST_RESULT: Final = 100
# Approximate characters of JSON read in one step.
_IN_A_STEP: Final = 4
_EQUALITIES: Final = frozenset({"eq", "ne"})
_TEXT_MAKERS: Final = frozenset({"to_string", "join"})
# Functions that read their arguments in full, not only the top-level members.
_WALKING_FUNCTIONS: Final = _TEXT_MAKERS | {"contains", "max", "min", "sort"}
LANGUAGE: Final = "jmespath/1"
LONGEST_EXPRESSION: Final = 1_000
# Largest result, as a multiple of the document's size.
MOST_COPIES: Final = 100
PATTERN_SECONDS: Final = 0.2
EXPRESSION_SECONDS: Final = 1.0
LONGEST_SECONDS: Final = 2.0
# More steps than fit the time limit, unless a single step is far too long.
_MOST_STEPS: Final = 10_000_000
_LONGEST_GLUE: Final = 10
# Each character may become a separate string, with quotes and a comma.
_GROWTH: Final = {"to_string": 2, "split": 4}
_TAKING_EXPRESSIONS: Final = frozenset({"map", "max_by", "min_by", "sort_by"})
# The three JMESPath quotes; each may contain the others.
_QUOTED: Final = re.compile(
    r"""'(?:\\.|[^'\\])*'|(?P<name>"(?:\\.|[^"\\])*")|`(?P<literal>(?:\\.|[^`\\])*)`""", re.DOTALL
)
NO_SUCH_VALUE: Final = Missing(Outcome.NOT_APPLICABLE, "the document has no such value")
UNFIT_EXPRESSION: Final = Missing(
    Outcome.BAD_DEFINITION, "the expression does not fit the document"
)
TOO_SLOW: Final = Missing(Outcome.TRANSIENT, "the extraction took too long")
TOO_LARGE_VALUE: Final = Missing(Outcome.TOO_LARGE, "what was extracted is too large for facts")
LONGEST_TEMPLATE: Final = 2_000
_LONGEST_PLACED: Final = 1_000
_PLACEHOLDER: Final = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
Escape = Callable[[str], str]


class FactbookFunctions(Functions):
    """Standard JMESPath functions and Factbook's own; they raise ValueError and ArithmeticError."""

    @signature(_TEXT_ARGUMENT, _TEXT_ARGUMENT)
    def _func_split(self, text: str, separator: str) -> list[str]:
        return text.split(separator)

    @signature(_TEXT_ARGUMENT)
    def _func_to_epoch(self, time: str) -> int | float:
        return _plain_number(moment_of_text(time).timestamp())

    @signature(_NUMBER_ARGUMENT)
    def _func_from_epoch(self, seconds: float) -> str:
        return _format_time(datetime.fromtimestamp(seconds, UTC))

    @signature(_TEXT_ARGUMENT, _TEXT_ARGUMENT)
    def _func_days_between(self, start: str, end: str) -> int | float:
        return _plain_number(
            (moment_of_text(end) - moment_of_text(start)).total_seconds() / _DAY_SECONDS
        )

    @signature(_TEXT_ARGUMENT, _NUMBER_ARGUMENT)
    def _func_add_days(self, time: str, days: float) -> str:
        return _format_time(moment_of_text(time) + timedelta(days=days))


def _plain_number(number: float) -> int | float:
    return int(number) if number.is_integer() else number


def _format_time(time: datetime) -> str:
    return f"{time.astimezone(UTC):%Y-%m-%dT%H:%M:%S}Z"


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
        self._take(_value_length(value))
        return super().visit_slice(node, value)

    def visit_comparator(self, node: Any, value: Any) -> Any:
        """The result of a comparison; null if the values have no order."""
        left, right = (self.visit(child, value) for child in node["children"])
        if type(left) is type(right) and isinstance(left, str | list | dict):
            self._read(min(left, right, key=len))
        is_known = node["value"] in _EQUALITIES or (_is_ordered(left) and _is_ordered(right))
        return self.COMPARATOR_FUNC[node["value"]](left, right) if is_known else None

    def visit_function_expression(self, node: Any, value: Any) -> Any:
        """The result of a function."""
        name: str = node["value"]
        arguments = [self.visit(child, value) for child in node["children"]]
        if name in _TEXT_MAKERS and estimate_json_size(arguments, LARGEST_RESULT) > LARGEST_RESULT:
            raise TooLargeError
        if name in _WALKING_FUNCTIONS:
            self._read(arguments)
        else:
            self._take(sum(map(_value_length, arguments)) // _IN_A_STEP)
        found = self._called.call_function(name, arguments)
        if name == "split":
            self._take(len(found))
        return found

    def _read(self, value: Any) -> None:
        """Count the steps needed to read a value in full."""
        self._take(estimate_json_size(value, self.left * _IN_A_STEP) // _IN_A_STEP)

    def _take(self, steps: int) -> None:
        self.left -= steps
        if self.left < 0:
            raise TooManyStepsError


def estimate_json_size(value: Any, most: int) -> int:
    """The approximate JSON length of a value, in characters; more than `most` if it is too deep."""
    size, level = 0, [value]
    for _ in range(DEEPEST_RESULT):
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


def _is_ordered(value: Any) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def expression_depth(node: Any) -> int:
    """The nesting depth of a parsed expression; each level uses some of Python's stack."""
    children = [one for one in node["children"] if isinstance(one, dict)]
    return 1 + max(map(expression_depth, children), default=0)


def _value_length(value: Any) -> int:
    return len(value) if isinstance(value, str | list | dict) else 0


class Extractor(Protocol):
    """Extracts one value from a document."""

    def of(self, document: Any) -> Any | Missing:
        """The value, or the reason for a missing one."""


class Expression(Struct, frozen=True):
    """JMESPath expression; null means no value."""

    text: str
    parsed: ParsedResult

    def of(self, document: Any) -> Any | Missing:
        """The value, evaluated within a time limit."""
        return self._visited(document, _TimedInterpreter())

    def measured(self, document: Any, most_steps: int) -> tuple[Any | Missing, int]:
        """The value and the number of steps, evaluated within a step limit."""
        interpreter = BoundedInterpreter(most_steps)
        found = self._visited(document, interpreter)
        return found, most_steps - max(0, interpreter.left)

    def _visited(self, document: Any, interpreter: BoundedInterpreter) -> Any | Missing:
        try:
            found = interpreter.visit(self.parsed.parsed, document)
        except (TimeoutError, TooManyStepsError):
            return TOO_SLOW
        except TooLargeError:
            return TOO_LARGE_VALUE
        except (JMESPathError, TypeError, ValueError, ArithmeticError):
            return UNFIT_EXPRESSION
        except RecursionError:
            return Missing(Outcome.TRANSIENT, "the document is nested too deeply")
        return NO_SUCH_VALUE if found is None else found


class Pattern(Struct, frozen=True):
    """Regular expression on the text of a document: its first group, else the whole match.

    The fact type decides the meaning: a boolean is true if the pattern occurs, a set has the
    distinct occurrences in order, a number is parsed from the first occurrence.
    """

    pattern: UserPattern
    type: FactType

    def of(self, document: Any) -> Any | Missing:
        is_text = isinstance(document, str)
        text = document.encode() if is_text else msgspec.json.encode(document)
        if len(text) > self.pattern.longest:
            return TOO_SLOW
        if self.type == "set":
            try:
                return list(dict.fromkeys(self._all(text)))
            except TimeoutError:
                return TOO_SLOW
        match = self.pattern.expression.search(text)
        if self.type == "boolean":
            return match is not None
        if match is None:
            return NO_SUCH_VALUE
        value = _matched_text(match)
        for convert in {"integer": (int, float), "float": (float,)}.get(self.type, ()):
            with suppress(ValueError):
                return convert(value)
        # Text that does not fit is kept, and refused by the schema.
        return value

    def _all(self, text: bytes) -> Iterator[str]:
        """Every occurrence; raises TimeoutError, as each search may scan the whole text."""
        end = time.monotonic() + PATTERN_SECONDS
        for found in self.pattern.expression.finditer(text):
            if time.monotonic() > end:
                raise TimeoutError
            yield _matched_text(found)


class _TimedInterpreter(BoundedInterpreter):
    """Evaluates an expression within a time limit."""

    def __init__(self) -> None:
        super().__init__(_MOST_STEPS)
        self._end = time.monotonic() + EXPRESSION_SECONDS

    def visit(self, node: Any, *args: Any, **kwargs: Any) -> Any:
        """The value of a node; raises TimeoutError."""
        if time.monotonic() > self._end:
            raise TimeoutError
        return super().visit(node, *args, **kwargs)


def compile_expression(text: str) -> Expression:
    """A compiled JMESPath expression; raises InputError with the mistake."""
    if len(text) > LONGEST_EXPRESSION:
        raise InputError(f"is longer than {LONGEST_EXPRESSION} characters")
    _check_quoted_text(text)
    try:
        parsed = jmespath.compile(text)
        copies = _bound_copies(parsed.parsed)
    except JMESPathError as error:
        gist = " ".join(str(error).split("\n", 1)[0].split())
        raise InputError(f"is not a JMESPath expression: {gist}") from None
    except RecursionError:
        raise InputError("is nested too deeply") from None
    if copies > MOST_COPIES:
        raise InputError(f"could make a result {copies} times as large as its document")
    return Expression(text, parsed)


def compile_pattern(text: str, type_: FactType) -> Pattern:
    """A compiled regular expression; raises InputError with the mistake."""
    if len(text) > LONGEST_EXPRESSION:
        raise InputError(f"is longer than {LONGEST_EXPRESSION} characters")
    if type_ == "object":
        raise InputError("makes texts, which a fact of type object cannot hold")
    return Pattern(user_patterns.compile_extraction(text), type_)


def extract_values(extractors: Mapping[str, Extractor], document: Any) -> dict[str, Any | Missing]:
    """The value that each extractor finds in the document, by fact.

    Extractors run one after another until they have taken `LONGEST_SECONDS` or filled `LARGEST`;
    later ones, and values that do not fit, are missing.
    """
    end, room = time.monotonic() + LONGEST_SECONDS, LARGEST_RESULT
    found: dict[str, Any | Missing] = {}
    for name, extractor in extractors.items():
        value = extractor.of(document) if time.monotonic() < end else TOO_SLOW
        size = 0 if isinstance(value, Missing) else estimate_json_size(value, room)
        found[name] = TOO_LARGE_VALUE if size > room else value
        room -= 0 if size > room else size
    return found


def _check_quoted_text(text: str) -> None:
    r"""Refuse quoted text that is not JSON.

    The library accepts `text` in back quotes with a warning, and a name with a lone surrogate, such
    as "\ud800", which no later step can store.
    """
    for found in _QUOTED.finditer(text):
        name, literal = found["name"], found["literal"]
        try:
            if name is not None:
                msgspec.json.decode(name)
            elif literal is not None:
                msgspec.json.decode(literal.replace("\\`", "`").strip())
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
            what = 'a literal that has to be JSON, such as `"text"`'
            raise InputError(f"has {what if name is None else 'a name that is no text'}") from None


def _bound_copies(node: Mapping[str, Any], function: str | None = None) -> int:
    """Upper bound of the result's size as a multiple of the document's.

    Consecutive steps multiply; the parts of a multi-select add up; converting a string to a string
    doubles its backslashes. Raises InputError for a join whose separator could be long, and for an
    expression as a value. `function` is the function whose argument the node is.
    """
    if node["type"] == "expref" and function not in _TAKING_EXPRESSIONS:
        raise InputError(f"has & outside of {', '.join(sorted(_TAKING_EXPRESSIONS))}")
    name = node.get("value") if node["type"] == "function_expression" else None
    children = [_bound_copies(child, name) for child in node["children"] if isinstance(child, dict)]
    if node["type"].startswith("multi_select"):
        return max(1, sum(children))
    if name is not None and name not in FactbookFunctions.FUNCTION_TABLE:
        raise InputError(f"has no function {name}")
    if name == "join":
        glue = node["children"][0]
        if glue["type"] != "literal" or len(str(glue["value"])) > _LONGEST_GLUE:
            raise InputError(f"can join with a literal text of {_LONGEST_GLUE} characters only")
    return math.prod(children) * _GROWTH.get(name or "", 1)


def _matched_text(match: "re2._Match[bytes]") -> str:
    found = match[1] if match.re.groups and match[1] is not None else match[0]
    return str(found, errors="replace")


class NoValueError(Exception):
    """The entity lacks a value that a template needs."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.missing = Missing(Outcome.NO_ANNOTATION, detail)


class Template(Struct, frozen=True):
    """Text with placeholders; `parts` alternates between plain texts and expressions."""

    text: str
    parts: tuple[str | Expression, ...]

    def render(self, entity: Mapping[str, Any], escape: Escape) -> str:
        """The text for an entity; raises NoValueError if the entity lacks one of its values."""
        return "".join(
            part if isinstance(part, str) else escape(_placed_value(part, entity))
            for part in self.parts
        )


def parse_template(text: str) -> Template:
    """The template in a text; raises InputError with the mistake."""
    if len(text) > LONGEST_TEMPLATE:
        raise InputError(f"is longer than {LONGEST_TEMPLATE} characters")
    pieces = _PLACEHOLDER.split(text)
    if any("{{" in plain or "}}" in plain for plain in pieces[::2]):
        raise InputError("has {{ without }}, or }} without {{")
    parts: list[str | Expression] = []
    for i, piece in enumerate(pieces):
        if i % 2:
            parts.append(compile_expression(piece.strip()))
        elif piece:
            parts.append(piece)
    return Template(text, tuple(parts))


def escape_path(value: str) -> str:
    """A value as one segment of a path; raises NoValueError for one that would climb out of it."""
    if has_dot_segments(value):
        raise NoValueError("a value that a path cannot hold")
    return quote(value, safe="")


def keep_value(value: str) -> str:
    """A value unchanged, for JSON or a query, which is encoded later."""
    return value


def escape_header(value: str) -> str:
    """A value in a header, which holds printable ASCII only."""
    if not value.isascii() or _CONTROL.search(value):
        raise NoValueError("a value that a header cannot hold")
    return value


def _placed_value(expression: Expression, entity: Mapping[str, Any]) -> str:
    found = expression.of(entity)
    match found:
        case bool():
            return "true" if found else "false"
        case str() | int() | float() if found != "":
            text = str(found)
            if len(text) <= _LONGEST_PLACED:
                return text
            raise NoValueError(f"{expression.text} has more than {_LONGEST_PLACED} characters")
    raise NoValueError(f"the entity has no {expression.text}")
