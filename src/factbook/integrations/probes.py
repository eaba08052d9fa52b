"""Questions that cost little and show what a credential may read, whatever the catalog holds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

EVERYTHING: Final = ("",)


@dataclass(frozen=True, kw_only=True)
class Probe:
    """One question to the host of an integration, or to a further one (`further` is its base URL).

    `right` is what it shows, in the vendor's words. `facts` are the places, such as
    `incident.serviceInfo`, of which nothing is known without it; "" is everything. A `json` is sent
    by POST: it asks, too. An answer with one of the statuses `also` shows the right as well.
    """

    right: str
    target: str
    facts: tuple[str, ...] = EVERYTHING
    query: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    json: Any = None
    budget: str = ""
    further: str = ""
    also: Sequence[int] = ()
