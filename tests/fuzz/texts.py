"""Parsers of short texts: references, filters, addresses, times and lines."""

from urllib.parse import unquote

from factbook.auth import tokens, users
from factbook.catalog import ref, sets, validation
from factbook.catalog.filters import parse_filters
from factbook.clock import DAY, iso, milliseconds
from factbook.integrations import integration
from factbook.scheduling import schedule
from factbook.tools import tool
from tests.fuzz.promises import lines, text, tried
from tests.fuzz.target import Target
from tests.service import NOON


def reference(data: bytes) -> None:
    """A reference that was read is canonical, in JSON, in a path and when it is read again."""
    given, kind, namespace = lines(data, 3)
    whole = tried(ref.parse_ref, given)
    assert whole is None or not _is_ambiguous(whole)
    for found in (
        whole,
        tried(ref.parse_ref, given, kind="component"),
        tried(ref.parse_ref, given, kind=kind or None, namespace=namespace or "default"),
    ):
        if found is None:
            continue
        assert ref.EntityRef.of(*found) == found
        segment = sets.quote_ref(str(found))
        assert "/" not in segment
        assert unquote(segment) == str(found)
        if not _is_ambiguous(found):
            assert tried(ref.parse_ref, str(found)) == found
    tried(ref.split_ref, given)


def _is_ambiguous(found: ref.EntityRef) -> bool:
    """Whether the parts that somebody gave by themselves hold what separates parts."""
    return ":" in found.kind or "/" in found.kind or "/" in found.namespace


def condition(data: bytes) -> None:
    """A filter makes SQL with a parameter for each place."""
    found = tried(parse_filters, text(data).split("\n"))
    if found is not None:
        sql, values = found.sql()
        assert sql.count("?") == len(values)


def place(data: bytes) -> None:
    """The location of an entity, and whether an address is whole."""
    given = text(data)
    validation.is_absolute_url(given)
    integration.parse_source_location(given)
    integration.find_location({"metadata": {"annotations": {integration.SOURCE_LOCATION: given}}})
    found = tried(validation.parse_location, given)
    if found is not None:
        assert tried(validation.parse_location, f"{found.type}:{found.target}") == found
    entity = {"metadata": {"links": [{"url": given}], "annotations": {given: given}}, "kind": given}
    assert all(isinstance(message, str) for _, message in validation.find_strict_problems(entity))


def cron(data: bytes) -> None:
    """A line of cron names a moment after any other, within the years that can pass without one."""
    line = text(data)
    found = tried(schedule.parse_cadence, line)
    if found is not None:
        moment = schedule.find_next_time(found, NOON)
        assert NOON < moment <= NOON + 41 * 366 * DAY
        assert schedule.find_next_time(found, moment - 1) == moment


def time(data: bytes) -> None:
    """A time that was read is the same when it is written and read again."""
    given = text(data)
    for found in (
        milliseconds(given),
        tried(tool.parse_start, given, "from"),
        tried(tool.parse_end, given, "to"),
        tried(tool.parse_since, given, "since", NOON),
    ):
        if found is not None:
            assert milliseconds(iso(found)) == found
    tried(tokens.convert_lifetime, given)


def cursor_of_tool(data: bytes) -> None:
    """The cursor of a tool's page is what it was made of."""
    given = text(data)
    for parts in (2, 3):
        found = tried(tool.decode_place, given, parts)
        if found is not None:
            assert len(found) == parts
            written = "/".join(map(str, found))
            assert tried(tool.decode_place, written, parts) == found


def secret(data: bytes) -> None:
    """A token and a name are known by their form, whatever comes in their place."""
    given = text(data)
    if tokens.is_well_formed(given):
        assert tokens.is_token_shaped(given)
    tokens.hash_token(given, b"a key")
    found = tried(users.make_user_ref, given)
    if found is not None:
        assert str(ref.parse_ref(found)) == found


TARGETS = (
    Target("reference", reference, ("catalog.ref.parse_ref", "catalog.ref.split_ref"), share=80),
    Target("filter", condition, ("catalog.filters.parse_filters",), share=60),
    Target(
        "location",
        place,
        ("catalog.validation.parse_location", "integrations.integration.parse_source_location"),
        share=80,
    ),
    Target("cadence", cron, ("scheduling.schedule.parse_cadence",), share=60),
    Target("time", time, (), share=60),
    Target("tool-cursor", cursor_of_tool, (), share=40),
    Target("token", secret, (), share=20),
)
