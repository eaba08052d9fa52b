"""Options of an import from GitLab, beside those of the integration whose credential it uses."""

from typing import Annotated

from factbook.importers.code_host.kind import CodeHostImportOptions
from factbook.settings.option_tables import about


class GitlabImportOptions(CodeHostImportOptions, frozen=True, kw_only=True):
    """Groups, and what is imported of them."""

    groups: Annotated[
        tuple[str, ...],
        about("Groups to import, each with its subgroups. Empty: those of the integration."),
    ] = ()
