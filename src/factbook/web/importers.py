"""Importer pages: forms for importers made in the browser, and the imports of each.

Secrets are accepted and never shown again, not even beside a problem with them.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from http import HTTPStatus
from typing import Any, Final, NamedTuple, Self

from factbook.audit.trail import page_audit
from factbook.auth.permissions import AUDIT_READ, CATALOG_READ, SET_WRITE, SOURCE_WRITE
from factbook.catalog.store.stored_sets import Actor
from factbook.clock import DAY
from factbook.errors import ConflictError, FactbookError, InvalidItemsError, NotFoundError, no_such
from factbook.http import audit
from factbook.http.pipeline import REFUSED
from factbook.http.requests import Reply
from factbook.importers import importer_store, records, writer
from factbook.importers.importer import ImporterKind
from factbook.importers.importer_store import (
    ACCOUNT,
    INTEGRATION,
    ImporterInput,
    OptionField,
    StoredImporter,
)
from factbook.importers.records import ImportPartRecord
from factbook.importers.registry import (
    delete_importer,
    get_importer_detail,
    get_offered_kind,
    list_importer_statuses,
    list_offered_kinds,
    make_file_page_url,
    put_importer,
)
from factbook.importers.snapshot import ReadingProblem, name_set
from factbook.importers.writer import ImportTarget
from factbook.settings.option_tables import DEFAULT_INSTANCE
from factbook.web import formats
from factbook.web.formats import quote_segment
from factbook.web.pages import Form, PageContext, PageRoute

# Value of the select for an importer's own credential.
OWN_CREDENTIAL: Final = ""
_NEEDED: Final = re.compile(r"(Secret\. )?Needed\.")
_NEEDED_OF_OWN: Final = "is needed with a credential of its own"
_NAMES: Final = re.compile(r"[a-z_]+")
_SPELLINGS: Final = {"Api": "API", "Graphql": "GraphQL", "url": "URL", "Id": "ID", "id": "ID"}


class FormProblem(NamedTuple):
    """A problem with a field, by option path; "" if it belongs to no field."""

    path: str
    message: str


@dataclass(frozen=True, kw_only=True)
class ImporterForm:
    """Values of the form's fields by path, as typed: lists have a line for each item.

    `integration` is the settings table with the credential, "" for the importer's own account.
    """

    kind: ImporterKind[Any]
    name: str = DEFAULT_INSTANCE
    integration: str = OWN_CREDENTIAL
    values: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    removed: frozenset[str] = frozenset()

    @classmethod
    def new(cls, kind: ImporterKind[Any], integration: str = OWN_CREDENTIAL) -> Self:
        """Form of a new importer, with the defaults of its options."""
        values = {one.path: _format_option(one.default) for one in cls._public(kind)}
        return cls(kind=kind, integration=integration, values=values)

    @classmethod
    def shown(cls, kind: ImporterKind[Any], stored: StoredImporter) -> Self:
        """Form of a stored importer."""
        kept = stored.options.values
        values = {
            one.path: _format_option(kept.get(one.path, one.default)) for one in cls._public(kind)
        }
        integration = kept.get(INTEGRATION, OWN_CREDENTIAL)
        return cls(kind=kind, name=stored.name, integration=integration, values=values)

    @classmethod
    def of(cls, kind: ImporterKind[Any], sent: Form, name: str | None = None) -> Self:
        """Form as sent; `name` is given for an existing importer."""
        every = importer_store.list_option_fields(kind)
        return cls(
            kind=kind,
            name=sent.one("name") if name is None else name,
            integration=sent.one(INTEGRATION),
            values={one.path: sent.one(one.path) for one in every if not one.is_secret},
            secrets={one.path: sent.one(one.path) for one in every if one.is_secret},
            removed=frozenset(sent.all("remove")),
        )

    @property
    def fields(self) -> list[OptionField]:
        """The fields, account fields last."""
        return importer_store.list_option_fields(self.kind)

    def label(self, path: str) -> str:
        """The label of a field."""
        words = path.rpartition(".")[2].replace("_", " ").capitalize().split()
        return " ".join(_SPELLINGS.get(word, word) for word in words)

    def lacking(self, kept: Iterable[str] = ()) -> list[FormProblem]:
        """The required fields without a value; `kept` secrets have a stored value."""
        stays = set(kept) - self.removed
        problems = list[FormProblem]()
        for option in self.fields:
            # Owners are required with the importer's own account.
            is_owners = option.path == self.kind.owners
            is_needed = (is_owners and not self.integration) or _NEEDED.match(option.about)
            if not (self._counts(option) and is_needed) or option.path in stays:
                continue
            values = self.secrets if option.is_secret else self.values
            if not values.get(option.path, "").strip():
                message = _NEEDED_OF_OWN if is_owners else "is needed"
                problems.append(FormProblem(option.path, message))
        return problems

    def placed(self, problems: Iterable[Mapping[str, str]]) -> list[FormProblem]:
        """Assign problems to fields; without a path, to the first option that the message names."""
        paths = {one.path.rpartition(".")[2]: one.path for one in self.fields} | {"name": "name"}
        found = []
        for one in problems:
            words = _NAMES.findall(one["message"])
            path = one["path"] or next((paths[word] for word in words if word in paths), "")
            found.append(FormProblem(path, one["message"]))
        return found

    def wanted(self) -> ImporterInput:
        """The importer that the form describes; an empty secret keeps the stored one."""
        every = [one for one in self.fields if self._counts(one)]
        values = {one.path: value for one in every for value in self._values(one)}
        if self.kind.vendor and self.integration:
            values[INTEGRATION] = self.integration
        secrets = {
            one.path: self.secrets.get(one.path) or None
            for one in every
            if one.is_secret and one.path not in self.removed
        }
        return ImporterInput(kind=self.kind.id, name=self.name, values=values, secrets=secrets)

    def _counts(self, one: OptionField) -> bool:
        """False for account options if the credential is from the settings."""
        return not (self.integration and one.path.startswith(f"{ACCOUNT}."))

    def _values(self, one: OptionField) -> Iterator[Any]:
        """Yield the value of a field; nothing if it is empty, which means the default."""
        text = self.values.get(one.path, "")
        if one.is_secret:
            return
        if one.type == "switch":
            yield text == "yes"
        elif one.type == "list":
            if lines := [line.strip() for line in text.splitlines() if line.strip()]:
                yield lines
        elif text:
            yield text

    @staticmethod
    def _public(kind: ImporterKind[Any]) -> Iterator[OptionField]:
        return (one for one in importer_store.list_option_fields(kind) if not one.is_secret)


def _format_option(value: Any) -> str:
    """Format an option value for a form field."""
    if isinstance(value, bool):
        return "yes" if value else ""
    if isinstance(value, list | tuple):
        return "\n".join(map(str, value))
    return "" if value is None else str(value)


PATH: Final = "/importers"
LIST: Final = "/imports"
_ONE: Final = f"{PATH}/{{importer}}"
# Importers write sets, and make the service call hosts with secrets.
MAY_MAKE: Final = (SET_WRITE, SOURCE_WRITE)


async def begin_importer(visit: PageContext) -> Reply:
    """Choice of a kind, or the form for a new importer of the chosen kind."""
    chosen = visit.query("kind")
    if not chosen:
        return visit.page(
            "importer-new.html", kinds=list_offered_kinds(), path=PATH, list_path=LIST
        )
    kind = get_offered_kind(chosen)
    there = _list_vendor_accounts(visit, kind.vendor)
    return _show_importer_form(
        visit, None, ImporterForm.new(kind, there[0] if there else OWN_CREDENTIAL)
    )


async def create_importer(visit: PageContext) -> Reply:
    """Create an importer."""
    form = ImporterForm.of(get_offered_kind(visit.sent.one("kind")), visit.sent)
    await visit.state.importers.latest()
    return await _save_importer(visit, None, form)


async def edit_importer(visit: PageContext) -> Reply:
    """Form of an importer."""
    found = await _get_editable_importer(visit)
    return _show_importer_form(
        visit, found, ImporterForm.shown(get_offered_kind(found.kind), found)
    )


async def change_importer(visit: PageContext) -> Reply:
    """Change an importer; secrets without a new value keep theirs."""
    found = await _get_editable_importer(visit)
    return await _save_importer(
        visit,
        found,
        ImporterForm.of(get_offered_kind(found.kind), visit.sent, found.name),
    )


async def delete_shown_importer(visit: PageContext) -> Reply:
    """Delete an importer; its entities stay."""
    registry, id_ = visit.state.importers, visit.request.parameter("importer")
    await registry.latest()
    write = visit.writing(audit.make_importer_entry(deleted=True))
    await delete_importer(registry, id_, actor=visit.person.ref, write=write)
    return visit.redirect(LIST, f"The importer {id_} was deleted. Its entities stay.")


async def _save_importer(
    visit: PageContext, found: StoredImporter | None, form: ImporterForm
) -> Reply:
    state = visit.state
    if lacking := form.lacking(found.options.secrets if found else ()):
        return _show_importer_form(visit, found, form, HTTPStatus.BAD_REQUEST, lacking)
    try:
        stored = await put_importer(
            state.importers,
            replace(form.wanted(), is_new=found is None),
            state.token_key,
            actor=visit.person.ref,
            now=visit.now,
            write=visit.writing(audit.make_importer_entry()),
        )
    except InvalidItemsError as error:
        placed = form.placed(error.problem_list)
        return _show_importer_form(visit, found, form, error.status, placed)
    except ConflictError as error:
        return _show_importer_form(
            visit, found, form, error.status, [FormProblem("", error.message)]
        )
    done = "made" if found is None else "changed"
    return visit.redirect(
        f"{LIST}/{quote_segment(stored.id)}", f"The importer {stored.id} was {done}."
    )


async def _get_editable_importer(visit: PageContext) -> StoredImporter:
    """Importer in the address; raises NotFoundError, ConflictError for the settings' own."""
    id_ = visit.request.parameter("importer")
    if id_ in visit.state.importers.configured:
        raise ConflictError(f"The importer {id_} comes from the settings: change it there.")
    found = await importer_store.get_stored_importer(visit.state.database, id_)
    if found is None:
        raise no_such("importer", id_, visit.state.importers.stored)
    return found


def _show_importer_form(
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
        integrations=_list_vendor_accounts(visit, form.kind.vendor),
        problem=visit.state.importers.problems.get(found.id, "") if found else "",
        problems=problems,
        wrong=dict(reversed(problems)),
        action=f"{PATH}/new" if found is None else f"{PATH}/{quote_segment(found.id)}/edit",
        delete_path=f"{PATH}/{quote_segment(found.id)}/delete" if found else "",
        back_path=f"{LIST}/{quote_segment(found.id)}" if found else LIST,
    )


def _list_vendor_accounts(visit: PageContext, vendor: str) -> list[str]:
    """The settings tables with a credential for this vendor."""
    return sorted(visit.state.importers.accounts.get(vendor, {}))


IMPORTERS: Sequence[PageRoute] = (
    PageRoute("GET", f"{PATH}/new", begin_importer, MAY_MAKE),
    PageRoute("POST", f"{PATH}/new", create_importer, MAY_MAKE),
    PageRoute("GET", f"{_ONE}/edit", edit_importer, MAY_MAKE),
    PageRoute("POST", f"{_ONE}/edit", change_importer, MAY_MAKE),
    PageRoute("POST", f"{_ONE}/delete", delete_shown_importer, MAY_MAKE),
)


_SHOWN = 200
# Rows on the importer page, which has much other content.
_FEW = 20
_EVENTS = "/api/importers/v1/importers/{}/events"
_READ_AGAIN = "The part has been read again since this page was opened. Review it once more."


class RefusedEvents(NamedTuple):
    """Refused events: their number, counted up to a bound, and the time of the last."""

    path: str
    number: int
    is_more: bool
    last_at: int


async def show_importers(visit: PageContext) -> Reply:
    """Page of all importers and all imported parts."""
    state = visit.state
    importers = await state.importers.current()
    return visit.page(
        "imports.html",
        importers=await list_importer_statuses(state.database, importers.values(), visit.now),
        parts_read=await records.list_part_records(state.database),
        unusable=sorted(state.importers.problems.items()),
        can_run=visit.may(SET_WRITE),
        can_make=all(map(visit.may, MAY_MAKE)),
    )


async def request_import(visit: PageContext) -> Reply:
    """Ask for a run of an importer."""
    asked = await visit.state.importers.one(visit.request.parameter("importer"))
    write = visit.writing(audit.make_import_entry("import.run", asked.id))
    await write(partial(records.request_run, importer=asked.id, now=visit.now))
    return visit.redirect(_make_importer_path(asked.id), f"{asked.title} is being imported now.")


async def show_importer(visit: PageContext) -> Reply:
    """Importer page: its runs, and the state of its parts."""
    state = visit.state
    id_ = visit.request.parameter("importer")
    found = await get_importer_detail(state.database, state.importers, id_, visit.now)
    stored = found.stored
    return visit.page(
        "importer.html",
        found=found,
        paths={part.part: _make_part_path(part) for part in found.parts},
        problems=_link_problems(
            [(part, one) for part in found.current for one in part.problems][:_SHOWN]
        ),
        problem_count=sum(part.problem_count for part in found.current),
        most_held=_FEW,
        most_runs=_FEW,
        known=await visit.known([stored.created_by, stored.updated_by] if stored else []),
        can_run=visit.may(SET_WRITE),
        can_decide=visit.may(SET_WRITE),
        can_make=all(map(visit.may, MAY_MAKE)),
        refused=await _find_refused_events(visit, found.id),
        can_audit=visit.may(AUDIT_READ),
    )


async def show_import_part(
    visit: PageContext, status: int = 200, problem: str | None = None
) -> Reply:
    """Page of a part: its last reading, its problems, and its held removals."""
    found = await _get_import_part(visit)
    return visit.page(
        "import-part.html",
        status,
        part=found,
        set_path=f"/sets/{formats.quote_segment(name_set(found.importer, found.part))}",
        path=_make_part_path(found),
        importer_path=_make_importer_path(found.importer),
        problems=_link_problems([(found, one) for one in found.problems[:_SHOWN]]),
        held=found.held[:_SHOWN],
        problem=problem,
        can_decide=visit.may(SET_WRITE) and bool(found.held),
    )


async def remove_held_entities(visit: PageContext) -> Reply:
    """Remove the held entities, if the part is unchanged since the page was shown."""
    found = await _get_import_part(visit)
    try:
        _check_seen_part(visit, found)
        target = _make_import_target(visit, found, "import.apply")
        actor = Actor(visit.person.ref, visit.now)
        await writer.apply_removals(target, found.importer, found.part, actor, found.tag)
    except FactbookError as error:
        return await show_import_part(visit, error.status, error.message)
    return visit.redirect(_make_importer_path(found.importer), f"Removed: {len(found.held):,}.")


async def keep_held_entities(visit: PageContext) -> Reply:
    """Keep the held entities, if the part is unchanged since the page was shown."""
    found = await _get_import_part(visit)
    try:
        _check_seen_part(visit, found)
        target = _make_import_target(visit, found, "import.discard")
        await writer.discard_removals(target, found.importer, found.part, found.tag)
    except FactbookError as error:
        return await show_import_part(visit, error.status, error.message)
    return visit.redirect(_make_importer_path(found.importer), f"Kept: {len(found.held):,}.")


async def _find_refused_events(visit: PageContext, id_: str) -> RefusedEvents | None:
    """Events of the last day not signed with the importer's secret; None if there are none."""
    path, since = _EVENTS.format(formats.quote_segment(id_)), visit.now - DAY
    rows, more = await page_audit(
        visit.state.database, action=REFUSED, object=path, since=since, limit=_SHOWN
    )
    return RefusedEvents(path, len(rows), more, rows[0].at) if rows else None


def _check_seen_part(visit: PageContext, found: ImportPartRecord) -> None:
    """Raise ConflictError if the part was read after the page was shown."""
    if visit.sent.one("seen") != found.tag:
        raise ConflictError(_READ_AGAIN)


def _make_import_target(visit: PageContext, found: ImportPartRecord, action: str) -> ImportTarget:
    state, name = visit.state, name_set(found.importer, found.part)
    write = visit.writing(audit.make_import_entry(action, name))
    return ImportTarget(state.database, state.rules, state.settings.revisions_kept, write)


async def _get_import_part(visit: PageContext) -> ImportPartRecord:
    importer, name = visit.request.parameter("importer"), visit.request.parameter("part")
    found = await records.get_part_record(visit.state.database, importer, name)
    if found is None:
        raise NotFoundError("No importer has read a part with this name.")
    return found


def _link_problems(
    found: Sequence[tuple[ImportPartRecord, ReadingProblem]],
) -> list[tuple[ReadingProblem, str | None]]:
    """Problems of parts, each with a link to its file."""
    return [(problem, make_file_page_url(part.importer, problem)) for part, problem in found]


def _make_importer_path(id_: str) -> str:
    return f"/imports/{formats.quote_segment(id_)}"


def _make_part_path(found: ImportPartRecord) -> str:
    return f"{_make_importer_path(found.importer)}/{formats.quote_segment(found.part)}"


IMPORTS: Sequence[PageRoute] = (
    PageRoute("GET", "/imports", show_importers, (CATALOG_READ,)),
    PageRoute("GET", "/imports/{importer}", show_importer, (CATALOG_READ,)),
    PageRoute("POST", "/imports/{importer}/run", request_import, (SET_WRITE,)),
    PageRoute("GET", "/imports/{importer}/{part}", show_import_part, (CATALOG_READ,)),
    PageRoute("POST", "/imports/{importer}/{part}/apply", remove_held_entities, (SET_WRITE,)),
    PageRoute("POST", "/imports/{importer}/{part}/discard", keep_held_entities, (SET_WRITE,)),
)
