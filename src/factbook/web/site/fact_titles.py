"""Titles of facts for people: those that their schema gives them, or their names in words."""

import re
from typing import Final

from factbook.facts.schema import Fact
from factbook.facts.shape_titles import TITLES

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


def title(fact: Fact) -> str:
    """The title of a fact where nothing around it says what it is about."""
    if fact.title.strip():
        return fact.title.strip()
    return TITLES.get(fact.name) or label(fact.name.rpartition(".")[2], fact.unit)


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


def _lowered(part: str) -> str:
    return part if part.isupper() and len(part) > 1 else part.lower()
