"""Options of an import from an LDIF file."""

from collections.abc import Iterable
from typing import Annotated

from factbook.catalog.ref import DEFAULT_NAMESPACE
from factbook.catalog.validation import valid_namespace
from factbook.importers.importer import NO_NAMESPACE, ImporterOptions
from factbook.settings.option_tables import about


class LdifImportOptions(ImporterOptions, frozen=True, kw_only=True):
    """A file, and what is imported of it."""

    path: Annotated[str, about("Path of the file on the machine that imports.")]
    namespace: Annotated[str, about("Namespace of the users and groups.")] = DEFAULT_NAMESPACE
    people: Annotated[bool, about("Import people as users.")] = True
    groups: Annotated[bool, about("Import groups.")] = True

    def problems(self) -> Iterable[str]:
        """The mistakes in the table."""
        yield from super().problems()
        if not valid_namespace(self.namespace):
            yield NO_NAMESPACE
