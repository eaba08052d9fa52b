"""Importers made in the browser: create, change and delete them.

Secrets are accepted and never shown again, not even beside a problem with them.
"""

from collections.abc import Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import Final

from factbook.auth.permissions import SET_WRITE, SOURCE_WRITE
from factbook.errors import ConflictError, InvalidItemsError, no_such
from factbook.http import audit
from factbook.http.requests import Reply
from factbook.importers import importer_store, management
from factbook.importers.importer_store import StoredImporter
from factbook.web.entity.importer_form import OWN, FormProblem, ImporterForm
from factbook.web.site.endpoint import PageRoute
from factbook.web.site.formats import segment
from factbook.web.site.page_context import PageContext

PATH: Final = "/importers"
LIST: Final = "/imports"
_ONE: Final = f"{PATH}/{{importer}}"
# It writes sets, and makes the service call hosts with secrets.
MAY_MAKE: Final = (SET_WRITE, SOURCE_WRITE)


async def begin(visit: PageContext) -> Reply:
    """Choice of a kind, or the form of a new importer of the chosen one."""
    chosen = visit.query("kind")
    if not chosen:
        return visit.page("importer-new.html", kinds=management.kinds(), path=PATH, list_path=LIST)
    kind = management.kind(chosen)
    there = _integrations(visit, kind.vendor)
    return _form(visit, None, ImporterForm.new(kind, there[0] if there else OWN))


async def create(visit: PageContext) -> Reply:
    """Create an importer."""
    form = ImporterForm.of(management.kind(visit.sent.one("kind")), visit.sent)
    await visit.state.importers.latest()
    return await _put(visit, None, form)


async def edit(visit: PageContext) -> Reply:
    """Form of an importer."""
    found = await _stored(visit)
    return _form(visit, found, ImporterForm.shown(management.kind(found.kind), found))


async def change(visit: PageContext) -> Reply:
    """Change an importer; secrets without a new value keep theirs."""
    found = await _stored(visit)
    return await _put(
        visit, found, ImporterForm.of(management.kind(found.kind), visit.sent, found.name)
    )


async def delete(visit: PageContext) -> Reply:
    """Delete an importer; its entities stay."""
    registry, id_ = visit.state.importers, visit.request.parameter("importer")
    await registry.latest()
    write = visit.writing(audit.of_importer(deleted=True))
    await management.delete(registry, id_, actor=visit.person.ref, write=write)
    return visit.redirect(LIST, f"The importer {id_} was deleted. Its entities stay.")


async def _put(visit: PageContext, found: StoredImporter | None, form: ImporterForm) -> Reply:
    state = visit.state
    if lacking := form.lacking(found.options.secrets if found else ()):
        return _form(visit, found, form, HTTPStatus.BAD_REQUEST, lacking)
    try:
        stored = await management.put(
            state.importers,
            replace(form.wanted(), is_new=found is None),
            state.token_key,
            actor=visit.person.ref,
            now=visit.now,
            write=visit.writing(audit.of_importer()),
        )
    except InvalidItemsError as error:
        placed = form.placed(error.problem_list)
        return _form(visit, found, form, error.status, placed)
    except ConflictError as error:
        return _form(visit, found, form, error.status, [FormProblem("", error.message)])
    done = "made" if found is None else "changed"
    return visit.redirect(f"{LIST}/{segment(stored.id)}", f"The importer {stored.id} was {done}.")


async def _stored(visit: PageContext) -> StoredImporter:
    """Importer in the address; raises NotFoundError, ConflictError for the settings' own."""
    id_ = visit.request.parameter("importer")
    if id_ in visit.state.importers.configured:
        raise ConflictError(f"The importer {id_} comes from the settings: change it there.")
    found = await importer_store.one(visit.state.database, id_)
    if found is None:
        raise no_such("importer", id_, visit.state.importers.stored)
    return found


def _form(
    visit: PageContext,
    found: StoredImporter | None,
    form: ImporterForm,
    status: int = 200,
    problems: Sequence[FormProblem] = (),
) -> Reply:
    return visit.page(
        "importer-edit.html",
        status,
        importer=found,
        kind=form.kind,
        form=form,
        set_at=found.options.secrets if found else {},
        integrations=_integrations(visit, form.kind.vendor),
        problem=visit.state.importers.problems.get(found.id, "") if found else "",
        problems=problems,
        wrong=dict(reversed(problems)),
        action=f"{PATH}/new" if found is None else f"{PATH}/{segment(found.id)}/edit",
        delete_path=f"{PATH}/{segment(found.id)}/delete" if found else "",
        back_path=f"{LIST}/{segment(found.id)}" if found else LIST,
    )


def _integrations(visit: PageContext, vendor: str) -> list[str]:
    """The tables of the settings with a credential of this vendor."""
    return sorted(visit.state.importers.accounts.get(vendor, {}))


IMPORTERS: Sequence[PageRoute] = (
    PageRoute("GET", f"{PATH}/new", begin, MAY_MAKE),
    PageRoute("POST", f"{PATH}/new", create, MAY_MAKE),
    PageRoute("GET", f"{_ONE}/edit", edit, MAY_MAKE),
    PageRoute("POST", f"{_ONE}/edit", change, MAY_MAKE),
    PageRoute("POST", f"{_ONE}/delete", delete, MAY_MAKE),
)
