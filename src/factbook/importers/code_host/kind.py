"""Kinds of importers of code hosts: their options, and readings by an API with an account."""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Annotated, Any, Final, TypeVar

from msgspec.structs import replace

from factbook.catalog.validation import valid_namespace
from factbook.errors import ConfigurationError
from factbook.importers.importer import NO_NAMESPACE, AccountImporterOptions, ReadingContext
from factbook.importers.snapshot import Snapshot
from factbook.integrations.integration import Authorize
from factbook.outbound import ANONYMOUS, HttpClient, Memory, host_of
from factbook.settings.option_tables import about

Api = TypeVar("Api")
Further = TypeVar("Further")

CATALOG_FILES: Final = ("catalog-info.yaml", "catalog-info.yml")
# Of each repository, in the one query of its listing.
_MOST_FILES: Final = 4
_OWNER: Final = re.compile(r"[\w.-]+(/[\w.-]+)*", re.ASCII)
# The owner and the name, or the beginning of both.
_REPOSITORIES: Final = re.compile(r"[\w.-]+(/[\w.-]+)+|([\w./-]*)\*", re.ASCII)


class CodeHostImportOptions(AccountImporterOptions, frozen=True, kw_only=True):
    """Repositories that are imported, and what is read of them."""

    files: Annotated[
        tuple[str, ...], about("Paths of catalog files; the first that exists is read.")
    ] = CATALOG_FILES
    archived: Annotated[bool, about("Import archived repositories, as deprecated.")] = False
    forks: Annotated[bool, about("Import forks.")] = False
    people: Annotated[bool, about("Import teams and members.")] = True
    text_hosts: Annotated[
        tuple[str, ...],
        about(
            "Other hosts whose files `$text`, `$json` and `$yaml` may name, such as "
            "`specs.example.com` or `http://specs.internal:8080/apis`. They are sent no credential."
        ),
    ] = ()
    namespace: Annotated[
        str,
        about(
            "Namespace of everything that is made of repositories, teams and members. Empty: "
            "`default` for the first organization, and for each further one its name; what was "
            "imported before stays in its namespace."
        ),
    ] = ""
    people_from: Annotated[
        tuple[str, ...],
        about(
            "Repositories whose catalog files may add users and groups, such as `acme/people` or "
            "`acme/team-*`. Their memberships give rights once `people_sets` names the part."
        ),
    ] = ()

    @property
    def text_bases(self) -> tuple[str, ...]:
        """The base URLs of the hosts."""
        bases = (one if "://" in one else f"https://{one}" for one in self.text_hosts)
        return tuple(base.rstrip("/") for base in bases)

    def problems(self) -> Iterable[str]:
        """The mistakes in the table, and what can match nothing."""
        yield from super().problems()
        if not 1 <= len(self.files) <= _MOST_FILES:
            yield f"files has to have between one and {_MOST_FILES} paths"
        if not all(map(_is_path, self.files)):
            yield (
                "files has a path that matches nothing: paths begin in the root folder, without a "
                "slash in front, such as docs/catalog-info.yaml; patterns belong in the targets of "
                "a Location"
            )
        if not all(map(_REPOSITORIES.fullmatch, self.people_from)):
            yield "people_from has to be like acme/people or acme/team-*"
        for name, base in zip(self.text_hosts, self.text_bases, strict=True):
            try:
                host_of(base)
            except ConfigurationError as error:
                yield f"text_hosts: {name}: {error.message}"
        if self.namespace and not valid_namespace(self.namespace):
            yield NO_NAMESPACE

    def further(self) -> Mapping[str, Authorize]:
        """The hosts that are called beside the account's, without a credential."""
        return dict.fromkeys(self.text_bases, lambda _: ANONYMOUS)


Options = TypeVar("Options", bound=CodeHostImportOptions)


def completed(options: Options, account: Any, *, name: str, flag: str) -> Options:
    """The options with the owners of the account where they name none.

    `name` is the option of both that names owners, `flag` that of the command line. Raises
    ConfigurationError if neither names one, and for what can match nothing.
    """
    owners = getattr(options, name) or tuple(getattr(account, name))
    if not owners:
        raise ConfigurationError(f"{name} has to name at least one, such as acme ({flag} acme).")
    for owner in owners:
        if not _OWNER.fullmatch(owner) or ("/" in owner and name != "groups"):
            raise ConfigurationError(f"{name} has to be names such as acme: {owner} is none.")
    for pattern in options.people_from:
        if not any(_may_match(pattern, owner) for owner in owners):
            raise ConfigurationError(
                f"people_from: {pattern} matches nothing, as {name} are {', '.join(owners)}."
            )
    return replace(options, **{name: owners})


def _is_path(text: str) -> bool:
    """True for the path of one file from the root folder."""
    names = text.split("/")
    return not (set(names) & {"", ".", ".."} or set(text) & set("*?[]"))


def _may_match(pattern: str, owner: str) -> bool:
    """True if a repository of an owner can be one that a pattern names."""
    start, below = pattern.lower(), f"{owner.lower()}/"
    if start.endswith("*"):
        start = start[:-1]
        return start.startswith(below) or below.startswith(start)
    return start.startswith(below)


def with_api(
    api: Callable[[HttpClient, Any, Memory, int], Api],
    read: Callable[[Api, Options, Further], Awaitable[Snapshot]],
) -> Callable[[ReadingContext, Options, Further], Awaitable[Snapshot]]:
    """The reading of a kind, whether of everything or of what hints name, from one by an API."""

    async def work(reading: ReadingContext, options: Options, further: Further) -> Snapshot:
        made = api(reading.client, reading.account, reading.memory, reading.now)
        return await read(made, options, further)

    return work
