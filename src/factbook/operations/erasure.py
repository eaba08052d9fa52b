"""Erase a person's data: delete the person's own records, and pseudonymize the others.

One transaction deletes the account and everything that belongs to it. Records that stay are
rewritten in portions to keep write waits short. The next erasure resumes an interrupted one.
"""

import re
import secrets
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any, Final, NamedTuple, NoReturn, TypeVar

import msgspec

from factbook.audit.trail import AuditEntry, Caller, append_record, make_record
from factbook.auth import users
from factbook.auth.users import Erasure
from factbook.catalog import ref as refs
from factbook.catalog.store import index_rows, revisions
from factbook.catalog.store.revisions import Holder
from factbook.checks.results import state_store
from factbook.clock import Throttle
from factbook.datasources import clients
from factbook.errors import ConflictError, InputError, NotFoundError
from factbook.facts import retention
from factbook.importers.snapshot import PREFIX as IMPORTED
from factbook.scim import directory
from factbook.storage import Database, Transaction
from factbook.storage.database import Write, take_numbers
from factbook.webhooks import digests

# Rows read at a time, and changed at a time if all of them name the person.
_ROWS_AT_ONCE: Final = 1_000

Values = Mapping[str, Any]


class PersonalColumns(NamedTuple):
    """Columns of a table that can name people, and a word for its rows.

    `own` is the column with the person a row belongs to: such rows are deleted separately.
    `counter` counts changes; processes reread the rows when it changes.
    """

    title: str
    table: str
    key: tuple[str, ...]
    columns: tuple[str, ...]
    own: str = ""
    counter: str = ""


class _Change(NamedTuple):
    key: tuple[Any, ...]
    before: Values
    after: Values


# The columns of a row that change, with their new texts.
Rewrite = Callable[[str, Values], Values]


_IN_DEFINITIONS: Final = ("draft", "published", "created_by", "updated_by", "published_by")
_IN_VERSIONS: Final = ("document", "published_by")

# Rows that stay: a pseudonym replaces the person.
REPLACED: Final = (
    PersonalColumns(
        "audit records", "audit", ("at", "id"), ("actor", "object", "detail", "address")
    ),
    PersonalColumns("events", "events", ("id",), ("about", "content")),
    PersonalColumns(
        "webhook retries", "webhook_retries", ("webhook_id", "event_id"), ("body", "error")
    ),
    PersonalColumns("sets", "sets", ("id",), ("updated_by",)),
    PersonalColumns("entities", "entities", ("id",), ("updated_by",)),
    PersonalColumns("revisions", "revisions", ("set_id", "number"), ("created_by",)),
    PersonalColumns(
        "earlier documents",
        "revision_changes",
        ("set_id", "number", "ref"),
        ("document",),
        own="ref",
    ),
    PersonalColumns(
        "facts",
        "facts_latest",
        ("source_id", "entity_id"),
        ("facts", "reasons", "kept"),
        own="entity_id",
    ),
    PersonalColumns(
        "fact history",
        "facts_history",
        ("source_id", "entity_id", "written_at"),
        ("facts", "reasons"),
        own="entity_id",
    ),
    PersonalColumns("requests for facts", "collection_requests", ("entity_id",), ("requested_by",)),
    PersonalColumns("work to do", "batches", ("run_id", "number"), ("work",)),
    PersonalColumns("work given up", "given_up_batches", ("run_id", "number"), ("work",)),
    PersonalColumns("runs", "runs", ("id",), ("error",)),
    PersonalColumns("tokens of others", "tokens", ("id",), ("name", "created_by"), own="owner"),
    PersonalColumns("accounts of others", "people", ("ref",), ("created_by",), own="ref"),
    PersonalColumns(
        "account links of others", "account_links", ("scim_id",), ("confirmed_by",), own="ref"
    ),
    PersonalColumns(
        "SCIM users and groups", "scim_resources", ("id",), ("document", "problem"), own="id"
    ),
    PersonalColumns(
        "data sources", "data_sources", ("id",), _IN_DEFINITIONS, counter="data_source"
    ),
    PersonalColumns(
        "versions of data sources", "data_source_versions", ("source_id", "version"), _IN_VERSIONS
    ),
    PersonalColumns(
        "connections", "connections", ("name",), ("options", "created_by", "updated_by")
    ),
    PersonalColumns(
        "importers",
        "importers",
        ("id",),
        ("name", "options", "created_by", "updated_by"),
        counter="importers",
    ),
    PersonalColumns(
        "parts of imports", "import_parts", ("importer", "part"), ("problems", "held", "spared")
    ),
    PersonalColumns("import runs", "import_runs", ("id",), ("error",)),
    PersonalColumns("checks", "checks", ("id",), (*_IN_DEFINITIONS, "pending"), counter="checks"),
    PersonalColumns("versions of checks", "check_versions", ("check_id", "version"), _IN_VERSIONS),
    PersonalColumns("changes of results", "check_changes", ("id",), ("why",), own="entity_id"),
    PersonalColumns("counts of results", "check_counts", ("slot", "owner"), ("owner",)),
    PersonalColumns(
        "counts of results by day", "check_days", ("check_id", "owner", "day"), ("owner",)
    ),
    PersonalColumns(
        "scorecards", "scorecards", ("id",), (*_IN_DEFINITIONS, "pending"), counter="checks"
    ),
    PersonalColumns(
        "versions of scorecards", "scorecard_versions", ("scorecard_id", "version"), _IN_VERSIONS
    ),
    PersonalColumns(
        "counts of levels",
        "scorecard_counts",
        ("slot", "owner", "system", "kind", "level"),
        ("owner",),
    ),
    PersonalColumns(
        "counts of levels by day", "scorecard_days", ("scorecard_id", "owner", "day"), ("owner",)
    ),
    PersonalColumns(
        "exemptions",
        "exemptions",
        ("id",),
        ("entity_ref", "reason", "link", "requested_by", "decided_by", "comment"),
    ),
    PersonalColumns("digests", "digests", ("id",), ("created_by", "error"), own="owner"),
    PersonalColumns("webhooks", "webhook_endpoints", ("id",), ("created_by", "error")),
    PersonalColumns("webhooks of an earlier release", "webhooks", ("id",), ("created_by", "error")),
)

T = TypeVar("T")

# The first pass rewrites; later passes catch records written meanwhile.
_LOOKS: Final = 4
_START: Final = r"(?:(?<![\w.%+-])|(?<=\\[nrt]))"
_END: Final = r"(?![A-Za-z0-9]|[-_.]+[A-Za-z0-9])"
_MOST_NAMED: Final = 3


class ErasureReport(NamedTuple):
    """Counts of deleted and pseudonymized records, by kind."""

    ref: str
    pseudonym: str
    deleted: Mapping[str, int]
    replaced: Mapping[str, int]

    @property
    def total(self) -> int:
        """Number of all affected records."""
        return sum(self.deleted.values()) + sum(self.replaced.values())


class _Begun(NamedTuple):
    erasure: Erasure
    deleted: dict[str, int]


class _UndoneError(Exception):
    """Rolls back a transaction that only counts; has the result it would have had."""

    def __init__(self, begun: _Begun) -> None:
        super().__init__()
        self.begun = begun


async def preview_erasure(database: Database, ref: str, caller: Caller) -> ErasureReport:
    """Count the records an erasure would delete and rewrite; changes nothing.

    Raises NotFoundError if there is no data about the person, and ConflictError if the person is
    the only administrator, or if an outside system would restore the data.
    """

    def undone(transaction: Transaction) -> NoReturn:
        raise _UndoneError(_begin_erasure(transaction, ref, caller))

    try:
        await database.write(undone)
    except _UndoneError as undoing:
        begun = undoing.begun
    replaced = await _replace_texts(database, begun.erasure, apply=False)
    report = _erasure_report(ref, begun, replaced)
    if not report.total:
        raise NotFoundError(
            f"There is no data about {ref}: no account and no records. To check the name, run "
            "`factbook people list`."
        )
    return report._replace(pseudonym="")


async def erase_data_of(database: Database, ref: str, caller: Caller) -> ErasureReport:
    """Erase a person's data; raises the errors of `preview_erasure`."""
    begun = await database.write(lambda transaction: _begin_erasure(transaction, ref, caller))
    replaced = await _replace_texts(database, begun.erasure, apply=True)
    for _ in range(_LOOKS):
        missed = await _replace_texts(database, begun.erasure, apply=True)
        if not missed:
            break
        replaced |= {name: replaced.get(name, 0) + number for name, number in missed.items()}
    else:
        raise ConflictError(
            f"Others still write about {ref}. End its calls to the service, then run this again: "
            "it resumes."
        )
    # Group members are search keys, which stay until swept.
    await index_rows.sweep_search_keys(database, Throttle(clock=lambda: 0.0))
    await database.write(lambda transaction: users.finish_erasure(transaction, begun.erasure))
    return _erasure_report(ref, begun, replaced)


def _erasure_report(ref: str, begun: _Begun, replaced: Mapping[str, int]) -> ErasureReport:
    deleted = {**begun.deleted, "cached answers": replaced.get(_ANSWERS, 0)}
    kept = {name: number for name, number in replaced.items() if number and name != _ANSWERS}
    gone = {name: number for name, number in deleted.items() if number}
    return ErasureReport(ref, begun.erasure.ref, gone, kept)


def _begin_erasure(transaction: Transaction, ref: str, caller: Caller) -> _Begun:
    """Delete the person's own records, and record that the erasure has begun."""
    earlier = users.find_unfinished_erasure(transaction, ref)
    account = users.delete_account(transaction, ref)
    rows = directory.delete_scim_users(transaction, ref, account.scim_ids, account.subject)
    every = {ref, *(row.ref for row in rows if row.ref), *(earlier.refs if earlier else ())}
    _refuse_erasure(revisions.find_ref_holders(transaction, every), ref)
    entities = revisions.erase_removed(transaction, every)
    ids = sorted({*entities.ids, *(earlier.entities if earlier else ())})
    deleted = {
        "interrupted erasures": int(earlier is not None),
        **account.deleted,
        "SCIM users": len(rows),
        "removed entities": len(entities.ids),
        "earlier documents": entities.changes,
        "facts and their history": retention.delete_facts(transaction, ids),
        "changes of results": state_store.forget_entity_changes(transaction, ids),
        "digests": digests.delete_digests_of(transaction, every),
    }
    found: set[str] = {*account.identifiers, *(row.id for row in rows)}
    found |= {text for row in rows for text in directory.find_naming_texts(row.resource)}
    found |= {text for document in entities.documents for text in _naming_documents(document)}
    texts = {text for text in found if _is_distinctive(text)} - every
    names = (found - texts) | {one.removeprefix(users.PREFIX) for one in every}
    erasure = Erasure(
        earlier.pseudonym if earlier else f"erased-{secrets.token_hex(4)}",
        frozenset(every),
        frozenset(texts) | (earlier.texts if earlier else frozenset()),
        frozenset(names) | (earlier.names if earlier else frozenset()),
        frozenset(ids),
    )
    users.save_erasure(transaction, ref, erasure, caller.at)
    if earlier is None:
        entry = AuditEntry("person.erase", erasure.ref, {"deleted": sum(deleted.values())})
        append_record(transaction, make_record(caller, entry))
    return _Begun(erasure, deleted)


def _refuse_erasure(found: list[Holder], ref: str) -> None:
    """Raise ConflictError if the catalog names the person: the next push would restore the data."""
    if not found:
        return
    first = found[0]
    if not first.relation:
        raise ConflictError(
            f"{first.ref} is in the catalog, {_where(first)}. Remove it there first, or it comes "
            "back."
        )
    named = sorted({one.ref for one in found})
    listed = ", ".join(named[:_MOST_NAMED]) + (" and others" if len(named) > _MOST_NAMED else "")
    raise ConflictError(
        f"The catalog still names {ref}: {listed} ({first.relation}, {_where(first)}). Change that "
        "first, or the data comes back."
    )


def _where(holder: Holder) -> str:
    if not holder.set:
        return "outside any set"
    if holder.set.startswith(IMPORTED):
        return f"from the importer {holder.set.removeprefix(IMPORTED).partition('/')[0]}"
    return f"in the set {holder.set}"


def _naming_documents(document: str) -> Iterator[str]:
    """Find the texts in a user's document that identify the person."""
    entity = msgspec.json.decode(document)
    profile = entity.get("spec", {}).get("profile", {})
    profile = profile if isinstance(profile, dict) else {}
    given = (entity["metadata"].get("title"), profile.get("displayName"), profile.get("email"))
    return (text for text in given if isinstance(text, str) and text)


def _is_distinctive(text: str) -> bool:
    """True for a text that identifies a person anywhere, such as an email address or an id."""
    return "@" in text or " " in text.strip() or (len(text) >= 8 and any(map(str.isdigit, text)))


_ANSWERS: Final = "answers"


async def _replace_texts(database: Database, erasure: Erasure, *, apply: bool) -> dict[str, int]:
    """Rewrite all records that name the person, or only count them; returns the counts."""
    replacement = _Replacement(erasure)

    def write(work: Callable[[Transaction], T], /) -> Awaitable[T]:
        return database.write(users.open_for_erasure(erasure, work))

    given = write if apply else None
    counts = {
        where.title: await replace_personal_texts(
            database, where, replacement.searched, replacement.changed, given
        )
        for where in REPLACED
    }
    counts[_ANSWERS] = await clients.delete_mentions(database, replacement.mentions, given)
    return {name: number for name, number in counts.items() if number}


class _Replacement:
    """Replaces the texts that identify a person."""

    def __init__(self, erasure: Erasure) -> None:
        self._erasure = erasure
        self._own = erasure.refs | erasure.texts | erasure.entities
        self._names = {ref.removeprefix(users.PREFIX) for ref in erasure.refs}
        name, text, bare = map(_either_pattern, (self._names, erasure.texts, erasure.names))
        self._ref = re.compile(
            rf"(user[:/]default/|/people/|{_START}user:)(?:{name}){_END}", re.IGNORECASE
        )
        self._text = re.compile(rf"{_START}(?:{text})(?!\w|[-.]\w)", re.IGNORECASE)
        self._scim = re.compile(rf'("scimUser":")(?:{bare})(?=")', re.IGNORECASE)
        self._word = re.compile(rf"(?<![\w.-])(?:{name}){_END}", re.IGNORECASE)
        forms = {
            form for one in (*self._names, *erasure.texts) for form in (one, _escaped_pattern(one))
        }
        # SQLite's lower() changes ASCII letters only.
        in_ascii = {
            "".join(char.lower() if char.isascii() else char for char in form) for form in forms
        }
        self.searched = sorted({form.lower() for form in forms} | in_ascii)

    def mentions(self, text: str) -> bool:
        """True if a cached answer may be about the person; losing one only costs another call."""
        return bool(self._word.search(text) or self._text.search(text))

    def changed(self, table: str, row: Values) -> Values:
        """Columns of a row that change, with their new texts."""
        if row.get(_OWN.get(table, "")) in self._own:
            return {}
        pseudonym = self._erasure.pseudonym

        def replace_ref(match: re.Match[str]) -> str:
            prefix = users.PREFIX if match[1].lower() == "user:" else match[1]
            return prefix + pseudonym

        new: dict[str, str] = {}
        for name, value in row.items():
            if isinstance(value, str):
                text = self._text.sub(pseudonym, self._ref.sub(replace_ref, value))
                new[name] = self._scim.sub(lambda match: match[1] + pseudonym, text)
        if table == "audit":
            self._change_record(row, new)
        elif table == "revision_changes":
            new["document"] = self._without_member(new["document"])
        elif table in ("events", "webhook_retries"):
            body = "content" if table == "events" else "body"
            new[body] = self._without_details(new[body])
        return {name: text for name, text in new.items() if text != row[name]}

    def _change_record(self, row: Values, new: dict[str, str]) -> None:
        """Also remove the address, and the name the person gave a token, from an audit record."""
        new["address"] = row["address"]
        if new["actor"] != row["actor"] or (new["object"] != row["object"] and not row["actor"]):
            new["address"] = ""
        if new["detail"] != row["detail"]:
            detail = msgspec.json.decode(new["detail"])
            if detail.get("owner") == self._erasure.ref and "name" in detail:
                new["detail"] = _json_pattern({**detail, "name": ""})
            if detail.get("entity") == self._erasure.ref and row["object"].startswith("Users/"):
                new["object"] = f"Users/{self._erasure.pseudonym}"

    def _without_member(self, document: str) -> str:
        """Remove the person from a group's document, which may omit the kind in references."""
        entity = msgspec.json.decode(document)
        members = entity.get("spec", {}).get("members")
        if not isinstance(members, list):
            return document
        namespace = entity["metadata"].get("namespace", refs.DEFAULT_NAMESPACE)
        kept = [self._erasure.ref if self._is_person(one, namespace) else one for one in members]
        return (
            document
            if kept == members
            else _json_pattern({**entity, "spec": {**entity["spec"], "members": kept}})
        )

    def _is_person(self, text: Any, namespace: str) -> bool:
        try:
            return (
                refs.canonicalize_ref(text, kind="user", namespace=namespace) in self._erasure.refs
            )
        except (InputError, TypeError):
            return False

    def _without_details(self, text: str) -> str:
        """Remove the facts about the person's entity from an event."""
        if self._erasure.ref not in text:
            return text
        content = msgspec.json.decode(text)
        data = content.get("data", content)
        if data.get("entityRef") == self._erasure.ref:
            data.update({name: {} for name in ("facts", "why") if name in data})
        for change in data.get("changes", ()) if isinstance(data.get("changes"), list) else ():
            if change[0] == self._erasure.ref and isinstance(change[-1], dict):
                change[-1] = {}
        return _json_pattern(content)


def _either_pattern(texts: Iterable[str]) -> str:
    """Pattern for any of the texts, longest first; matches nothing if there are none."""
    forms = {form for text in texts for form in (text, _escaped_pattern(text))}
    return "|".join(map(re.escape, sorted(forms, key=len, reverse=True))) or r"(?!)"


def _escaped_pattern(text: str) -> str:
    """Escape a text as in JSON."""
    return _json_pattern(text)[1:-1]


def _json_pattern(value: object) -> str:
    return msgspec.json.encode(value).decode()


_OWN: Final = {where.table: where.own for where in REPLACED if where.own}


async def replace_personal_texts(
    database: Database,
    where: PersonalColumns,
    texts: Sequence[str],
    rewrite: Rewrite,
    write: Write | None,
) -> int:
    """Rewrite the rows that contain one of these lowercase texts; returns their number.

    Without `write`, only count them.
    """
    key = ", ".join(where.key)
    columns = [*where.columns, *([where.own] if where.own else [])]
    whole = "lower(" + " || ' ' || ".join(f"coalesce({one}, '')" for one in where.columns) + ")"
    named = " OR ".join([f"{whole} LIKE ? ESCAPE '!'"] * len(texts))
    patterns = [f"%{_escape_pattern(text)}%" for text in texts]
    place = f"({', '.join('?' * len(where.key))})"
    count = 0
    after: tuple[Any, ...] = ()
    while True:
        since = f"({key}) > {place}" if after else "1 = 1"
        end = await _find_portion_end(database, where.table, key, since, after)
        until = f"({key}) <= {place}" if end else "1 = 1"
        rows = await database.search(
            f"SELECT {key}, {', '.join(columns)} FROM {where.table} "
            f"WHERE {since} AND {until} AND ({named}) ORDER BY {key}",
            (*after, *end, *patterns),
        )
        changes = []
        for row in rows:
            before = dict(zip(columns, row[len(where.key) :], strict=True))
            if new := rewrite(where.table, before):
                changes.append(_Change(row[: len(where.key)], before, new))
        if changes and write is not None:
            await write(partial(_store_changes, where=where, changes=changes))
        count, after = count + len(changes), end
        if not end:
            return count


async def _find_portion_end(
    database: Database, table: str, key: str, since: str, after: tuple[Any, ...]
) -> tuple[Any, ...]:
    """The key of the last row of the next portion; empty if fewer rows remain."""
    sql = (
        f"SELECT {key} FROM {table} WHERE {since} ORDER BY {key} LIMIT 1 OFFSET {_ROWS_AT_ONCE - 1}"
    )
    rows = await database.search(sql, after)
    return rows[0] if rows else ()


def _store_changes(
    transaction: Transaction, *, where: PersonalColumns, changes: list[_Change]
) -> None:
    """Write rows that have not changed since they were read; the next pass finds the others."""
    for names, several in groupby(
        sorted(changes, key=_list_changed_columns), key=_list_changed_columns
    ):
        values = ", ".join(f"{name} = ?" for name in names)
        same = " AND ".join(f"{name} = ?" for name in (*where.key, *names))
        transaction.many(
            f"UPDATE {where.table} SET {values} WHERE {same}",
            [
                (*one.after.values(), *one.key, *(one.before[name] for name in names))
                for one in several
            ],
        )
    if where.counter:
        take_numbers(transaction, where.counter)


def _list_changed_columns(change: _Change) -> tuple[str, ...]:
    return tuple(change.after)


def _escape_pattern(text: str) -> str:
    for char in "!%_":
        text = text.replace(char, f"!{char}")
    return text
