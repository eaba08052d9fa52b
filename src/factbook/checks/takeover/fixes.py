"""The fix of a check: the link and the instructions that its configuration elsewhere has."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from factbook.checks.definitions import templates
from factbook.checks.takeover.remarks import Remarks
from factbook.errors import InputError

_FAILURE: Final = "failureMetadata"


def fix(given: Mapping[str, Any], remarks: Remarks) -> dict[str, Any]:
    """The first link and the first solution of a check; remarks name the others.

    `failureMetadata`, about the failure alone, comes before `metadata` and `links`.
    """
    failure = _table(given, _FAILURE)
    links = {f"{_FAILURE}.link": failure.get("link"), **dict(_links(given.get("links"), remarks))}
    solutions = {
        f"{name}.solution": _table(given, name).get("solution") for name in (_FAILURE, "metadata")
    }
    for member in sorted(failure.keys() - {"link", "solution"}):
        remarks.change(f"{_FAILURE}.{member}", "is left out")
    found = {
        "link": _first(links, "link", remarks),
        "instructions": _first(solutions, "solution", remarks),
    }
    return {name: value for name, value in found.items() if value}


def _table(given: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = given.get(name)
    return value if isinstance(value, dict) else {}


def _links(given: object, remarks: Remarks) -> Iterator[tuple[str, str]]:
    """The links that a check here can have, by their paths."""
    for position, item in enumerate(given if isinstance(given, list) else ()):
        path, link = f"links[{position}]", item.get("url") if isinstance(item, dict) else item
        try:
            templates.parse_link(str(link))
        except InputError as error:
            remarks.change(path, f"is left out: its address {error.message}")
        else:
            yield path, str(link)


def _first(values: Mapping[str, Any], noun: str, remarks: Remarks) -> Any:
    """The first value that there is."""
    there = [(path, value) for path, value in values.items() if value]
    for path, value in there[1:]:
        if value != there[0][1]:
            remarks.change(path, f"is left out: a check has one {noun}, that of {there[0][0]}")
    return there[0][1] if there else None
