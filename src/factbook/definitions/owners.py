"""Owners of definitions, as their documents state them."""

from factbook.catalog import ref
from factbook.definitions.documents import Document
from factbook.errors import InputError


def owner_of(document: Document) -> str:
    """The canonical reference of the owner; "" without one."""
    value = document.get("owner")
    try:
        return ref.canonical(value, kind="group") if isinstance(value, str) else ""
    except InputError:
        return ""


def owners_of(*documents: Document | None) -> frozenset[str]:
    """The owners of the versions of a definition that there are; "" for one without."""
    return frozenset(owner_of(one) for one in documents if one is not None)
