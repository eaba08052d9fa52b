"""HTTP client for vendors: bounded, rate-limited and guarded calls with classified outcomes.

An integration is handed an `HttpClient` and reads its `Answer`s. The network itself, which is slow
to import, is in `sending` and `network`, for the code that makes clients.
"""

from factbook.outbound.caches import AnswerCache, AnswerCaches, Memory, exceeds, note_exceeded
from factbook.outbound.calls import ANONYMOUS, Credential, HostRoute, address, climbs, host_of, path
from factbook.outbound.client import HttpClient
from factbook.outbound.git import clones
from factbook.outbound.git.clones import Clones
from factbook.outbound.git.commands import Git, Limits
from factbook.outbound.git.program import find as find_git
from factbook.outbound.git.replies import NOT_GIT
from factbook.outbound.outcome_rules import SIGNS, verdict_on_graphql_error
from factbook.outbound.outcomes import Answer, HostReply, read_as
from factbook.outbound.rate_limits import ClientHealth, Governor

__all__ = [
    "ANONYMOUS",
    "NOT_GIT",
    "SIGNS",
    "Answer",
    "AnswerCache",
    "AnswerCaches",
    "ClientHealth",
    "Clones",
    "Credential",
    "Git",
    "Governor",
    "HostReply",
    "HostRoute",
    "HttpClient",
    "Limits",
    "Memory",
    "address",
    "climbs",
    "clones",
    "exceeds",
    "find_git",
    "host_of",
    "note_exceeded",
    "path",
    "read_as",
    "verdict_on_graphql_error",
]
