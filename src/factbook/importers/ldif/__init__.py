"""Importer of LDIF files: the people and groups of a directory."""

from typing import Final

from factbook.importers.importer import ImporterKind, ReadingContext, Show
from factbook.importers.ldif import directory
from factbook.importers.ldif.options import LdifImportOptions
from factbook.importers.snapshot import Snapshot


async def _read(context: ReadingContext, options: LdifImportOptions, show: Show) -> Snapshot:
    return await directory.read(options, context.memory, show, context.now)


IMPORTER: Final = ImporterKind(
    id="ldif",
    title="LDIF file",
    options=LdifImportOptions,
    makes=("group", "user"),
    read=_read,
)
