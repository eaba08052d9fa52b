"""The owner `acme` at a fake of any code host, as its importer reads it."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from factbook.importers.snapshot import ImportedItem, Snapshot, SnapshotPart


class HostedOwner(ABC):
    """Organization or group; `word` is that of the part of its repositories."""

    word: ClassVar[str] = "repositories"

    @abstractmethod
    async def read(self) -> Snapshot:
        """One reading."""

    async def part(self, word: str = "") -> SnapshotPart:
        """A part of one reading, by default that of the repositories."""
        parts = {part.key: part for part in (await self.read()).parts}
        return parts[f"acme.{word or self.word}"]

    async def entities(self, word: str = "") -> dict[str, dict[str, Any]]:
        """The entities of a part by name."""
        items = (await self.part(word)).items
        return {name(item): dict(item.entity) for item in items}


def name(item: ImportedItem) -> str:
    """The name of an item's entity."""
    found: str = item.entity["metadata"]["name"]
    return found


def contents(texts: dict[str, str]) -> dict[str, Any]:
    """The files of a repository of a fake, given as strings by path."""
    return {"files": [*texts], "texts": {path: text.encode() for path, text in texts.items()}}
