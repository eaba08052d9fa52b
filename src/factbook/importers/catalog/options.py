"""Options of an import from another catalog."""

import re
from collections.abc import Iterable
from typing import Annotated, Final

from factbook.importers.importer import ImporterOptions
from factbook.settings.option_tables import about, is_web_address

_PREFIX: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,30})")
_LONGEST_FILTER: Final = 1_000
_MOST_FILTERS: Final = 20


class CatalogImportOptions(ImporterOptions, frozen=True, kw_only=True):
    """Address of a catalog, and what is imported of it."""

    address: Annotated[
        str,
        about("Needed. Address of the service, below which `/api/catalog` is, with `https://`."),
    ] = ""
    token: Annotated[str, about("Secret. Token that may read entities there.")] = ""
    filters: Annotated[
        tuple[str, ...],
        about(
            "Conditions such as `kind=component,spec.type=service`, all of which hold. Of several "
            "texts one has to hold. Empty: every entity."
        ),
    ] = ()
    namespace_prefix: Annotated[
        str, about("Put before every namespace, also in references: `eu-` makes `eu-default`.")
    ] = ""

    def problems(self) -> Iterable[str]:
        """The mistakes in the table."""
        yield from super().problems()
        if not is_web_address(self.address):
            yield "address has to be a web address, such as https://backstage.example.com"
        if len(self.filters) > _MOST_FILTERS or not all(map(_is_filter, self.filters)):
            yield "filters have to be texts such as kind=component, at most 20"
        if self.namespace_prefix and not _PREFIX.fullmatch(self.namespace_prefix):
            yield "namespace_prefix has to be of lower-case letters, digits and dashes, at most 31"

    @property
    def place(self) -> str:
        """The address without its scheme, by which entities and problems name the catalog."""
        return self.address.partition("://")[2].rstrip("/").lower()


def _is_filter(text: str) -> bool:
    return bool(text.strip()) and text.isprintable() and len(text) <= _LONGEST_FILTER
