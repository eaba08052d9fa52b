"""Replies that stand for the results of Git commands, told apart by Git's messages.

Source: http.c, remote-curl.c and connect.c of Git 2.37 to 2.51, in the language C. Text from the
host itself is in lines that begin with `remote:`, or behind `remote error:`.
"""

import re
from typing import Final

from factbook.outbound.git.program import SIZE, START, TIME, GitResult
from factbook.outbound.outcomes import HostReply

TOO_LARGE: Final = 413
NOT_GIT: Final = "it does not answer as Git's smart HTTP does"

_OURS: Final = re.compile(r"^(?:fatal|error): .*$", re.MULTILINE)
_QUOTED: Final = re.compile(r" '[^']*'")
_STATUS: Final = re.compile(r"The requested URL returned error: ([1-5][0-9]{2})")
# The first that fits decides.
_STATUSES: Final = tuple(
    (re.compile(pattern, re.IGNORECASE), status)
    for pattern, status in (
        (r"could not read (?:username|password) for|authentication failed for", 401),
        (r"repository not found", 404),
        (r"remote error: .*(?:not found|does not exist)", 404),
        (r"remote error: .*(?:denied|forbidden|not allowed|unauthori[sz]ed|permission)", 403),
    )
)
_UNTRUSTED: Final = "its certificate is not trusted; outgoing_ca_file can name a private authority"
_FAILURES: Final = tuple(
    (re.compile(pattern, re.IGNORECASE), failure, repeatable)
    for pattern, failure, repeatable in (
        (r"proxy|CONNECT tunnel", "the proxy did not let the call through", True),
        (r"certificate", _UNTRUSTED, False),
        (r"dumb http|is this a git repository|invalid server response|not a git", NOT_GIT, False),
        (r"failed to connect|couldn't connect|could not resolve", "no connection", True),
        (r"gnutls|SSL|TLS", "no connection with encryption", True),
    )
)
_BROKEN: Final = "what came is not whole"


def reply_of(ended: GitResult, *, limits: str, seconds: float) -> HostReply:
    """The reply for a finished command: its output, or a status or failure with the reason."""
    if ended.stopped == TIME:
        return HostReply(0, failure=f"no answer within {seconds:.0f} seconds")
    if ended.stopped == SIZE:
        return HostReply(TOO_LARGE, failure=f"the repository is larger than {limits}")
    if ended.stopped == START:
        return HostReply(0, failure="the program git could not be started")
    if ended.code == 0:
        return HostReply(200, body=ended.output)
    # Of the addresses in it, parts are what people chose.
    return _refusal(_QUOTED.sub("", "\n".join(_OURS.findall(ended.errors))))


def _refusal(text: str) -> HostReply:
    if found := _STATUS.search(text):
        return HostReply(int(found[1]))
    for pattern, status in _STATUSES:
        if pattern.search(text):
            return HostReply(status)
    for pattern, failure, repeatable in _FAILURES:
        if pattern.search(text):
            return HostReply(0, failure=failure, repeatable=repeatable)
    return HostReply(0, failure=_BROKEN, repeatable=True)
