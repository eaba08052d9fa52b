"""Random rules over two sources, and random facts and reasons for them."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from factbook.facts.schema import REASONS, FactType
from tests.checks.making import NOW

TEXTS = ("", "a", "ab", "b", "main", "1.4")
ITEMS = ("a", "b", "main", 1, 2.5)
NUMBERS = (-1, 0, 1, 2, 2.5, 10)
DURATIONS = tuple({"days": days} for days in (1, 7, 30))
MOMENT = datetime.fromtimestamp(NOW / 1000, UTC)
TIMES = tuple((MOMENT + timedelta(days=days)).isoformat() for days in (-31, -30, -7, 0, 1, 29, 30))

# The facts of each of the sources, by type, and the values that they take.
VALUES: Mapping[FactType, st.SearchStrategy[Any]] = {
    "boolean": st.booleans(),
    "integer": st.sampled_from((-1, 0, 1, 2, 10)),
    "float": st.sampled_from(NUMBERS),
    "string": st.sampled_from(TEXTS),
    "datetime": st.sampled_from(TIMES),
    "set": st.lists(st.sampled_from(ITEMS), unique=True, max_size=3),
}
SOURCES = ("one", "two")
GROUPS = ("first", "second")

_NUMBER = st.sampled_from(NUMBERS)
_TEXT = st.sampled_from(TEXTS[1:])
_LIST = st.lists(st.sampled_from((*TEXTS, *NUMBERS)), min_size=1, max_size=3)
_ITEMS = st.lists(st.sampled_from(ITEMS), min_size=1, max_size=3)
_SIZE = st.integers(0, 3)
_TIME = st.sampled_from((*TIMES, *DURATIONS))
_DURATION = st.sampled_from(DURATIONS)
_ORDER = ("lessThan", "lessThanInclusive", "greaterThan", "greaterThanInclusive")
_OPERATORS: Mapping[str, Mapping[str, st.SearchStrategy[Any]]] = {
    "boolean": dict.fromkeys(("equal", "notEqual"), st.booleans()),
    "integer": dict.fromkeys(("equal", "notEqual", *_ORDER), _NUMBER),
    "float": dict.fromkeys(("equal", "notEqual", *_ORDER), _NUMBER),
    "string": {
        **dict.fromkeys(("equal", "notEqual", "contains", "doesNotContain"), _TEXT),
        **dict.fromkeys(("startsWith", "endsWith"), _TEXT),
        **dict.fromkeys(("in", "notIn"), st.lists(_TEXT, min_size=1, max_size=3)),
        "matches": st.sampled_from(("^a", "b$", "[0-9]", "a.*n|x")),
        **dict.fromkeys(("isEmpty", "isNotEmpty"), st.none()),
        **dict.fromkeys(("sizeAtLeast", "sizeAtMost"), _SIZE),
    },
    "datetime": {
        **dict.fromkeys(("before", "after"), _TIME),
        **dict.fromkeys(("olderThan", "newerThan"), _DURATION),
    },
    "set": {
        **dict.fromkeys(("contains", "doesNotContain"), st.sampled_from(ITEMS)),
        **dict.fromkeys(("containsAny", "containsAll"), _ITEMS),
        "anyMatches": st.sampled_from(("^a", "b$", "[0-9]", "a.*n|x")),
        **dict.fromkeys(("isEmpty", "isNotEmpty"), st.none()),
        **dict.fromkeys(("sizeAtLeast", "sizeAtMost"), _SIZE),
    },
}
_COMPARED = {
    "boolean": ("equal", "notEqual"),
    "integer": ("equal", *_ORDER),
    "float": ("notEqual", *_ORDER),
    "string": ("equal", "notEqual", "contains", "startsWith"),
    "datetime": ("before", "after"),
    "set": ("containsAny", "containsAll"),
}


@st.composite
def leaves(draw: st.DrawFn) -> dict[str, Any]:
    """A comparison that fits the type of its fact, or a question about knowledge."""
    fact = draw(_references())
    type_ = fact["fact"].rpartition(".")[2]
    value: Any = None
    match draw(st.sampled_from(("value", "value", "value", "other", "knowledge"))):
        case "knowledge":
            operator = draw(st.sampled_from(("isKnown", "isUnknown", "reasonIs")))
            if operator == "reasonIs":
                value = draw(st.sampled_from(list(REASONS)))
        case "other":
            operator = draw(st.sampled_from(_COMPARED[type_]))
            value = draw(_references(type_))
        case _:
            operator = draw(st.sampled_from(list(_OPERATORS[type_])))
            value = draw(_OPERATORS[type_][operator])
    return {**fact, "operator": operator} | ({} if value is None else {"value": value})


@st.composite
def _references(draw: st.DrawFn, type_: str | None = None) -> dict[str, Any]:
    type_ = type_ or draw(st.sampled_from(list(VALUES)))
    group = draw(st.sampled_from(GROUPS))
    return {"source": draw(st.sampled_from(SOURCES)), "fact": f"{group}.{type_}"}


def _nodes(parts: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    lists = st.lists(parts, min_size=1, max_size=3)
    return st.one_of(
        lists.map(lambda found: {"all": found}),
        lists.map(lambda found: {"any": found}),
        parts.map(lambda found: {"not": found}),
    )


def rules() -> st.SearchStrategy[dict[str, Any]]:
    """Any rule."""
    return st.recursive(leaves(), _nodes, max_leaves=6)


def facts() -> st.SearchStrategy[dict[str, dict[str, Any]]]:
    """Values of any of the facts, by source; a source may be missing."""
    names = {f"{group}.{type_}": VALUES[type_] for group in GROUPS for type_ in VALUES}
    one = st.fixed_dictionaries({}, optional=names)
    return st.fixed_dictionaries({}, optional=dict.fromkeys(SOURCES, one))


def every_fact() -> st.SearchStrategy[dict[str, dict[str, Any]]]:
    """Values of all facts of both sources."""
    names = {f"{group}.{type_}": VALUES[type_] for group in GROUPS for type_ in VALUES}
    return st.fixed_dictionaries(dict.fromkeys(SOURCES, st.fixed_dictionaries(names)))


def reasons() -> st.SearchStrategy[dict[str, dict[str, str]]]:
    """Reasons for what is missing, by fact, by group or for everything, by source."""
    places = [f"{group}.{type_}" for group in GROUPS for type_ in VALUES]
    one = st.dictionaries(
        st.sampled_from([*places, *GROUPS, ""]), st.sampled_from(list(REASONS)), max_size=4
    )
    return st.fixed_dictionaries({}, optional=dict.fromkeys(SOURCES, one))
