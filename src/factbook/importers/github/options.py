"""Options of an import from GitHub, beside those of the integration whose credential it uses."""

from collections.abc import Iterable
from typing import Annotated, Final

from factbook.importers.code_host.kind import CodeHostImportOptions
from factbook.settings.option_tables import about

_SHORTEST_SECRET: Final = 16


class GithubImportOptions(CodeHostImportOptions, frozen=True, kw_only=True):
    """Organizations, and what is imported of them."""

    organizations: Annotated[
        tuple[str, ...],
        about("Organizations to import. Empty: those of the integration."),
    ] = ()
    webhook_secret: Annotated[
        str, about("Secret. What GitHub signs events with; empty: no events are taken.")
    ] = ""

    def problems(self) -> Iterable[str]:
        yield from super().problems()
        if self.webhook_secret and len(self.webhook_secret) < _SHORTEST_SECRET:
            yield f"webhook_secret has to have {_SHORTEST_SECRET} characters at least"
