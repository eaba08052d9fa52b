"""Cursors: the query and the end of a page, as text that needs no encoding in an address.

Source: the catalog API reference: base64 of a JSON object. Existing clients look into it: one with
the key `query` is asked for by POST, any other by GET.
"""

import base64
import json
from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from factbook.api.openapi.parameters import LIMIT
from factbook.errors import InputError

T = TypeVar("T")

_Place = list[str | None]

MOST_ORDERS = 10
MOST_TEXT_FIELDS = 20

# Without these, which only JSON's strings hold, base64 of ASCII has neither + nor /.
_ESCAPES = str.maketrans({char: f"\\u{ord(char):04x}" for char in ">?~\x7f"})


class OrderBy(msgspec.Struct, forbid_unknown_fields=True):
    """A dotted path to order by; entities that lack it come last in both directions."""

    field: str
    order: Literal["asc", "desc"] = "asc"


class FullTextFilter(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A text, and the dotted paths of which one has to contain it, in any case."""

    term: Annotated[str, Meta(max_length=200)] = ""
    fields: Annotated[list[str], Meta(max_length=MOST_TEXT_FIELDS)] = []


class AfterCursor(msgspec.Struct, forbid_unknown_fields=True):
    """Content of `after`: the page size and the last row's sort values and reference."""

    limit: Annotated[int, Meta(ge=LIMIT.least, le=LIMIT.most)]
    after: _Place


class QueryCursor(msgspec.Struct, forbid_unknown_fields=True, rename="camel", omit_defaults=True):
    """Content of the cursor of a query: the question and a row's sort values and reference."""

    order_fields: Annotated[list[OrderBy], Meta(max_length=MOST_ORDERS)]
    order_field_values: _Place
    filter: list[str] | UnsetType = UNSET
    query: dict[str, Any] | UnsetType = UNSET
    full_text_filter: FullTextFilter | UnsetType = UNSET
    is_previous: bool = False
    total_items: Annotated[int, Meta(ge=0, le=2**63 - 1)] = 0


def encode(cursor: msgspec.Struct) -> str:
    """A cursor as text of letters and digits."""
    text = msgspec.json.encode(cursor).decode()
    if not text.isascii():
        text = json.dumps(msgspec.to_builtins(cursor), separators=(",", ":"))
    text = text.translate(_ESCAPES)
    # A multiple of three bytes needs no = at the end; blanks behind JSON mean nothing.
    text += " " * (-len(text) % 3)
    return base64.b64encode(text.encode()).decode()


def decode(text: str, type_: type[T], name: str) -> T:
    """The cursor in a text; raises InputError naming the parameter when it holds none."""
    try:
        return msgspec.json.decode(base64.b64decode(text, altchars=b"-_"), type=type_)
    except (ValueError, msgspec.MsgspecError, RecursionError):
        raise InputError(f"{name} is not a cursor from this interface.") from None


def check_place(place: _Place, order: Sequence[object], name: str) -> None:
    """Raise InputError unless the place is one of rows in this order."""
    if len(place) != len(order) + 1 or place[-1] is None:
        raise InputError(f"{name} belongs to a query with another order.")
