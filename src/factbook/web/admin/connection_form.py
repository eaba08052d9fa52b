"""Form of a connection, as shown and as sent."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple, Self

from factbook.datasources.connection_store import ConnectionInput
from factbook.datasources.connections import ConnectionDetail
from factbook.web.site.forms import Form

# Rows without a header yet.
_EMPTY: Final = 3
_MOST_ROWS: Final = 40
_HEADER: Final = re.compile(r"[A-Za-z0-9-]{1,64}", re.ASCII)


class HeaderRow(NamedTuple):
    """A header: its name, the typed value, and a mark for removal."""

    name: str
    value: str = ""
    remove: bool = False


@dataclass(frozen=True, kw_only=True)
class ConnectionForm:
    """Values of the form's fields."""

    name: str = ""
    base_url: str = ""
    methods: tuple[str, ...] = ("GET",)
    at_once: str = "4"
    rows: Sequence[HeaderRow] = field(default=(), repr=False)

    @classmethod
    def new(cls) -> Self:
        """Form of a new connection."""
        return cls(rows=_padded([HeaderRow("authorization")]))

    @classmethod
    def shown(cls, connection: ConnectionDetail) -> Self:
        """Form of an existing connection."""
        return cls(
            name=connection.name,
            base_url=connection.base_url,
            methods=connection.methods,
            at_once=str(connection.at_once),
            rows=_padded([HeaderRow(name) for name in connection.headers]),
        )

    @classmethod
    def of(cls, sent: Form, name: str | None = None) -> Self:
        """Form as sent; with `name`, that of the connection with this name."""
        rows = [
            HeaderRow(
                sent.one(f"header-{number}"),
                sent.one(f"value-{number}"),
                sent.one(f"remove-{number}") == "yes",
            )
            for number in range(_MOST_ROWS)
        ]
        return cls(
            name=sent.one("name") if name is None else name,
            base_url=sent.one("base_url"),
            methods=tuple(sent.all("methods")),
            at_once=sent.one("at_once"),
            rows=[row for row in rows if row.name or row.value],
        )

    def problems(self) -> list[dict[str, str]]:
        """Problems of the form itself; no value is named."""
        found = []
        if not (self.at_once.isascii() and self.at_once.isdigit() and len(self.at_once) <= 3):
            found.append(_problem("atOnce", "has to be a whole number from 1 to 100"))
        if not self.methods:
            found.append(_problem("methods", "has to be GET, POST or both"))
        names = [row.name.lower() for row in self.rows if not row.remove]
        if "" in names:
            found.append(_problem("headers", "has a value without a name"))
        for name in sorted({name for name in names if name and names.count(name) > 1}):
            what = f"headers.{name}" if _HEADER.fullmatch(name) else "headers"
            found.append(_problem(what, "is given twice"))
        return found

    def wanted(self) -> ConnectionInput:
        """Connection from the form; an empty value keeps the stored one."""
        return ConnectionInput(
            base_url=self.base_url,
            methods=self.methods,
            at_once=int(self.at_once),
            headers={row.name: row.value or None for row in self.rows if not row.remove},
        )

    def without_values(self) -> Self:
        """The form to show again: without possible secrets."""
        rows = [
            HeaderRow(row.name if _HEADER.fullmatch(row.name) else "", "", row.remove)
            for row in self.rows
        ]
        is_safe = "@" not in self.base_url and "?" not in self.base_url
        shown = _padded([row for row in rows if row.name])
        return replace(self, rows=shown, base_url=self.base_url if is_safe else "")


def _padded(rows: list[HeaderRow]) -> list[HeaderRow]:
    return [*rows, *[HeaderRow("")] * _EMPTY][:_MOST_ROWS]


def _problem(path: str, message: str) -> dict[str, str]:
    return {"path": path, "message": message}
