"""Settings of a PagerDuty account, and the service there that annotations name."""

import re
from typing import Annotated, Final

import msgspec

from factbook.errors import ConfigurationError
from factbook.settings.option_tables import about

_SUBDOMAIN: Final = re.compile(r"(?:[a-z0-9][a-z0-9-]{0,62})?")


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One account, with one key."""

    api_key: Annotated[str, about("Secret. A REST API key.")] = ""
    base_url: Annotated[
        str,
        about(
            "Address of the REST interface. In the EU service region: "
            "`https://api.eu.pagerduty.com`."
        ),
    ] = "https://api.pagerduty.com"
    account: Annotated[
        str,
        about(
            "Subdomain of the account, `acme` of `acme.pagerduty.com`: entities whose annotation "
            "names another one are left out. Empty: the annotation is not looked at."
        ),
    ] = ""

    def __post_init__(self) -> None:
        for problem in _problems(self):
            raise ConfigurationError(problem)

    def __repr__(self) -> str:
        """Without the secret."""
        return f"Options(base_url={self.base_url!r}, account={self.account!r})"


def _problems(options: Options) -> list[str]:
    problems = []
    if not options.base_url.startswith(("https://", "http://")):
        problems.append("base_url has to begin with https://")
    if not options.api_key:
        problems.append("an api_key is needed")
    if not _SUBDOMAIN.fullmatch(options.account):
        problems.append("account has to be a subdomain in lower case, such as acme")
    return problems
