"""Options of an import from Gitea, beside those of the integration whose credential it uses."""

from typing import Annotated

from factbook.importers.code_host.kind import CodeHostImportOptions
from factbook.settings.option_tables import about


class GiteaImportOptions(CodeHostImportOptions, frozen=True, kw_only=True):
    """Organizations, and what is imported of them."""

    organizations: Annotated[
        tuple[str, ...],
        about("Organizations to import. Empty: those of the integration."),
    ] = ()
