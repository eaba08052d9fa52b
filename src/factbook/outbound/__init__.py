"""HTTP client for vendors: bounded, rate-limited and guarded calls with classified outcomes.

An integration is handed an `HttpClient` and reads its `Answer`s. The network itself, which is slow
to import, is in `sending` and `network`, for the code that makes clients.
"""

from factbook.outbound.answers import Answer, HostReply
from factbook.outbound.caches import Memory
from factbook.outbound.client import HttpClient
from factbook.outbound.credential import ANONYMOUS, Credential
from factbook.outbound.health import Health
from factbook.outbound.outcome_rules import SIGNS, outcome_of_graphql_error
from factbook.outbound.rate_limits import Governor
from factbook.outbound.route import HostRoute
from factbook.outbound.urls import address, climbs, host_of, path

__all__ = [
    "ANONYMOUS",
    "SIGNS",
    "Answer",
    "HttpClient",
    "Credential",
    "Governor",
    "Health",
    "Memory",
    "HostReply",
    "HostRoute",
    "address",
    "climbs",
    "host_of",
    "outcome_of_graphql_error",
    "path",
]
