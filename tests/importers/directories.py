"""Directories as LDIF files, and their importer."""

import base64
from pathlib import Path
from typing import Any

from factbook.importers import ldif
from factbook.importers.ldif import LdifImportOptions
from factbook.importers.snapshot import Snapshot, SnapshotPart
from tests.integrations.asking import Memory
from tests.service import NOON

BASE = "dc=example,dc=org"


def entry(dn: str, **values: str | bytes | list[str]) -> str:
    """A record and the empty line behind it; bytes are written as base64."""
    lines = [f"dn: {dn}"]
    for name, given in values.items():
        for value in given if isinstance(given, list) else [given]:
            if isinstance(value, bytes):
                lines.append(f"{name}:: {base64.b64encode(value).decode()}")
            else:
                lines.append(f"{name}: {value}")
    return "\n".join(lines) + "\n\n"


def person(uid: str, number: int = 0, **values: str | bytes | list[str]) -> str:
    given = {"objectClass": ["top", "inetOrgPerson"], "uid": uid, "cn": uid.title(), **values}
    if number:
        given["entryUUID"] = unique(number)
    return entry(f"uid={uid},ou=people,{BASE}", **given)


def group(cn: str, *uids: str, number: int = 0, **values: str | bytes | list[str]) -> str:
    members = [f"uid={uid},ou=people,{BASE}" for uid in uids]
    given = {"objectClass": "groupOfNames", "cn": cn, "member": members, **values}
    if number:
        given["entryUUID"] = unique(number)
    return entry(f"cn={cn},ou=groups,{BASE}", **given)


def unique(number: int) -> str:
    return f"00000000-0000-0000-0000-{number:012}"


class LdifFile:
    """A file, and the importer that reads it."""

    def __init__(self, folder: Path, *records: str, **options: Any) -> None:
        self.path = folder / "people.ldif"
        self.memory = Memory()
        self.options = LdifImportOptions(path=str(self.path), **options)
        self.write(*records)

    def write(self, *records: str) -> None:
        """Replace the content."""
        self.path.write_text("version: 1\n\n" + "".join(records))

    async def read(self) -> Snapshot:
        """One reading."""
        return await ldif.read_ldif(self.options, self.memory, lambda text: None, NOON)

    async def part(self, key: str = ldif.PEOPLE_PART) -> SnapshotPart:
        """A part of one reading."""
        return {part.key: part for part in (await self.read()).parts}[key]

    async def entities(self, key: str = ldif.PEOPLE_PART) -> dict[str, dict[str, Any]]:
        """The entities of a part by name."""
        items = (await self.part(key)).items
        return {item.entity["metadata"]["name"]: dict(item.entity) for item in items}
