"""Which service of one account an entity's annotations point to."""

import re
from collections.abc import Mapping
from typing import Any, Final

from factbook.integrations.locations import annotations
from factbook.integrations.pagerduty.options import Options
from factbook.outbound.outcomes import Missing, Outcome

SERVICE_ID: Final = "pagerduty.com/service-id"
INTEGRATION_KEY: Final = "pagerduty.com/integration-key"
ACCOUNT: Final = "pagerduty.com/account"

# Ids that PagerDuty gives out; what else an annotation holds never becomes part of a request.
_ID: Final = re.compile(r"[A-Z0-9]{1,40}", re.ASCII)


def target(options: Options, entity: Mapping[str, Any]) -> str | Missing:
    """The id of a service, or why there is none in this account.

    An integration key does not count: PagerDuty finds no service by it.
    """
    known = annotations(entity)
    account = known.get(ACCOUNT)
    if options.account and account is not None and _text(account).lower() != options.account:
        return Missing(Outcome.NO_ANNOTATION, "an account that is not configured")
    id_ = _text(known.get(SERVICE_ID)).upper()
    if _ID.fullmatch(id_):
        return id_
    if SERVICE_ID not in known and INTEGRATION_KEY in known:
        return Missing(
            Outcome.NO_ANNOTATION, f"an integration key names no service; {SERVICE_ID} does"
        )
    return Missing(Outcome.NO_ANNOTATION, f"{SERVICE_ID} is not the id of a service")


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""
