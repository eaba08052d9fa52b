"""Options of an import from any code host."""

from typing import Annotated, Final

from factbook.importers.importer import AccountImporterOptions
from factbook.settings.option_tables import about

CATALOG_FILES: Final = ("catalog-info.yaml", "catalog-info.yml")


class CodeHostImportOptions(AccountImporterOptions, frozen=True, kw_only=True):
    """Repositories that are imported, and what is read of them."""

    files: Annotated[
        tuple[str, ...], about("Paths of catalog files; the first that exists is read.")
    ] = CATALOG_FILES
    archived: Annotated[bool, about("Import archived repositories, as deprecated.")] = False
    forks: Annotated[bool, about("Import forks.")] = False
    people: Annotated[bool, about("Import teams and members.")] = True
