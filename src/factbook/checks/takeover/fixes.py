"""The fix of a check: the link and the instructions that its configuration elsewhere has.

Configurations have them as texts, lists, objects or maps by name. Remarks name what isn't kept.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from factbook.checks.rules import check_definition
from factbook.checks.takeover.remarks import Remarks
from factbook.errors import InputError

_FAILURE: Final = "failureMetadata"
_ADDRESSES: Final = ("url", "href", "link")
# An object of these members is one link; others are maps of links by name.
_OF_LINKS: Final = frozenset(
    {*_ADDRESSES, "title", "icon", "type", "name", "text", "label", "description"}
)


def fix(
    given: Mapping[str, Any], remarks: Remarks, *, metadata: Collection[str] = ()
) -> dict[str, Any]:
    """The first link and the first solution of a check; remarks name the others.

    `failureMetadata`, about the failure alone, comes before `metadata`, whose members `metadata`
    the caller reads, and `links`.
    """
    tables = {name: _table(given, name, remarks) for name in (_FAILURE, "metadata")}
    failure = tables[_FAILURE]
    named = [(f"{_FAILURE}.link", failure.get("link")), ("links", given.get("links"))]
    links = dict(link for path, value in named for link in _links(value, path, remarks))
    solutions = {
        f"{name}.solution": text(found.get("solution"), f"{name}.solution", remarks)
        for name, found in tables.items()
    }
    known = {_FAILURE: {"link", "solution"}, "metadata": {"solution", *metadata}}
    for name, members in known.items():
        for member in sorted(tables[name].keys() - members):
            remarks.change(f"{name}.{member}", "is left out")
    found = {
        "link": _first(links, "link", remarks),
        "instructions": _first(solutions, "solution", remarks),
    }
    return {name: value for name, value in found.items() if value}


def _table(given: Mapping[str, Any], name: str, remarks: Remarks) -> Mapping[str, Any]:
    """A member that is an object; a text or a list of texts is its solution."""
    value = given.get(name)
    if isinstance(value, dict):
        return {str(key): one for key, one in value.items()}
    if isinstance(value, str | list):
        return {"solution": value}
    if value is not None:
        remarks.change(name, "is left out: it is no object")
    return {}


def text(value: object, path: str, remarks: Remarks) -> str | None:
    """The text of a member, of a list that of a line each; a remark names what is no text."""
    lines = []
    for place, one in enumerate(value if isinstance(value, list) else [value]):
        if isinstance(one, str | int | float):
            lines.append(str(one))
        elif one is not None:
            where = f"{path}[{place}]" if isinstance(value, list) else path
            remarks.change(where, "is left out: it is no text")
    return "\n".join(lines) or None


def _links(given: object, path: str, remarks: Remarks) -> Iterator[tuple[str, str]]:
    """The links that a check here can have, by their paths."""
    for place, item in _items(given, path):
        link = item
        if isinstance(item, dict):
            link = next((item[name] for name in _ADDRESSES if item.get(name)), None)
        try:
            if not isinstance(link, str):
                raise InputError("is no text")
            check_definition.parse_link_template(link)
        except InputError as error:
            remarks.change(place, f"is left out: its address {error.message}")
        else:
            yield place, link


def _items(given: object, path: str) -> Iterator[tuple[str, object]]:
    """Each link of a list, of a map by name, or the only one."""
    if isinstance(given, list):
        yield from ((f"{path}[{place}]", item) for place, item in enumerate(given))
    elif isinstance(given, dict) and not given.keys() <= _OF_LINKS:
        yield from ((f"{path}.{name}", item) for name, item in given.items())
    elif given not in (None, "", {}):
        yield path, given


def _first(values: Mapping[str, Any], noun: str, remarks: Remarks) -> Any:
    """The first value that there is."""
    there = [(path, value) for path, value in values.items() if value]
    for path, value in there[1:]:
        if value != there[0][1]:
            remarks.change(path, f"is left out: a check has one {noun}, that of {there[0][0]}")
    return there[0][1] if there else None
