"""Which repository of one host an entity's location points to."""

from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import unquote

from factbook.integrations.git.options import Options
from factbook.integrations.locations import location
from factbook.outbound.outcomes import Missing, Outcome

LONGEST: Final = 500

# A part of a path with which hosts go on behind a repository, and how many parts stand before it
# at least: a group may well be called `src`.
_AFTER: Final = {"-": 1, "tree": 1, "blob": 1, "src": 2}


def target(options: Options, entity: Mapping[str, Any]) -> str | Missing:
    """The path of the repository, decoded and without outer slashes, or why there is none."""
    place = location(entity)
    if place is None or place.host != options.host:
        return _none(f"no repository on {options.host}")
    parts = repository([unquote(part) for part in place.path.split("/")])
    found = "/".join(parts)
    if len(found) > LONGEST or not all(map(_is_name, parts)):
        return _none("what the annotation names is not a path of a repository")
    if options.prefixes and not any(f"{found}/".startswith(f"{one}/") for one in options.prefixes):
        return _none("a path that is not configured")
    return found


def repository(parts: Sequence[str]) -> Sequence[str]:
    """The repository's own parts of the path of a web page: up to the first sign of its end.

    All of a path that ends with `.git`, unless a part is `-`, which is no name.
    """
    if parts[-1].endswith(".git") and "-" not in parts:
        return parts
    for i, part in enumerate(parts):
        if part.endswith(".git"):
            return parts[: i + 1]
        if i >= _AFTER.get(part, len(parts)):
            return parts[:i]
    return parts


def _is_name(part: str) -> bool:
    return part not in {"", ".", "..", "-"} and part.isprintable() and not {"/", "\\"} & set(part)


def _none(detail: str) -> Missing:
    return Missing(Outcome.NO_ANNOTATION, detail)
