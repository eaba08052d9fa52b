"""How vendors are asked over HTTP: calls that are bounded, governed, guarded and told apart.

An integration is handed a `Client` and reads its `Answer`s. What is heavy to import, the network
itself, is in `sending` and `network`, for the part that makes clients.
"""

from factbook.sources.http.addresses import address, climbs, host_of, path
from factbook.sources.http.answers import Answer, Reply
from factbook.sources.http.client import Client
from factbook.sources.http.credential import ANONYMOUS, Credential
from factbook.sources.http.governor import Governor
from factbook.sources.http.health import Health
from factbook.sources.http.remembering import Memory
from factbook.sources.http.route import Route
from factbook.sources.http.signs import SIGNS, outcome_of_graphql_error

__all__ = [
    "ANONYMOUS",
    "SIGNS",
    "Answer",
    "Client",
    "Credential",
    "Governor",
    "Health",
    "Memory",
    "Reply",
    "Route",
    "address",
    "climbs",
    "host_of",
    "outcome_of_graphql_error",
    "path",
]
