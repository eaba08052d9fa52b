"""Extraction of facts from a document: by JMESPath, or by a regular expression with a time limit.

The language of a source's extractors is pinned in its definition: `jmespath/1` is the JMESPath of
jmespath.site's specification with the functions of its community's Python library, 1.x, and those
of `functions`.
"""

import math
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Protocol

import jmespath
import msgspec
from jmespath.exceptions import JMESPathError
from jmespath.parser import ParsedResult
from msgspec import Struct

from factbook import user_patterns
from factbook.datasources.custom.functions import FactbookFunctions
from factbook.datasources.custom.interpreter import (
    LARGEST,
    BoundedInterpreter,
    TooLargeError,
    TooManyStepsError,
    json_size,
)
from factbook.errors import InputError
from factbook.facts.schema import FactType
from factbook.outbound.outcomes import Missing, Outcome
from factbook.user_patterns import UserPattern

if TYPE_CHECKING:
    import re2

LANGUAGE: Final = "jmespath/1"
LONGEST: Final = 1_000
# How many times larger than its document a result may become.
MOST_COPIES: Final = 100
PATTERN_SECONDS: Final = 0.2
EXPRESSION_SECONDS: Final = 1.0
LONGEST_SECONDS: Final = 2.0
# More than can be taken within the time, but for a single one that is far too long.
_MOST_STEPS: Final = 10_000_000
_LONGEST_GLUE: Final = 10
# Each character of a text may become a text of its own, with quotes and a comma.
_GROWTH: Final = {"to_string": 2, "split": 4}
_TAKING_EXPRESSIONS: Final = frozenset({"map", "max_by", "min_by", "sort_by"})
# The three kinds of quotes of JMESPath, each of which may hold the others.
_QUOTED: Final = re.compile(
    r"""'(?:\\.|[^'\\])*'|(?P<name>"(?:\\.|[^"\\])*")|`(?P<literal>(?:\\.|[^`\\])*)`""", re.DOTALL
)

NOTHING: Final = Missing(Outcome.NOT_APPLICABLE, "the document has no such value")
UNFIT: Final = Missing(Outcome.BAD_DEFINITION, "the expression does not fit the document")
TOO_SLOW: Final = Missing(Outcome.TRANSIENT, "the extraction took too long")
TOO_LARGE: Final = Missing(Outcome.TOO_LARGE, "what was extracted is too large for facts")


class Extractor(Protocol):
    """Extracts one value from a document."""

    def of(self, document: Any) -> Any | Missing:
        """The value, or the reason that there is none."""


class Expression(Struct, frozen=True):
    """JMESPath expression; null means no value."""

    text: str
    parsed: ParsedResult

    def of(self, document: Any) -> Any | Missing:
        """The value; the bound is a time."""
        return self._visited(document, _TimedInterpreter())

    def measured(self, document: Any, most_steps: int) -> tuple[Any | Missing, int]:
        """The value and the steps it took; the bound is a number of steps."""
        interpreter = BoundedInterpreter(most_steps)
        found = self._visited(document, interpreter)
        return found, most_steps - max(0, interpreter.left)

    def _visited(self, document: Any, interpreter: BoundedInterpreter) -> Any | Missing:
        try:
            found = interpreter.visit(self.parsed.parsed, document)
        except (TimeoutError, TooManyStepsError):
            return TOO_SLOW
        except TooLargeError:
            return TOO_LARGE
        except (JMESPathError, TypeError, ValueError, ArithmeticError):
            return UNFIT
        except RecursionError:
            return Missing(Outcome.TRANSIENT, "the document is nested too deeply")
        return NOTHING if found is None else found


class Pattern(Struct, frozen=True):
    """Regular expression on the text of a document: its first group, else the whole match.

    The type of the fact decides its meaning: a boolean tells if it occurs, a set holds the distinct
    occurrences in order, a number is read from the first occurrence.
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
        found = self.pattern.expression.search(text)
        if self.type == "boolean":
            return found is not None
        return NOTHING if found is None else _typed(_occurrence(found), self.type)

    def _all(self, text: bytes) -> Iterator[str]:
        """Every occurrence; raises TimeoutError, as each may be searched for to the end."""
        end = time.monotonic() + PATTERN_SECONDS
        for found in self.pattern.expression.finditer(text):
            if time.monotonic() > end:
                raise TimeoutError
            yield _occurrence(found)


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


def expression(text: str) -> Expression:
    """A compiled JMESPath expression; raises InputError with the mistake."""
    if len(text) > LONGEST:
        raise InputError(f"is longer than {LONGEST} characters")
    _check_quoted(text)
    try:
        parsed = jmespath.compile(text)
        copies = _copies(parsed.parsed)
    except JMESPathError as error:
        gist = " ".join(str(error).split("\n", 1)[0].split())
        raise InputError(f"is not a JMESPath expression: {gist}") from None
    except RecursionError:
        raise InputError("is nested too deeply") from None
    if copies > MOST_COPIES:
        raise InputError(f"could make a result {copies} times as large as its document")
    return Expression(text, parsed)


def pattern(text: str, type_: FactType) -> Pattern:
    """A compiled regular expression; raises InputError with the mistake."""
    if len(text) > LONGEST:
        raise InputError(f"is longer than {LONGEST} characters")
    if type_ == "object":
        raise InputError("makes texts, which a fact of type object cannot hold")
    return Pattern(user_patterns.compile_extraction(text), type_)


def extract(extractors: Mapping[str, Extractor], document: Any) -> dict[str, Any | Missing]:
    """The value that each extractor finds in the document, by fact.

    Extractors run one after another until they have taken `LONGEST_SECONDS` or filled `LARGEST`;
    later ones, and values that do not fit, give nothing.
    """
    end, room = time.monotonic() + LONGEST_SECONDS, LARGEST
    found: dict[str, Any | Missing] = {}
    for name, extractor in extractors.items():
        value = extractor.of(document) if time.monotonic() < end else TOO_SLOW
        size = 0 if isinstance(value, Missing) else json_size(value, room)
        found[name] = TOO_LARGE if size > room else value
        room -= 0 if size > room else size
    return found


def _check_quoted(text: str) -> None:
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


def _copies(node: Mapping[str, Any], function: str | None = None) -> int:
    """Upper bound of the result's size as a multiple of the document's.

    Consecutive steps multiply; the parts of a multi-select add up; converting a string to a string
    doubles its backslashes. Raises InputError for a join whose separator could be long, and for an
    expression as a value. `function` is the function whose argument the node is.
    """
    if node["type"] == "expref" and function not in _TAKING_EXPRESSIONS:
        raise InputError(f"has & outside of {', '.join(sorted(_TAKING_EXPRESSIONS))}")
    name = node.get("value") if node["type"] == "function_expression" else None
    children = [_copies(child, name) for child in node["children"] if isinstance(child, dict)]
    if node["type"].startswith("multi_select"):
        return max(1, sum(children))
    if name is not None and name not in FactbookFunctions.FUNCTION_TABLE:
        raise InputError(f"has no function {name}")
    if name == "join" and not _is_short(node["children"][0]):
        raise InputError(f"can join with a literal text of {_LONGEST_GLUE} characters only")
    return math.prod(children) * _GROWTH.get(name or "", 1)


def _is_short(glue: Mapping[str, Any]) -> bool:
    return glue["type"] == "literal" and len(str(glue["value"])) <= _LONGEST_GLUE


def _occurrence(match: "re2._Match[bytes]") -> str:
    found = match[1] if match.re.groups and match[1] is not None else match[0]
    return str(found, errors="replace")


def _typed(text: str, type_: FactType) -> Any:
    """The text converted to the type; text that does not fit is kept, and refused by the schema."""
    for read in {"integer": (int, float), "float": (float,)}.get(type_, ()):
        with suppress(ValueError):
            return read(text)
    return text
