"""Import on the database without a server, or push snapshots to a server."""

import ipaddress
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import msgspec

from factbook.audit.trail import COMMAND_LINE, About, AuditEntry, Caller, audit_writes
from factbook.backend import Backend
from factbook.catalog import sets
from factbook.catalog.sets import PushRules
from factbook.catalog.store.stored_sets import StoredItem
from factbook.client import ApiError, Client, Item
from factbook.clock import Clock, now
from factbook.datasources.clients import ClientFactory
from factbook.errors import ConfigurationError, ConflictError, NotFoundError
from factbook.importers import records, registry, runner, writer
from factbook.importers.importer import Importer, Show
from factbook.importers.kubernetes import ACCOUNT_FOLDER
from factbook.importers.merge import (
    Candidate,
    CheckedPart,
    Doubt,
    ImportMarks,
    MergedPart,
    StoredMember,
    check_snapshot,
    merge_part,
)
from factbook.importers.records import ImportPartRecord
from factbook.importers.registry import ImporterDetail
from factbook.importers.runner import ImportReport, audit_written_set, make_outcome
from factbook.importers.snapshot import (
    PREFIX,
    STATED,
    ReadingProblem,
    Snapshot,
    SnapshotPart,
    name_set,
)
from factbook.importers.writer import ImportTarget, make_import_actor
from factbook.schemas.catalog import Changes, Difference
from factbook.settings import Settings
from factbook.settings.option_tables import DEFAULT_INSTANCE
from factbook.storage import Database


class OneReading(NamedTuple):
    """An importer's snapshot, and the number of API calls it took."""

    importer: str
    snapshot: Snapshot
    calls: int


class _OwnMemory:
    """In-process importer memory, for a single reading."""

    def __init__(self) -> None:
        self._kept: dict[str, bytes] = {}

    async def get(self, key: str) -> bytes | None:
        return self._kept.get(key)

    async def put(self, key: str, value: bytes, *, days: int | None = None) -> None:
        self._kept[key] = value


async def read_system_once(
    kind: str,
    options: Mapping[str, Any],
    settings: Settings,
    show: Show,
    names: Mapping[str, str] = MappingProxyType({}),
) -> OneReading:
    """Read a system once, with an importer of this kind and these options.

    `names` maps external ids to the namespaces and names to keep in the catalog.
    Raises ConfigurationError for a mistake in the options.
    """
    importer = registry.configure_importer(kind, DEFAULT_INSTANCE, options, settings.integrations)
    client = ClientFactory(settings, now).client(importer.integration)
    try:
        memory = _OwnMemory()
        if names:
            await memory.put(STATED, msgspec.json.encode(names))
        snapshot = await importer.read(client, memory, now(), show)
        return OneReading(importer.id, snapshot, client.health.calls)
    finally:
        await client.aclose()


def settings_in_cluster(settings: Settings, environment: Mapping[str, str]) -> Settings:
    """Adapt the settings for calls to the API server of the cluster this process runs in.

    That server has a private address and a certificate from the cluster's own authority.
    """
    host, authority = environment.get("KUBERNETES_SERVICE_HOST", ""), Path(ACCOUNT_FOLDER, "ca.crt")
    networks = [*settings.outgoing_networks]
    try:
        networks.append(str(ipaddress.ip_network(host)))
    except ValueError:
        return settings
    found = str(authority) if authority.exists() else None
    return msgspec.structs.replace(
        settings,
        outgoing_networks=networks,
        outgoing_direct=[*settings.outgoing_direct, host],
        outgoing_ca_file=settings.outgoing_ca_file or found,
    )


_RIGHTS_ANNOTATION: Final = "import-rights"
_RIGHTS_SEPARATOR: Final = ", "

_PAGE: Final = 1_000
_ATTEMPTS: Final = 5
_ITEM_PATH: Final = re.compile(r"items\[(\d+)\]\.?")
_NOTHING: Final = Changes(added=0, updated=0, removed=0, unchanged=0)


def mark_rights(snapshot: Snapshot) -> Snapshot:
    """Annotate each entity of a snapshot with the rights that found it."""
    parts = []
    for part in snapshot.parts:
        items = []
        for item in part.items:
            if item.rights:
                rights = _RIGHTS_SEPARATOR.join(sorted(item.rights))
                items.append(replace(item, marks={**item.marks, _RIGHTS_ANNOTATION: rights}))
            else:
                items.append(item)
        parts.append(replace(part, items=tuple(items)))
    return replace(snapshot, parts=tuple(parts))


class RememberedRights:
    """Rights by which entities of a set were found; a reading may lack some of them."""

    def __init__(
        self, rules: PushRules, members: Iterable[StoredMember], seen: frozenset[str]
    ) -> None:
        self._annotation = f"{rules.annotator.domain}/{_RIGHTS_ANNOTATION}"
        by_ref = {one.prepared.ref: self._rights(one.prepared.document) for one in members}
        self._lost = {ref: rights - seen for ref, rights in by_ref.items() if rights - seen}
        self.rights = frozenset[str]().union(*by_ref.values())

    def kept(self, found: Sequence[Candidate]) -> list[Candidate]:
        """Add the rights that this reading lacks to the entities it found.

        Otherwise a component of two resources would forget the one that is no longer visible.
        """
        return [self._kept(one, self._lost.get(one.prepared.ref)) for one in found]

    def _kept(self, one: Candidate, lost: frozenset[str] | None) -> Candidate:
        if not lost:
            return one
        entity = msgspec.json.decode(one.prepared.document)
        rights = lost | self._rights(one.prepared.document)
        entity["metadata"]["annotations"][self._annotation] = _RIGHTS_SEPARATOR.join(sorted(rights))
        document = msgspec.json.encode(entity).decode()
        return one._replace(prepared=sets.prepare_unchanged(one.prepared.ref, document))

    def _rights(self, document: str) -> frozenset[str]:
        annotations = msgspec.json.decode(document)["metadata"].get("annotations", {})
        text = annotations.get(self._annotation, "")
        return frozenset(text.split(_RIGHTS_SEPARATOR)) if text else frozenset()


class PushedPart(NamedTuple):
    """Result of pushing a part, or of a dry run; `held` has removals that await a decision.

    `moves` maps former references to new ones.
    """

    set: str
    complete: bool
    changes: Changes
    difference: Sequence[Difference]
    problems: Sequence[ReadingProblem]
    held: Sequence[str]
    reason: str
    moves: Mapping[str, str] = MappingProxyType({})


class _SetContent(NamedTuple):
    """A set's content on the server."""

    revision: int
    members: list[StoredMember]


@dataclass
class _Refused:
    """The server's refusals: references that others own, and invalid entities.

    `origins` has the origins of invalid entities; stored entities of these origins stay unchanged.
    """

    refs: set[str] = field(default_factory=set)
    origins: set[str] = field(default_factory=set)
    problems: list[ReadingProblem] = field(default_factory=list)

    def add(self, candidate: Candidate, message: str) -> None:
        """Add a refused candidate."""
        self.refs.add(candidate.prepared.ref)
        self.problems.append(ReadingProblem(candidate.origin, message))


def default_rules() -> PushRules:
    """Rules of a server with default settings; a server with other rules reports violations."""
    return PushRules.of(Settings())


def find_stated_names(client: Client, name: str, known: PushRules) -> dict[str, str]:
    """Find the namespaces and names in a set by external id; empty for a missing set."""
    members = _SnapshotPush(client, known, dry_run=True, remove=False).members(name)
    return {one.external_id: one.prepared.ref.partition(":")[2] for one in members}


def push_snapshot(
    client: Client,
    importer: str,
    snapshot: Snapshot,
    known: PushRules,
    *,
    dry_run: bool = False,
    remove: bool = False,
) -> list[PushedPart]:
    """Replace the set of each part; `remove` also makes removals that would be held.

    Raises ApiError if the server refuses a whole push, and ConflictError if the set keeps changing.
    """
    push = _SnapshotPush(client, known, dry_run=dry_run, remove=remove)
    origins = {
        part.key: push.origins(f"{importer}.{part.key}")
        for part in snapshot.parts
        if any(item.known_only for item in part.items)
    }
    return [
        push.part(f"{importer}.{part.part.key}", part)
        for part in check_snapshot(importer, mark_rights(snapshot), known, origins)
    ]


class _SnapshotPush:
    def __init__(self, client: Client, known: PushRules, *, dry_run: bool, remove: bool) -> None:
        self._client = client
        self._rules = known
        self._marks = ImportMarks(known)
        self._dry_run = dry_run
        self._remove = remove

    def members(self, name: str) -> list[StoredMember]:
        """List the entities of a set."""
        return self._content(name).members

    def origins(self, name: str) -> dict[str, str]:
        """Map each entity of a set, by reference, to its origin."""
        return {one.prepared.ref: one.origin for one in self.members(name)}

    def part(self, name: str, part: CheckedPart) -> PushedPart:
        """Push one part."""
        refused = _Refused()
        for _ in range(_ATTEMPTS):
            content = self._content(name)
            found = [one for one in part.found if one.prepared.ref not in refused.refs]
            unread = part.unread | refused.origins
            wanted = self._merged(part.part, content, found, unread)
            try:
                changes, difference = self._replaced(name, content, wanted)
            except ApiError as error:
                if not self._understood(error, wanted, found, refused):
                    raise
                continue
            problems = [*part.problems, *refused.problems]
            return PushedPart(
                name,
                part.whole,
                changes,
                difference,
                problems,
                wanted.held,
                wanted.reason,
                wanted.moves,
            )
        raise ConflictError(f"The set {name} was changed again and again; nothing was written.")

    def _merged(
        self,
        part: SnapshotPart,
        content: _SetContent,
        found: Sequence[Candidate],
        unread: Collection[str],
    ) -> MergedPart:
        """Compute the set's new content; with `remove`, missing entities count as gone."""
        if self._remove:
            merged = merge_part(part, content.members, found, unread, Doubt())
            if not merged.held:
                return merged
            held = set(merged.held)
            left = [prepared for prepared in merged.wanted if prepared.ref not in held]
            return MergedPart(left, sorted({*merged.removed, *held}))
        remembered = RememberedRights(self._rules, content.members, part.rights)
        doubt = Doubt(remembered.rights)
        return merge_part(part, content.members, remembered.kept(found), unread, doubt)

    def _content(self, name: str) -> _SetContent:
        """Read the set at one revision; starts again if another push changes it between pages."""
        for _ in range(_ATTEMPTS):
            revisions, items = self._pages(name)
            if len(revisions) != 1:
                continue
            members = []
            for item in items:
                document = msgspec.json.encode(item.entity).decode()
                stored = StoredItem(
                    item.id, item.entity_ref, document, item.set, item.updated_by, 0
                )
                members.append(self._marks.member(stored))
            return _SetContent(revisions.pop(), members)
        raise ConflictError(f"The set {name} was changed again and again; nothing was written.")

    def _pages(self, name: str) -> tuple[set[int], list[Item]]:
        revisions, items, cursor = set[int](), list[Item](), None
        try:
            while True:
                page = self._client.set(name, limit=_PAGE, cursor=cursor)
                revisions.add(page.revision)
                items += page.items
                if (cursor := page.next_cursor) is None:
                    return revisions, items
        except ApiError as error:
            if error.status != 404:
                raise
        return {self._revision(name)}, []

    def _revision(self, name: str) -> int:
        """Revision of an empty set; 0 if it never had items."""
        try:
            return max((one.revision for one in self._client.revisions(name)), default=0)
        except ApiError as error:
            if error.status != 404:
                raise
            return 0

    def _replaced(
        self, name: str, content: _SetContent, wanted: MergedPart
    ) -> tuple[Changes, Sequence[Difference]]:
        if not content.members and not wanted.wanted:
            return _NOTHING, ()
        answer = self._client.push(
            name,
            [sets.make_raw_item(prepared.document) for prepared in wanted.wanted],
            dry_run=self._dry_run,
            max_removals=len(wanted.removed),
            if_match=content.revision,
        )
        return answer.changes, answer.difference or ()

    def _understood(
        self,
        error: ApiError,
        wanted: MergedPart,
        found: Iterable[Candidate],
        refused: _Refused,
    ) -> bool:
        """True if a retry without the refused entities can succeed; records these."""
        if error.status == 412:
            return True
        candidates = {candidate.prepared.ref: candidate for candidate in found}
        before = len(refused.refs)
        for conflict in error.details.get("conflicts", ()):
            if candidate := candidates.get(conflict["entityRef"]):
                owner = f"{candidate.prepared.ref} is owned by {conflict['owner']}"
                refused.add(candidate, f"{owner}, and stays as it is there")
        for problem in error.details.get("problems", ()):
            # A path such as items[3].metadata.name leads into an entity of the push.
            match = _ITEM_PATH.match(problem["path"])
            if match is None or int(match[1]) >= len(wanted.wanted):
                continue
            if candidate := candidates.get(wanted.wanted[int(match[1])].ref):
                path = problem["path"][match.end() :]
                refused.add(candidate, f"{path}: {problem['message']}")
                refused.origins.add(candidate.origin)
        return len(refused.refs) > before


_WITHOUT: Final = (
    "{} has to hold a credential, or the settings a table [integrations.{}.{}] with one."
)

_NONE: Final = "Add a table [importers.KIND.NAME] to the settings, or make one on the page Imports."


class ChosenImport(NamedTuple):
    """An import chosen on the command line: its kind, account name and options.

    `account` has the options of an integration that the settings lack; `variable` is the
    environment variable with its credential.
    """

    kind: str
    options: Mapping[str, Any]
    instance: str = DEFAULT_INSTANCE
    account: Mapping[str, Any] | None = None
    variable: str = ""


async def import_from(
    backend: Backend,
    chosen: ChosenImport,
    *,
    plan: bool,
    show: Show = lambda text: None,
    clock: Clock = now,
) -> ImportReport:
    """Import from a system, or plan the import.

    Raises ConfigurationError for a mistake in the options, or a missing credential.
    """
    importer = _chosen_importer(backend, chosen)
    async with backend.opened() as database:
        [report] = await _run_importers(
            backend, database, [importer], plan=plan, show=show, clock=clock
        )
        return report


async def import_configured(
    backend: Backend,
    name: str | None,
    *,
    plan: bool,
    show: Show = lambda text: None,
    clock: Clock = now,
) -> list[ImportReport]:
    """Run the importer with this id, from the settings or the browser, or all; or plan that.

    Raises NotFoundError for an unknown id.
    """
    async with backend.opened() as database:
        every = await backend.importer_registry(database).current()
        wanted = [every[id_] for id_ in sorted(every) if name in (None, id_)]
        if not wanted:
            known = f"There are: {', '.join(sorted(every))}." if every else _NONE
            what = "no importer" if name is None else f'no importer "{name}"'
            raise NotFoundError(f"There is {what}. {known}")
        return await _run_importers(backend, database, wanted, plan=plan, show=show, clock=clock)


def _chosen_importer(backend: Backend, chosen: ChosenImport) -> Importer:
    """Make the chosen importer.

    It has the id of the importer with this name in the settings, and writes into the same sets.
    """
    kind, options = registry.get_kind(chosen.kind), dict(chosen.options)
    accounts = backend.settings.integrations
    if kind.vendor:
        options["integration"] = chosen.instance
        if chosen.instance not in accounts.get(kind.vendor, {}):
            if not chosen.account:
                raise ConfigurationError(_WITHOUT.format(chosen.variable, kind.vendor, chosen[2]))
            accounts = {kind.vendor: {chosen.instance: dict(chosen.account)}}
    return registry.configure_importer(chosen.kind, chosen.instance, options, accounts)


async def _run_importers(
    backend: Backend,
    database: Database,
    importers: Sequence[Importer],
    *,
    plan: bool,
    show: Show,
    clock: Clock,
) -> list[ImportReport]:
    found = []
    try:
        for one in importers:
            client, at = backend.client(one.integration), clock()
            target = _import_target(backend, database, audit_written_set, at)
            report = await runner.run_import(one, client, target, at, plan=plan, show=show)
            found.append(report)
            if not plan:
                end = clock()
                outcome = make_outcome(report, client, end)
                await database.write(
                    partial(
                        records.add_ended_run,
                        importer=one.id,
                        started_at=at,
                        outcome=outcome,
                        now=end,
                    )
                )
    finally:
        await backend.disconnect()
    return found


async def import_parts(backend: Backend) -> list[ImportPartRecord]:
    """List every imported part with its last reading."""
    async with backend.opened() as database:
        return await records.list_part_records(database)


async def importer_detail(backend: Backend, id_: str, clock: Clock = now) -> ImporterDetail:
    """Read the details of an importer; raises NotFoundError for an unknown id."""
    async with backend.opened() as database:
        return await registry.get_importer_detail(
            database, backend.importer_registry(database), id_, clock()
        )


async def remove_held(
    backend: Backend, name: str, seen: str, clock: Clock = now
) -> ImportPartRecord:
    """Make the held removals of a part, named by its set, if their tag is still `seen`.

    Raises the errors of `writer.apply_removals`.
    """
    importer, part = _split_part(name)
    async with backend.opened() as database:
        entry = AuditEntry("import.apply", name_set(importer, part))
        target = _import_target(backend, database, entry, at := clock())
        return await writer.apply_removals(
            target, importer, part, make_import_actor(importer, at), seen
        )


async def keep_held(backend: Backend, name: str, seen: str, clock: Clock = now) -> ImportPartRecord:
    """Discard the held removals of a part, named by its set, if their tag is still `seen`.

    Raises the errors of `writer.discard_removals`.
    """
    importer, part = _split_part(name)
    async with backend.opened() as database:
        entry = AuditEntry("import.discard", name_set(importer, part))
        target = _import_target(backend, database, entry, clock())
        return await writer.discard_removals(target, importer, part, seen)


def _split_part(name: str) -> tuple[str, str]:
    importer, slash, part = name.removeprefix(PREFIX).partition("/")
    if not slash:
        raise NotFoundError(f'"{name}" is not IMPORTER/PART, such as github/acme.repositories.')
    return importer, part


def _import_target(
    backend: Backend, database: Database, about: AuditEntry | About, at: int
) -> ImportTarget:
    settings = backend.settings
    write = audit_writes(database, Caller(COMMAND_LINE, at), about)
    return ImportTarget(database, PushRules.of(settings), settings.revisions_kept, write)
