"""What no schema can say about good requests, for schemathesis: texts that mean something."""

import base64
import json
import os
import sys
import unicodedata
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

import schemathesis
from hypothesis import strategies as st
from schemathesis.generation.meta import TestPhase

from factbook import invisible

PRINTABLE = r"\p{L}\p{M}\p{N}\p{P}\p{S}"
KNOWN = "component:default/payments"
SOME_TEXT = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=8)
PLACES = st.lists(SOME_TEXT | st.none(), max_size=2)


def encoded(cursor: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(cursor).encode()).decode()


def query_cursor(values: list[str | None], ref: str, backwards: bool) -> str:
    return encoded(
        {
            "orderFields": [{"field": "metadata.name", "order": "desc"} for _ in values],
            "orderFieldValues": [*values, ref],
            "filter": ["kind=component"],
            "isPrevious": backwards,
            "totalItems": 3,
        }
    )


SIGNS = st.characters(categories=["L", "M", "N", "P", "S"], include_characters=" ")
NAMES = st.text(SIGNS, min_size=1, max_size=64).filter(
    lambda text: text.strip() and not {"/", ":"} & set(text) and not invisible.has(text)
)

REFERENCES = st.one_of(
    st.just(KNOWN),
    st.builds("{}:{}/{}".format, SOME_TEXT, SOME_TEXT, SOME_TEXT),
    st.builds("{}:{}".format, SOME_TEXT, SOME_TEXT),
)
schemathesis.openapi.format("entity-reference", REFERENCES)
schemathesis.openapi.format("owner-reference", REFERENCES | st.just(""))
schemathesis.openapi.format("group-reference", REFERENCES)
schemathesis.openapi.format(
    "after-cursor",
    st.builds(
        lambda limit, values, ref: encoded({"limit": limit, "after": [*values, ref]}),
        st.integers(1, 100),
        PLACES,
        REFERENCES,
    ),
)
schemathesis.openapi.format(
    "query-cursor", st.builds(query_cursor, PLACES, REFERENCES, st.booleans())
)
schemathesis.openapi.format(
    "data-source-id",
    st.sampled_from(["coverage", "owners", "techdocs", "other"])
    | st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", fullmatch=True),
)
schemathesis.openapi.format(
    "moment",
    st.datetimes(datetime(1970, 1, 2), datetime(2100, 1, 1), timezones=st.just(UTC)).map(  # noqa: DTZ001 - hypothesis wants them so
        datetime.isoformat
    ),
)
schemathesis.openapi.format(
    "connection-name",
    st.sampled_from(["ci", "other"]) | st.from_regex(r"[a-z0-9][a-z0-9._-]{0,79}", fullmatch=True),
)
schemathesis.openapi.format(
    "connection-address", st.sampled_from(["https://ci.example.com/api", "https://other.example"])
)
schemathesis.openapi.format(
    "connection-header", st.sampled_from(["authorization", "x-token", "Private-Token"])
)
schemathesis.openapi.format(
    "webhook-address",
    st.sampled_from(["https://events.example.com/factbook", "https://other.example"]),
)
schemathesis.openapi.format("time-zone", st.sampled_from(["UTC", "Europe/Paris"]))
schemathesis.openapi.format("set-id", st.sampled_from(["payments", "other"]) | NAMES)
schemathesis.openapi.format("entity-name", NAMES)
schemathesis.openapi.format("token-name", NAMES)
schemathesis.openapi.format("printable", st.text(SIGNS, min_size=1))
schemathesis.openapi.format(
    "entity-uid", st.sampled_from(os.environ["KNOWN_UIDS"].split()) | st.uuids().map(str)
)


@schemathesis.hook
def before_load_schema(context: schemathesis.HookContext, raw_schema: dict[str, Any]) -> None:
    """Write out Unicode's classes, of which schemathesis knows some Latin letters alone."""
    write_out(raw_schema, printable_signs())


def write_out(value: Any, signs: str) -> None:
    """Replace the classes in every pattern below a value.

    Generating from such a pattern takes seconds, so a string without a format gets a format that
    has a strategy.
    """
    if isinstance(value, dict) and PRINTABLE in str(value.get("pattern")):
        value["pattern"] = value["pattern"].replace(PRINTABLE, signs)
        value.setdefault("format", "printable")
    for each in value.values() if isinstance(value, dict) else value:
        if isinstance(each, dict | list):
            write_out(each, signs)


def printable_signs() -> str:
    """The printable characters but the space, as ranges of a regular expression's class."""
    points = range(ord("!"), sys.maxunicode + 1)
    runs = groupby(points, lambda point: chr(point).isprintable())
    found = [list(run) for printable, run in runs if printable]
    return "".join(f"{chr(run[0])}-{chr(run[-1])}" for run in found)


@schemathesis.hook
def filter_case(context: schemathesis.HookContext, case: schemathesis.Case[Any]) -> bool:
    """Leave out what no schema can rule out."""
    return not (
        is_after_another_order(case.query)
        or names_too_many(case.query)
        or holds_one_twice(case.body)
        or revokes_itself(case)
        or only_tries_to_delete(case)
        or asks_for_checks_of_a_write(case.query)
        or leaves_one_empty(case)
    )


def leaves_one_empty(case: schemathesis.Case[Any]) -> bool:
    """An empty parameter of a read means that it was left out, whatever its form."""
    query = case.query if isinstance(case.query, dict) else {}
    values = [each if isinstance(each, list) else [each] for each in query.values()]
    return case.method.upper() == "GET" and any("" in each for each in values)


def names_too_many(query: Any) -> bool:
    """At most 20 fields are looked into, of which one text may name several by its commas."""
    named = query.get("fullTextFilterFields", []) if isinstance(query, dict) else []
    values = named if isinstance(named, list) else [named]
    return sum(str(value).count(",") + 1 for value in values) > 20


def is_after_another_order(query: Any) -> bool:
    """`after` belongs to the order with which it was given."""
    if not isinstance(query, dict) or "after" not in query:
        return False
    try:
        place = json.loads(base64.urlsafe_b64decode(query["after"]))["after"]
    except (ValueError, TypeError, KeyError):
        return False
    order = query.get("order") or []
    return len(place) != 1 + (len(order) if isinstance(order, list) else 1)


def holds_one_twice(body: Any) -> bool:
    """A push holds each reference once."""
    items = body.get("items") if isinstance(body, dict) else None
    if not isinstance(items, list):
        return False
    try:
        refs = [reference(item) for item in items]
    except (AttributeError, KeyError, TypeError):
        return False
    return len(refs) > len(set(refs))


def revokes_itself(case: schemathesis.Case[Any]) -> bool:
    """Without its token the rest of the run would be refused."""
    named = (case.path_parameters or {}).get("id")
    return case.method == "DELETE" and named in os.environ["OWN_TOKEN"].split()


def only_tries_to_delete(case: schemathesis.Case[Any]) -> bool:
    """In a row of calls every DELETE is taken for one that deletes, a dry run too."""
    stateful = case.meta is not None and case.meta.phase.name is TestPhase.STATEFUL
    tried = isinstance(case.query, dict) and is_set(case.query.get("dryRun"))
    return stateful and case.method == "DELETE" and tried


def asks_for_checks_of_a_write(query: Any) -> bool:
    """`checks` belongs to a dry run."""
    if not isinstance(query, dict):
        return False
    return is_set(query.get("checks")) and not is_set(query.get("dryRun"))


def is_set(value: Any) -> bool:
    return value not in (None, False, "false")


def reference(entity: dict[str, Any]) -> str:
    metadata = entity["metadata"]
    name = unicodedata.normalize("NFC", metadata["name"].strip()).lower()
    return f"{entity['kind'].lower()}:{metadata.get('namespace', 'default')}/{name}"
