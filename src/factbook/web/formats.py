"""Formats for people: figures, references, values of facts, and reasons for missing values."""

import math
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple
from urllib.parse import quote

import msgspec

from factbook.catalog import ref as refs
from factbook.catalog.validation import is_absolute_url
from factbook.checks.rules.checked_entity import CHECK_UNKNOWN
from factbook.checks.rules.rule_evaluation import CHECK_ERROR
from factbook.clock import ago, iso, span
from factbook.errors import InputError
from factbook.facts.schema import SHAPE_TITLES, Fact, reason_word

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
# The first match counts: most user agents also name other browsers.
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


def format_number(value: float) -> str:
    """Format a figure with thousands separators: `12,345` or `0.25`."""
    if isinstance(value, int) or value == int(value):
        return f"{int(value):,}"
    return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.1f}"


def make_finite(value: float | None) -> float | None:
    """The value as a float; None if unknown, infinite or too large for one."""
    try:
        figure = None if value is None else float(value)
    except OverflowError:
        return None
    return figure if figure is not None and math.isfinite(figure) else None


def format_figure(value: float | None) -> str:
    """Format a value of any size; a dash if unknown."""
    value = make_finite(value)
    if value is None:
        return "—"
    if value == 0 or 1e-3 <= abs(value) < 1e15:
        return format_number(value)
    return f"{value:.4g}".replace("e+", "e")


def format_quantity(value: float | None, unit: str) -> str:
    """Format a value with its unit."""
    return format_figure(value) + (unit if unit == "%" or not unit else f" {unit}")


def count_noun(count: int, one: str, many: str | None = None) -> str:
    """Format a count with its noun: `1 entity`, `2 entities`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def format_share(part: float, whole: float) -> str:
    """Format a share: 100 % only for all, 0 % only for none."""
    if not whole:
        return "—"
    share = 100 * part / whole
    if 0 < share < 1:
        return "<1%"
    return f"{int(share)}%" if share > 99 else f"{round(share)}%"


def make_entity_path(ref: str) -> str:
    """Path of an entity's page, by its canonical reference."""
    kind, _, rest = ref.partition(":")
    namespace, _, name = rest.partition("/")
    return f"/catalog/{quote_segment(kind)}/{quote_segment(namespace)}/{quote_segment(name)}"


def quote_segment(text: str) -> str:
    """Encode a text as one segment of a path."""
    return quote(text, safe="")


def shorten_ref(ref: str) -> str:
    """Shorten a reference by its defaults: `component:web`, `group:ops/team`."""
    return ref.replace(":default/", ":", 1)


def shorten_owner(ref: str) -> str:
    """Shorten the reference of an owner by its default: a group of the default namespace."""
    return shorten_ref(ref).removeprefix("group:")


def normalize_ref(text: str, kind: str | None, namespace: str) -> str | None:
    """Canonical form of a reference, with these defaults; None if the text is not a reference."""
    try:
        return str(refs.parse_ref(text, kind=kind, namespace=namespace)) if text else None
    except InputError:
        return None


def get_ref_name(ref: str) -> str:
    """Name in a reference."""
    return ref.rpartition("/")[2]


def make_natural_key(title: str) -> str:
    """Sort key for titles in natural order: "node-2" comes before "node-10"."""
    return re.sub(r"\d+", lambda digits: digits[0].zfill(12), title.casefold())


def get_external_url(text: object) -> str | None:
    """The text if it is a linkable address of another site, else None.

    Schemes other than http and https could run a script or open something local.
    """
    if not isinstance(text, str) or len(text) > _LONGEST_ADDRESS:
        return None
    is_web = text[:8].lower().startswith(("http://", "https://"))
    return (
        text
        if is_web and text.isprintable() and " " not in text and is_absolute_url(text)
        else None
    )


def get_kind_title(kind: str) -> str:
    """Display name of a kind."""
    return _KINDS.get(kind, kind[:1].upper() + kind[1:])


def name_browser(agent: str) -> str:
    """Browser and operating system of a user agent, as far as known."""
    name = next((title for mark, title in _BROWSERS if mark in agent), "Another browser")
    system = next((title for mark, title in _SYSTEMS if mark in agent), None)
    return f"{name} on {system}" if system else name


def format_json(value: Any) -> str:
    """A value as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


FILTERS: dict[str, Callable[..., Any]] = {
    "ago": ago,
    "span": span,
    "iso": iso,
    "number": format_number,
    "counted": count_noun,
    "percent_of": format_share,
    "entity_path": make_entity_path,
    "segment": quote_segment,
    "short_owner": shorten_owner,
    "short_ref": shorten_ref,
    "name_of": get_ref_name,
    "kind_title": get_kind_title,
    "external": get_external_url,
    "json": format_json,
    "browser": name_browser,
}


def quote_shell_word(text: str) -> str:
    """Quote a text as one word of a shell."""
    safe = all(char.isalnum() or char in "-._/:=" for char in text) and text.isascii()
    if safe and text and not text.startswith("-"):
        return text
    return "'" + text.replace("'", "'\\''") + "'"


def format_word(value: Any) -> str:
    """Format a value for the command line: text as is, everything else as JSON."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def make_commands(server: str, factbook: str, curl: str, body: str) -> dict[str, str]:
    """Commands that send the same request, by program; `curl` are the first arguments of curl."""
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


_LONG = 160  # characters; longer texts are folded
_NARROW = 26  # characters; wider values need a line of their own
_BADGE = 3
_LONGEST = 20_000  # characters shown of a folded text
_ITEMS = 12  # of a set, shown before folding
_MOST_ITEMS = 500

_PERCENT: Final = frozenset({"%", "percent", "percent, 0 to 100"})
_WORDS: Final = {
    "api": "API",
    "apis": "APIs",
    "avg": "average",
    "ci": "CI",
    "cpu": "CPU",
    "gb": "GB",
    "gib": "GiB",
    "http": "HTTP",
    "id": "ID",
    "javascript": "JavaScript",
    "kb": "kB",
    "kib": "KiB",
    "mb": "MB",
    "mib": "MiB",
    "pr": "PR",
    "slo": "SLO",
    "tb": "TB",
    "tib": "TiB",
    "url": "URL",
    "yaml": "YAML",
}
_LENGTHS: Final = {"max": "longest", "min": "shortest"}
_AMOUNTS: Final = {"max": "highest", "min": "lowest"}
_TIMES: Final = frozenset({"days", "hours", "minutes", "seconds", "milliseconds", "ms"})
_BOUNDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[_\s-]+")
# Keeps a unit one word, as in `sizeMiB`.
_SIZES = re.compile(r"([KMGT]i?B)(?![a-z])")

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


class Reason(NamedTuple):
    """A short form, a sentence with the meaning and the fix, and details from the source."""

    short: str
    sentence: str
    detail: str = ""


class Value(NamedTuple):
    """A value for display: its form, and the data of that form.

    `text` is the value in words. A set has visible `items`, folded ones in `more`, and `left` not
    shown. `moment` is a time; `yes` is a boolean.
    """

    form: Literal["boolean", "number", "text", "long", "link", "time", "set", "json"]
    text: str
    unit: str = ""
    items: tuple[str, ...] = ()
    more: tuple[str, ...] = ()
    left: int = 0
    moment: int | None = None
    yes: bool = False
    cut: bool = False

    @property
    def is_wide(self) -> bool:
        """True if it needs a line of its own."""
        length = len(self.text) + sum(len(item) + _BADGE for item in self.items)
        return self.form in {"long", "json"} or (self.form != "time" and length > _NARROW)


def get_fact_title(fact: Fact) -> str:
    """The title of a fact, for places that don't show its group."""
    if fact.title.strip():
        return fact.title.strip()
    return SHAPE_TITLES.get(fact.name) or format_name(fact.name.rpartition(".")[2], fact.unit)


def format_name(name: str, unit: str | None = None) -> str:
    """Turn a name such as `mergedLastMonth` into `Merged last month`; others stay unchanged."""
    if not _NAME.fullmatch(name):
        return name
    name = _SIZES.sub(lambda size: f"_{size[0].lower()}_", name)
    parts = [part for part in _BOUNDS.split(name) if part]
    if len(parts) > 1 and parts[-1].lower() == (unit or "").lower():
        parts.pop()  # the figure shows the unit
    words = _WORDS | (_LENGTHS if unit in _TIMES else _AMOUNTS)
    text = " ".join(
        words.get(part.lower(), part if part.isupper() and len(part) > 1 else part.lower())
        for part in parts
    )
    return text[:1].upper() + text[1:]


def display_fact(fact: Fact, value: Any) -> Value:
    """Value of a fact for display."""
    if type(value) is bool:
        return Value("boolean", "yes" if value else "no", yes=value)
    if isinstance(value, int | float):
        unit = fact.unit or ""
        if unit == "seconds" and 60 <= abs(value) < 10**9:
            return Value("number", _format_duration(value))
        return Value("number", _format_exactly(value), "%" if unit in _PERCENT else unit)
    if fact.type == "datetime" and isinstance(value, str):
        try:
            moment = round(datetime.fromisoformat(value.upper()).timestamp() * 1000)
        except (ValueError, OverflowError):
            return _display_text(value)
        return Value("time", value, moment=moment)
    if fact.type == "set" and isinstance(value, list):
        items = [
            item[:_LONG] if isinstance(item, str) else _format_exactly(item)
            for item in value[:_MOST_ITEMS]
        ]
        first, more, left = tuple(items[:_ITEMS]), tuple(items[_ITEMS:]), len(value) - len(items)
        return Value("set", "" if items else "none", "", first, more, left)
    if isinstance(value, str):
        return _display_text(value)
    text = format_json(value)
    return Value("json", text[:_LONGEST], cut=len(text) > _LONGEST)


def format_fact(fact: Fact, value: Any) -> str:
    """Format a value in one line."""
    found = display_fact(fact, value)
    text = ", ".join(found.items) if found.form == "set" else " ".join(found.text.split())
    if found.form == "set" and (others := len(found.more) + found.left):
        text += f" and {others:,} more"
    text += f" {found.unit}" if found.unit and found.unit != "%" else found.unit
    return text if len(text) <= _LONG else f"{text[:_LONG]}…"


def get_fact_unit(fact: Fact) -> str:
    """Unit of a fact, as written after a figure."""
    return "%" if fact.unit in _PERCENT else fact.unit or ""


def _format_exactly(value: float) -> str:
    """Format a number with thousands separators; integers stay exact unless too long."""
    if isinstance(value, int):
        text = f"{value:,}" if abs(value) < 10**30 else ""
        return text or format_figure(value)
    return format_figure(value)


def _format_duration(seconds: float) -> str:
    """Format minutes or more in the two largest units: `1 h 30 min`."""
    minutes = round(seconds / 60)
    days, hours, minutes = minutes // 1440, minutes // 60 % 24, minutes % 60
    named = [(days, "d"), (hours, "h"), (minutes, "min")]
    first = next((place for place, (count, _) in enumerate(named) if count), 2)
    return " ".join(f"{count:,} {name}" for count, name in named[first : first + 2] if count) or "0"


def _display_text(text: str) -> Value:
    if get_external_url(text):
        return Value("link", text)
    if len(text) > _LONG or "\n" in text.strip():
        return Value("long", text[:_LONGEST], cut=len(text) > _LONGEST)
    return Value("text", text)


def describe_reason(reason: str) -> Reason:
    """Explain a stored reason; details may follow its word: `forbidden: hidden from the key`."""
    return _REASONS[reason_word(reason)]._replace(detail=reason.partition(":")[2].strip()[:300])


def explain_check_reason(reason: str) -> Reason:
    """Explain why a comparison of a check is unknown, in words for pages."""
    return _CHECK_REASONS.get(reason_word(reason)) or describe_reason(reason)


_CHECK_REASONS: Final = {
    CHECK_ERROR: Reason(
        "cannot be checked",
        "The check can't compare this value. The check's owner can correct the check.",
    ),
    CHECK_UNKNOWN: Reason("other check unknown", "It depends on a check that is itself unknown."),
}
_REASONS: Final[Mapping[str, Reason]] = {
    "not-configured": Reason(
        "not configured",
        "No integration on this server provides this fact. An administrator can configure one.",
    ),
    "no-annotation": Reason(
        "no annotation",
        "The entity lacks the annotation that says where to look. Its owner can add it.",
    ),
    "bad-annotation": Reason(
        "annotation not read",
        "The value of the entity's annotation cannot be read. Its owner can correct it.",
    ),
    "not-applicable": Reason(
        "not applicable",
        "There is no such thing for this entity. Nothing needs to be done.",
    ),
    "never-collected": Reason(
        "not collected yet",
        "Nothing has been collected for this entity yet.",
    ),
    "not-sent": Reason(
        "not sent",
        "Facts of this source are pushed, and no push sent this one. The script that pushes can "
        "send it, or state why it is unknown.",
    ),
    "bad-definition": Reason(
        "definition doesn't fit",
        "The definition of the data source doesn't fit the value or document. The owner of the "
        "data source can correct the definition, or what is sent to it.",
    ),
    "not-found": Reason(
        "not found",
        "The vendor does not know what the entity's annotation names, or hides it. "
        "Its owner can correct the annotation.",
    ),
    "forbidden": Reason(
        "not allowed",
        "The credential may not read this, or is not accepted. An administrator can widen its "
        "permissions, or renew it.",
    ),
    "feature-off": Reason(
        "switched off",
        "The feature is off at the vendor, or is not part of the plan or of this version.",
    ),
    "rate-limited": Reason(
        "rate limited",
        "The vendor's rate limit was reached before a first value was read. "
        "The next run tries again.",
    ),
    "too-large": Reason(
        "too large",
        "There is more of it than this server reads. Where the limit is a setting, an "
        "administrator can raise it.",
    ),
    "upstream-error": Reason(
        "vendor failed",
        "The vendor did not answer, or answered what cannot be used. The next run tries again; "
        "if this stays, look at the runs of the data source.",
    ),
    "expired": Reason(
        "too old",
        "The last value is too old to rely on: no run since then could renew it. "
        "Look at the runs of the data source.",
    ),
}
