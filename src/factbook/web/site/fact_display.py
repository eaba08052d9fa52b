"""Display of facts: their titles, their values, and reasons for missing values."""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple

from factbook.checks.rules.checked_entity import CHECK_UNKNOWN
from factbook.checks.rules.rule_evaluation import CHECK_ERROR
from factbook.facts.schema import SHAPE_TITLES, Fact, reason_word
from factbook.web.site import formats

_LONG = 160  # characters of a text that is shown whole at once
_NARROW = 26  # of one that stands beside others
_BADGE = 3
_LONGEST = 20_000  # of one that is folded
_ITEMS = 12  # of a set that are shown at once
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
# One word each, which would else be two: `sizeMiB`.
_SIZES = re.compile(r"([KMGT]i?B)(?![a-z])")

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


class Reason(NamedTuple):
    """A short form, a sentence with the meaning and the fix, and details from the source."""

    short: str
    sentence: str
    detail: str = ""


class Value(NamedTuple):
    """A value for display: its form, and the data of that form.

    `text` is the value in words; `items` are of a set, of which `more` are folded and `left` are
    not shown; `moment` is a time; `yes` is a boolean.
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


def title(fact: Fact) -> str:
    """The title of a fact where nothing around it says what it is about."""
    if fact.title.strip():
        return fact.title.strip()
    return SHAPE_TITLES.get(fact.name) or label(fact.name.rpartition(".")[2], fact.unit)


def label(name: str, unit: str | None = None) -> str:
    """Format a name such as `mergedLastMonth`: `Merged last month`; any other stays as it is."""
    if not _NAME.fullmatch(name):
        return name
    name = _SIZES.sub(lambda size: f"_{size[0].lower()}_", name)
    parts = [part for part in _BOUNDS.split(name) if part]
    if len(parts) > 1 and parts[-1].lower() == (unit or "").lower():
        parts.pop()  # the figure says it
    words = _WORDS | (_LENGTHS if unit in _TIMES else _AMOUNTS)
    text = " ".join(words.get(part.lower(), _lowered(part)) for part in parts)
    return text[:1].upper() + text[1:]


def shown(fact: Fact, value: Any) -> Value:
    """Value of a fact for display."""
    if type(value) is bool:
        return Value("boolean", "yes" if value else "no", yes=value)
    if isinstance(value, int | float):
        return _number(value, fact.unit or "")
    if fact.type == "datetime" and isinstance(value, str):
        return _time(value)
    if fact.type == "set" and isinstance(value, list):
        return _set([_plain(item) for item in value[:_MOST_ITEMS]], len(value))
    if isinstance(value, str):
        return _text(value)
    text = formats.json_text(value)
    return Value("json", text[:_LONGEST], cut=len(text) > _LONGEST)


def in_words(fact: Fact, value: Any) -> str:
    """Format a value in one line."""
    found = shown(fact, value)
    text = ", ".join(found.items) if found.form == "set" else " ".join(found.text.split())
    if found.form == "set" and (others := len(found.more) + found.left):
        text += f" and {others:,} more"
    text += f" {found.unit}" if found.unit and found.unit != "%" else found.unit
    return text if len(text) <= _LONG else f"{text[:_LONG]}…"


def unit_of(fact: Fact) -> str:
    """Unit in the form that follows a figure."""
    return "%" if fact.unit in _PERCENT else fact.unit or ""


def _lowered(part: str) -> str:
    return part if part.isupper() and len(part) > 1 else part.lower()


def _number(value: float, unit: str) -> Value:
    if unit in _PERCENT:
        return Value("number", _figure(value), "%")
    if unit == "seconds" and 60 <= abs(value) < 10**9:
        return Value("number", _duration(value))
    return Value("number", _figure(value), unit)


def _figure(value: float) -> str:
    """Format a number with thousands separators; whole ones exactly unless too long."""
    if isinstance(value, int):
        text = f"{value:,}" if abs(value) < 10**30 else ""
        return text or formats.figure(value)
    return formats.figure(value)


def _duration(seconds: float) -> str:
    """Format minutes or more in the two largest units: `1 h 30 min`."""
    minutes = round(seconds / 60)
    days, hours, minutes = minutes // 1440, minutes // 60 % 24, minutes % 60
    named = [(days, "d"), (hours, "h"), (minutes, "min")]
    first = next((place for place, (count, _) in enumerate(named) if count), 2)
    return " ".join(f"{count:,} {name}" for count, name in named[first : first + 2] if count) or "0"


def _time(text: str) -> Value:
    try:
        moment = round(datetime.fromisoformat(text.upper()).timestamp() * 1000)
    except (ValueError, OverflowError):
        return _text(text)
    return Value("time", text, moment=moment)


def _set(items: list[str], whole: int) -> Value:
    first, more = tuple(items[:_ITEMS]), tuple(items[_ITEMS:])
    return Value("set", "" if items else "none", "", first, more, max(0, whole - len(items)))


def _text(text: str) -> Value:
    if formats.external(text):
        return Value("link", text)
    if len(text) > _LONG or "\n" in text.strip():
        return Value("long", text[:_LONGEST], cut=len(text) > _LONGEST)
    return Value("text", text)


def _plain(item: Any) -> str:
    return item[:_LONG] if isinstance(item, str) else _figure(item)


def plain(reason: str) -> Reason:
    """Parse a stored reason; text may follow its word: `forbidden: hidden from the credential`."""
    return _REASONS[reason_word(reason)]._replace(detail=reason.partition(":")[2].strip()[:300])


def explain_check_reason(reason: str) -> Reason:
    """The reason for an unknown comparison of a check, in words for the pages."""
    return _CHECK_REASONS.get(reason_word(reason)) or plain(reason)


_CHECK_REASONS: Final = {
    CHECK_ERROR: Reason(
        "cannot be checked",
        "A value is not what the check compares. Whoever owns the check can correct it.",
    ),
    CHECK_UNKNOWN: Reason("other check unknown", "It reads a check that is unknown itself."),
}
_REASONS: Final[Mapping[str, Reason]] = {
    "not-configured": Reason(
        "not configured",
        "Nothing on this server determines it. An administrator can configure what does.",
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
        "Nothing was brought for this entity yet.",
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
