"""The store of user-defined sources.

Documents have the form used by discovery; `datasource.parse` has validated them before.
"""

from collections.abc import Mapping
from dataclasses import replace as changed
from typing import Final

from factbook.datasources import clients
from factbook.definitions.documents import Document
from factbook.definitions.store import (
    EVERY_DEFINITION,
    MAJOR,
    MINOR,
    PATCH,
    DefinitionStore,
    DefinitionTables,
    StoredDefinition,
)
from factbook.errors import ConflictError, problem
from factbook.facts import datasource, retention
from factbook.facts.datasource import DataSource
from factbook.scheduling import runs
from factbook.storage import Database, Transaction


class StoredSource(StoredDefinition, frozen=True):
    """A stored source."""

    def shown(self) -> DataSource:
        """The source as shown to users: with its version and times, and its draft status."""
        return changed(
            datasource.parse_source(self.current),
            draft=self.is_draft,
            version=self.version,
            created_at=self.created_at,
            updated_at=self.updated_at,
        )


class SourceStore(DefinitionStore[StoredSource]):
    """The sources. Their revision is also raised by changes of the connections that they use."""

    def __init__(self) -> None:
        tables = DefinitionTables("data_sources", "data_source_versions", "source_id")
        super().__init__("data source", tables, StoredSource, "data_source")

    async def everything(self, database: Database) -> list[StoredSource]:
        """Every source, by its id; there is no limit, so that others are answered meanwhile."""
        pages = database.pages(self._sql(EVERY_DEFINITION), size=100)
        return [self._stored(row) async for rows in pages for row in rows]

    def put(
        self, transaction: Transaction, document: Document, actor: str, now: int
    ) -> StoredSource:
        """Make the document the draft of its source; an equal document changes nothing.

        Before the first publication facts are collected by the draft; those that another one no
        longer fits are lost.
        """
        before = self.read(transaction, document["id"])
        after = super().put(transaction, document, actor, now)
        if before is not None and after != before:
            retention.drop_facts(
                transaction, before.id, describe_lost_facts(before.current, after.current)
            )
        return after

    def publish(
        self,
        transaction: Transaction,
        id_: str,
        actor: str,
        now: int,
        *,
        force: bool = False,
    ) -> StoredSource:
        """Publish the draft under the next version; without a draft nothing changes.

        Raises NotFoundError for an unknown source, and ConflictError, unless forced, if a fact was
        removed or has another type.
        """
        before = self.existing_within(transaction, id_)
        facts = describe_lost_facts(before.current, before.written)
        if facts and not force:
            raise _types_of_facts(facts)
        after = super().publish(transaction, id_, actor, now)
        retention.drop_facts(transaction, id_, facts)
        return after

    def raised(self, before: Document, after: Document) -> int:
        """Facts that are lost raise the first number, new ones the second."""
        if describe_lost_facts(before, after):
            return MAJOR
        return MINOR if after["schema"].keys() - before["schema"].keys() else PATCH

    def forget(self, transaction: Transaction, stored: StoredSource) -> None:
        """Delete the facts, runs and memory of a source."""
        for forget_source in (
            retention.delete_source_facts,
            runs.delete_source_runs,
            clients.delete_source_memories,
        ):
            forget_source(transaction, stored.id)


def describe_lost_facts(before: Document, after: Document) -> dict[str, str]:
    """Describe each fact whose stored values no longer fit: removed, or of another type."""
    old, new = before["schema"], after["schema"]
    return {
        name: f"was {old[name]['type']}, is {new[name]['type']}" if name in new else "is removed"
        for name in old
        if name not in new or new[name]["type"] != old[name]["type"]
    }


def _types_of_facts(facts: Mapping[str, str]) -> ConflictError:
    words = "; ".join(f"{name} {what}" for name, what in facts.items())
    text = (
        "These facts would be lost to everything that reads them: {}. Publish with force to do so."
    )
    problems = [problem(f"schema.{name}", what) for name, what in facts.items()]
    error = ConflictError(text.format(words), problems=problems)
    return error.unless_read(ConflictError(text.format(f"{len(facts)} of them")))


source_store: Final = SourceStore()
