"""Owners of definitions, as their documents state them."""

from collections.abc import Mapping
from typing import Any

from factbook.catalog import ref
from factbook.definitions.documents import Document
from factbook.errors import InputError


def owner_of(document: Document) -> str:
    """The canonical reference of the owner; "" without one."""
    return _canonical(document.get("owner"))


def owners_of(*documents: Document | None) -> frozenset[str]:
    """The owners of the versions of a definition that there are; "" for one without."""
    return frozenset(owner_of(one) for one in documents if one is not None)


def renamed(document: Document, names: Mapping[str, str]) -> dict[str, Any]:
    """The document with other names of its owner and approvers, given by canonical references."""
    after = dict(document)
    if name := names.get(owner_of(document)):
        after["owner"] = name
    rules = document.get("exemptions")
    if isinstance(rules, dict) and isinstance(approvers := rules.get("approvers"), list):
        found = dict.fromkeys(names.get(_canonical(one), one) for one in approvers)
        after["exemptions"] = {**rules, "approvers": [*found]}
    return after


def _canonical(value: object) -> str:
    try:
        return ref.canonical(value, kind="group") if isinstance(value, str) else ""
    except InputError:
        return ""
