"""Formatting of times, figures and references for people."""

import math
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import msgspec

from factbook.catalog import ref as refs
from factbook.catalog.validation import is_absolute_url
from factbook.clock import ago, iso, span
from factbook.errors import InputError

_KINDS = {
    "airesource": "AI resource",
    "api": "API",
    "component": "Component",
    "domain": "Domain",
    "group": "Group",
    "location": "Location",
    "resource": "Resource",
    "system": "System",
    "template": "Template",
    "user": "User",
}
# The first that is named counts: most name others, too.
_BROWSERS = (
    ("Edg/", "Edge"),
    ("Firefox/", "Firefox"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
    ("curl/", "curl"),
)
_SYSTEMS = (
    ("Windows", "Windows"),
    ("Android", "Android"),
    ("iPhone", "iOS"),
    ("iPad", "iPadOS"),
    ("Mac OS X", "macOS"),
    ("Linux", "Linux"),
)

_LONGEST_ADDRESS = 2_000


def number(value: float) -> str:
    """Format a figure with thousands separators: `12,345` or `0.25`."""
    if isinstance(value, int) or value == int(value):
        return f"{int(value):,}"
    return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.1f}"


def finite(value: float | None) -> float | None:
    """The value as a float; None if unknown, infinite or too large for one."""
    try:
        figure = None if value is None else float(value)
    except OverflowError:
        return None
    return figure if figure is not None and math.isfinite(figure) else None


def figure(value: float | None) -> str:
    """Format a value, also very large and small ones; a dash if unknown."""
    value = finite(value)
    if value is None:
        return "—"
    if value == 0 or 1e-3 <= abs(value) < 1e15:
        return number(value)
    return f"{value:.4g}".replace("e+", "e")


def quantity(value: float | None, unit: str) -> str:
    """Format a value with its unit."""
    return figure(value) + (unit if unit == "%" or not unit else f" {unit}")


def counted(count: int, one: str, many: str | None = None) -> str:
    """Format a count with its noun: `1 entity`, `2 entities`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def percent(part: float, whole: float) -> str:
    """Format a share: 100 % only for all, 0 % only for none."""
    if not whole:
        return "—"
    share = 100 * part / whole
    if 0 < share < 1:
        return "<1%"
    return f"{int(share)}%" if share > 99 else f"{round(share)}%"


def entity_path(ref: str) -> str:
    """Path of an entity's page, by its canonical reference."""
    kind, _, rest = ref.partition(":")
    namespace, _, name = rest.partition("/")
    return f"/catalog/{segment(kind)}/{segment(namespace)}/{segment(name)}"


def segment(text: str) -> str:
    """Encode a text as one segment of a path."""
    return quote(text, safe="")


def short_ref(ref: str) -> str:
    """Shorten a reference by its defaults: `component:web`, `group:ops/team`."""
    return ref.replace(":default/", ":", 1)


def short_owner(ref: str) -> str:
    """Shorten the reference of an owner by its default: a group of the default namespace."""
    return short_ref(ref).removeprefix("group:")


def reference(text: str, kind: str | None, namespace: str) -> str | None:
    """Canonical reference that a text means, with these defaults; None if it is none."""
    try:
        return str(refs.parse_ref(text, kind=kind, namespace=namespace)) if text else None
    except InputError:
        return None


def name_of(ref: str) -> str:
    """Name in a reference."""
    return ref.rpartition("/")[2]


def naturally(title: str) -> str:
    """Sort key for titles in natural order: "node-2" comes before "node-10"."""
    return re.sub(r"\d+", lambda digits: digits[0].zfill(12), title.casefold())


def external(text: object) -> str | None:
    """The text if it is a linkable address of another site, else None.

    Schemes other than http and https could run a script, or mean something on this computer.
    """
    if not isinstance(text, str) or len(text) > _LONGEST_ADDRESS:
        return None
    is_web = text[:8].lower().startswith(("http://", "https://"))
    return (
        text
        if is_web and text.isprintable() and " " not in text and is_absolute_url(text)
        else None
    )


def kind_title(kind: str) -> str:
    """Display name of a kind."""
    return _KINDS.get(kind, kind[:1].upper() + kind[1:])


def browser(agent: str) -> str:
    """Browser and system of a user agent, if they are known."""
    name = next((title for mark, title in _BROWSERS if mark in agent), "Another browser")
    system = next((title for mark, title in _SYSTEMS if mark in agent), None)
    return f"{name} on {system}" if system else name


def json_text(value: Any) -> str:
    """A value as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


FILTERS: dict[str, Callable[..., Any]] = {
    "ago": ago,
    "span": span,
    "iso": iso,
    "number": number,
    "counted": counted,
    "percent_of": percent,
    "entity_path": entity_path,
    "segment": segment,
    "short_owner": short_owner,
    "short_ref": short_ref,
    "name_of": name_of,
    "kind_title": kind_title,
    "external": external,
    "json": json_text,
    "browser": browser,
}


def quoted(text: str) -> str:
    """Quote a text as one word of a shell."""
    safe = all(char.isalnum() or char in "-._/:=" for char in text) and text.isascii()
    if safe and text and not text.startswith("-"):
        return text
    return "'" + text.replace("'", "'\\''") + "'"


def word_of(value: Any) -> str:
    """A value in the form of the command line: texts as they are, all else as JSON."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def commands(server: str, factbook: str, curl: str, body: str) -> dict[str, str]:
    """Commands that send the same to the service, by program; `curl` begins its command."""
    return {
        "factbook": (
            f"export FACTBOOK_SERVER={server}\n"
            "export FACTBOOK_TOKEN=…   # Administration → Account → API access\n"
            f"factbook {factbook}"
        ),
        "curl": (
            f"curl {curl} \\\n"
            '  -H "Authorization: Bearer $FACTBOOK_TOKEN" \\\n'
            '  -H "Content-Type: application/json" \\\n'
            f"  {body}"
        ),
    }
