"""Importer of another catalog over its own interface: Backstage, Roadie, or another Factbook."""

from typing import Final

from factbook.importers.catalog import peer
from factbook.importers.catalog.options import CatalogImportOptions
from factbook.importers.importer import Access, ImporterKind, ReadingContext, Show
from factbook.importers.snapshot import Snapshot
from factbook.outbound import ANONYMOUS, Credential


def _access(options: CatalogImportOptions) -> Access:
    headers = {"authorization": f"Bearer {options.token}"}
    token = Credential.fixed(f"the token for {options.place}", headers)
    return Access(
        base_url=options.address, authorize=lambda _: token if options.token else ANONYMOUS
    )


async def _read(context: ReadingContext, options: CatalogImportOptions, show: Show) -> Snapshot:
    return await peer.read(context.client, options, show)


IMPORTER: Final = ImporterKind(
    id="catalog",
    title="Catalog",
    options=CatalogImportOptions,
    read=_read,
    access=_access,
    by_people=True,
)
