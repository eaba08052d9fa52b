"""Kinds of importers of code hosts: their options, and readings by an API with an account."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Final, TypeVar

from msgspec.structs import replace

from factbook.errors import ConfigurationError
from factbook.importers.importer import AccountImporterOptions, ReadingContext
from factbook.importers.snapshot import Snapshot
from factbook.outbound import HttpClient, Memory
from factbook.settings.option_tables import about

Api = TypeVar("Api")
Further = TypeVar("Further")

CATALOG_FILES: Final = ("catalog-info.yaml", "catalog-info.yml")


class CodeHostImportOptions(AccountImporterOptions, frozen=True, kw_only=True):
    """Repositories that are imported, and what is read of them."""

    files: Annotated[
        tuple[str, ...], about("Paths of catalog files; the first that exists is read.")
    ] = CATALOG_FILES
    archived: Annotated[bool, about("Import archived repositories, as deprecated.")] = False
    forks: Annotated[bool, about("Import forks.")] = False
    people: Annotated[bool, about("Import teams and members.")] = True
    people_from: Annotated[
        tuple[str, ...],
        about(
            "Repositories whose catalog files may add users and groups, such as `acme/people` or "
            "`acme/team-*`. Their memberships give rights once `people_sets` names the part."
        ),
    ] = ()


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


def with_api(
    api: Callable[[HttpClient, Any, Memory, int], Api],
    read: Callable[[Api, Options, Further], Awaitable[Snapshot]],
) -> Callable[[ReadingContext, Options, Further], Awaitable[Snapshot]]:
    """The reading of a kind, whether of everything or of what hints name, from one by an API."""

    async def work(reading: ReadingContext, options: Options, further: Further) -> Snapshot:
        made = api(reading.client, reading.account, reading.memory, reading.now)
        return await read(made, options, further)

    return work
