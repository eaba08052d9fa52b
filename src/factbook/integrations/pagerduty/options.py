"""Settings of a PagerDuty account, and the service there that annotations name."""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final

from factbook.integrations.integration import (
    InstanceOptions,
    get_annotations,
    report_bad_annotation,
    report_no_annotation,
)
from factbook.outbound.outcomes import Missing
from factbook.settings.option_tables import about

SERVICE_ID: Final = "pagerduty.com/service-id"
INTEGRATION_KEY: Final = "pagerduty.com/integration-key"
ACCOUNT: Final = "pagerduty.com/account"

# Ids that PagerDuty gives out; what else an annotation holds never becomes part of a request.
_ID: Final = re.compile(r"[A-Z0-9]{1,40}", re.ASCII)

_SUBDOMAIN: Final = re.compile(r"(?:[a-z0-9][a-z0-9-]{0,62})?")


class PagerdutyOptions(InstanceOptions, frozen=True, kw_only=True):
    """Account with one key."""

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

    def problems(self) -> Iterator[str]:
        """The mistakes in the table."""
        if not self.base_url.startswith(("https://", "http://")):
            yield "base_url has to begin with https://"
        if not self.api_key:
            yield "an api_key is needed"
        if not _SUBDOMAIN.fullmatch(self.account):
            yield "account has to be a subdomain in lower case, such as acme"


def find_pagerduty_target(options: PagerdutyOptions, entity: Mapping[str, Any]) -> str | Missing:
    """The id of a service, or the reason that there is none in this account.

    An integration key does not count: PagerDuty cannot look a service up by it.
    """
    known = get_annotations(entity)
    account = known.get(ACCOUNT)
    if (
        options.account
        and account is not None
        and _clean_annotation(account).lower() != options.account
    ):
        return report_no_annotation("an account that is not configured")
    id_ = _clean_annotation(known.get(SERVICE_ID)).upper()
    if _ID.fullmatch(id_):
        return id_
    if SERVICE_ID not in known and INTEGRATION_KEY in known:
        return report_no_annotation(f"an integration key names no service; {SERVICE_ID} does")
    if not id_:
        return report_no_annotation(f"no {SERVICE_ID}")
    return report_bad_annotation(f"{SERVICE_ID} is not the id of a service")


def _clean_annotation(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""
