"""Administration → Connections: hosts that custom sources may call, and their headers.

The values of headers are accepted and never shown again, not even beside a problem with them.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple, Self

from factbook.auth.permissions import SOURCE_WRITE
from factbook.datasources import define
from factbook.datasources.define import ConnectionDetail
from factbook.datasources.stores import ConnectionInput
from factbook.errors import ConflictError, InvalidItemsError, problem
from factbook.http import audit
from factbook.http.requests import Reply
from factbook.web.site.endpoint import PageRoute
from factbook.web.site.formats import segment
from factbook.web.site.page_context import Form, PageContext

PATH: Final = "/administration/connections"
_ONE: Final = f"{PATH}/{{name}}"
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
    shared_with: str = ""
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
            shared_with="\n".join(connection.shared_with),
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
            shared_with=sent.one("shared_with"),
            rows=[row for row in rows if row.name or row.value],
        )

    def problems(self) -> list[dict[str, str]]:
        """Problems of the form itself; no value is named."""
        found = []
        if not (self.at_once.isascii() and self.at_once.isdigit() and len(self.at_once) <= 3):
            found.append(problem("atOnce", "has to be a whole number from 1 to 100"))
        if not self.methods:
            found.append(problem("methods", "has to be GET, POST or both"))
        names = [row.name.lower() for row in self.rows if not row.remove]
        if "" in names:
            found.append(problem("headers", "has a value without a name"))
        for name in sorted({name for name in names if name and names.count(name) > 1}):
            what = f"headers.{name}" if _HEADER.fullmatch(name) else "headers"
            found.append(problem(what, "is given twice"))
        return found

    def wanted(self) -> ConnectionInput:
        """Connection from the form; an empty value keeps the stored one."""
        return ConnectionInput(
            base_url=self.base_url,
            methods=self.methods,
            at_once=int(self.at_once),
            headers={row.name: row.value or None for row in self.rows if not row.remove},
            shared_with=tuple(filter(None, map(str.strip, self.shared_with.splitlines()))),
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


async def listed(visit: PageContext, status: int = 200, problem: str = "") -> Reply:
    """Page of every connection, both of the settings and stored."""
    found = await define.list_connections(visit.state.database, visit.state.registry)
    return visit.page("connections.html", status, connections=found, problem=problem, path=PATH)


async def begin(visit: PageContext) -> Reply:
    """Form of a new connection."""
    return _form(visit, None, ConnectionForm.new())


async def create(visit: PageContext) -> Reply:
    """Create a connection."""
    form = ConnectionForm.of(visit.sent)
    taken = {
        one.name
        for one in await define.list_connections(visit.state.database, visit.state.registry)
    }
    if form.name in taken:
        message = "is the name of a connection that there is already"
        return _form(visit, None, form, 409, [problem("name", message)])
    return await _put(visit, None, form)


async def edit(visit: PageContext) -> Reply:
    """Form of a connection."""
    found = await _stored(visit)
    return _form(visit, found, ConnectionForm.shown(found))


async def change(visit: PageContext) -> Reply:
    """Change a connection; headers without a new value keep theirs."""
    found = await _stored(visit)
    return await _put(visit, found, ConnectionForm.of(visit.sent, found.name))


async def delete(visit: PageContext) -> Reply:
    """Remove a connection that no source uses."""
    state, name = visit.state, visit.request.parameter("name")
    write = visit.writing(audit.connection_entry(deleted=True))
    try:
        await define.delete_connection(state.registry, name, actor=visit.person.ref, write=write)
    except ConflictError as error:
        return await listed(visit, error.status, error.message)
    return visit.redirect(PATH, f"The connection {name} was deleted.")


async def _put(visit: PageContext, found: ConnectionDetail | None, form: ConnectionForm) -> Reply:
    state = visit.state
    if problems := form.problems():
        return _form(visit, found, form, 400, problems)
    try:
        await define.change_connection(
            state.database,
            state.registry,
            state.token_key,
            form.name,
            form.wanted(),
            actor=visit.person.ref,
            now=visit.now,
            write=visit.writing(audit.connection_entry()),
        )
    except (InvalidItemsError, ConflictError) as error:
        return _form(visit, found, form, error.status, error.problem_list)
    done = "made" if found is None else "changed"
    return visit.redirect(PATH, f"The connection {form.name} was {done}.")


async def _stored(visit: PageContext) -> ConnectionDetail:
    """Connection in the address; raises NotFoundError, ConflictError for the settings' own."""
    state, name = visit.state, visit.request.parameter("name")
    found = await define.find_connection(state.database, state.registry, name)
    if found.stored is None:
        raise ConflictError(f"The connection {name} comes from the settings: change it there.")
    return found


def _form(
    visit: PageContext,
    found: ConnectionDetail | None,
    form: ConnectionForm,
    status: int = 200,
    problems: Sequence[dict[str, str]] = (),
) -> Reply:
    return visit.page(
        "connections-edit.html",
        status,
        connection=found,
        form=form.without_values(),
        set_at=found.headers if found else {},
        problems=[_labelled(problem) for problem in problems],
        action=f"{PATH}/new" if found is None else f"{PATH}/{segment(found.name)}/edit",
        path=PATH,
    )


def _labelled(problem: dict[str, str]) -> dict[str, str]:
    """Problem with the label of its field in the form."""
    option, _, header = problem["path"].partition(".")
    path = f"{_LABELS.get(option, option)} {header}".strip()
    return {"path": path, "message": problem["message"]}


def _padded(rows: list[HeaderRow]) -> list[HeaderRow]:
    return [*rows, *[HeaderRow("")] * _EMPTY][:_MOST_ROWS]


_LABELS: Final = {
    "name": "Name",
    "baseUrl": "Address",
    "methods": "Methods",
    "atOnce": "Requests at once",
    "sharedWith": "Owners",
    "headers": "Header",
}

CONNECTIONS: Sequence[PageRoute] = (
    PageRoute("GET", PATH, listed, (SOURCE_WRITE,)),
    PageRoute("GET", f"{PATH}/new", begin, (SOURCE_WRITE,)),
    PageRoute("POST", f"{PATH}/new", create, (SOURCE_WRITE,)),
    PageRoute("GET", f"{_ONE}/edit", edit, (SOURCE_WRITE,)),
    PageRoute("POST", f"{_ONE}/edit", change, (SOURCE_WRITE,)),
    PageRoute("POST", f"{_ONE}/delete", delete, (SOURCE_WRITE,)),
)
