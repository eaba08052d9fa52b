"""Options of an import from any code host."""

from typing import Annotated, Any, Final, TypeVar

from msgspec.structs import replace

from factbook.errors import ConfigurationError
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


Options = TypeVar("Options", bound=CodeHostImportOptions)


def completed(options: Options, account: Any, *, name: str, flag: str) -> Options:
    """The options with the owners of the account where they name none.

    `name` is the option of both that names owners, `flag` that of the command line. Raises
    ConfigurationError if neither names one.
    """
    owners = getattr(options, name) or tuple(getattr(account, name))
    if not owners:
        raise ConfigurationError(f"{name} has to name at least one, such as acme ({flag} acme).")
    return replace(options, **{name: owners})
