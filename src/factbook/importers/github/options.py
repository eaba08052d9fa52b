"""Options of an import from GitHub, beside those of the integration whose credential it uses."""

from typing import Annotated

from factbook.importers.importer import AccountImporterOptions
from factbook.settings.option_tables import about

CATALOG_FILES = ("catalog-info.yaml", "catalog-info.yml")


class GithubImportOptions(AccountImporterOptions, frozen=True, kw_only=True):
    """Organizations, and what is imported of them."""

    organizations: Annotated[
        tuple[str, ...],
        about("Organizations to import. Empty: those of the integration."),
    ] = ()
    files: Annotated[
        tuple[str, ...], about("Paths of catalog files; the first that exists is read.")
    ] = CATALOG_FILES
    archived: Annotated[bool, about("Import archived repositories, as deprecated.")] = False
    forks: Annotated[bool, about("Import forks.")] = False
    people: Annotated[bool, about("Import teams and members.")] = True
