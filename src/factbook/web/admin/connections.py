"""Administration → Connections: hosts that custom sources may call, and their headers.

The values of headers are accepted and never shown again, not even beside a problem with them.
"""

from collections.abc import Sequence
from typing import Final

from factbook.auth.permissions import SOURCE_WRITE
from factbook.datasources import connections
from factbook.datasources.connections import ConnectionDetail
from factbook.errors import ConflictError, InvalidItemsError
from factbook.http import audit
from factbook.http.requests import Reply
from factbook.web.admin.connection_form import ConnectionForm
from factbook.web.site.endpoint import PageRoute
from factbook.web.site.formatting import segment
from factbook.web.site.page_context import PageContext

PATH: Final = "/administration/connections"
_ONE: Final = f"{PATH}/{{name}}"


async def listed(visit: PageContext, status: int = 200, problem: str = "") -> Reply:
    """Page of every connection, both of the settings and stored."""
    found = await connections.listed(visit.state.database, visit.state.registry)
    return visit.page("connections.html", status, connections=found, problem=problem, path=PATH)


async def begin(visit: PageContext) -> Reply:
    """Form of a new connection."""
    return _form(visit, None, ConnectionForm.new())


async def create(visit: PageContext) -> Reply:
    """Create a connection."""
    form = ConnectionForm.of(visit.sent)
    taken = {
        one.name for one in await connections.listed(visit.state.database, visit.state.registry)
    }
    if form.name in taken:
        message = "is the name of a connection that there is already"
        return _form(visit, None, form, 409, [{"path": "name", "message": message}])
    return await _put(visit, None, form)


async def edit(visit: PageContext) -> Reply:
    """Form of a connection."""
    found = await _stored(visit)
    return _form(visit, found, ConnectionForm.shown(found))


async def replace(visit: PageContext) -> Reply:
    """Change a connection; headers without a new value keep theirs."""
    found = await _stored(visit)
    return await _put(visit, found, ConnectionForm.of(visit.sent, found.name))


async def delete(visit: PageContext) -> Reply:
    """Remove a connection that no source uses."""
    state, name = visit.state, visit.request.parameter("name")
    write = visit.writing(audit.of_connection(deleted=True))
    try:
        await connections.delete(
            state.database, state.registry, name, actor=visit.person.ref, write=write
        )
    except ConflictError as error:
        return await listed(visit, error.status, error.message)
    return visit.redirect(PATH, f"The connection {name} was deleted.")


async def _put(visit: PageContext, found: ConnectionDetail | None, form: ConnectionForm) -> Reply:
    state = visit.state
    if problems := form.problems():
        return _form(visit, found, form, 400, problems)
    try:
        await connections.put(
            state.database,
            state.registry,
            state.token_key,
            form.name,
            form.wanted(),
            actor=visit.person.ref,
            now=visit.now,
            write=visit.writing(audit.of_connection()),
        )
    except InvalidItemsError as error:
        return _form(visit, found, form, error.status, error.details["problems"])
    except ConflictError as error:
        return _form(visit, found, form, error.status, [{"path": "", "message": error.message}])
    done = "made" if found is None else "changed"
    return visit.redirect(PATH, f"The connection {form.name} was {done}.")


async def _stored(visit: PageContext) -> ConnectionDetail:
    """Connection in the address; raises NotFoundError, ConflictError for the settings' own."""
    state, name = visit.state, visit.request.parameter("name")
    found = await connections.one(state.database, state.registry, name)
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


_LABELS: Final = {
    "name": "Name",
    "baseUrl": "Address",
    "methods": "Methods",
    "atOnce": "Requests at once",
    "headers": "Header",
}

CONNECTIONS: Sequence[PageRoute] = (
    PageRoute("GET", PATH, listed, (SOURCE_WRITE,)),
    PageRoute("GET", f"{PATH}/new", begin, (SOURCE_WRITE,)),
    PageRoute("POST", f"{PATH}/new", create, (SOURCE_WRITE,)),
    PageRoute("GET", f"{_ONE}/edit", edit, (SOURCE_WRITE,)),
    PageRoute("POST", f"{_ONE}/edit", replace, (SOURCE_WRITE,)),
    PageRoute("POST", f"{_ONE}/delete", delete, (SOURCE_WRITE,)),
)
