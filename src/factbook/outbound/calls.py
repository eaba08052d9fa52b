"""One call of a client, and the decoding of its reply."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, TypedDict

import msgspec

from factbook.outbound.answers import Answer, HostReply
from factbook.outbound.caches import Memory
from factbook.outbound.outcome_rules import REPEATABLE
from factbook.outbound.outcomes import Outcome

_MOVED: Final = frozenset({301, 302, 307, 308})


class RequestOptions(TypedDict, total=False):
    """Options of a request besides its target.

    `query` is appended to the target. `headers` are sent before the client's and the credential's.
    `budget` names the limit that the call counts against. With `memory`, a GET is conditional on
    the answer kept there, and keeps a new one. `follow`: follow a redirect on the same origin.
    `decode=False`: the body of a good answer is not JSON. `form`: a type that matching JSON is
    decoded as, which is faster; other JSON is decoded as without it. A transient failure is tried
    `attempts` times in all, three by default.
    """

    query: Mapping[str, str | int]
    headers: Mapping[str, str]
    budget: str
    memory: Memory
    follow: bool
    decode: bool
    form: Any
    attempts: int


class HttpCall(NamedTuple):
    """One call; `content` is its body."""

    method: str
    url: str
    content: bytes | None
    options: RequestOptions


def decoded(reply: HostReply, form: Any) -> tuple[Any, bool]:
    """The body's JSON, None if there is none; and true if the body is as the status promises."""
    if not reply.body:
        return None, reply.status in {204, 205}
    try:
        return msgspec.json.decode(reply.body, type=form), True
    except msgspec.ValidationError:
        return decoded(reply, Any)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None, False


def moves(call: HttpCall, answer: Answer) -> bool:
    """True if the answer is a redirect and the same request can be made there."""
    if answer.status not in _MOVED or "location" not in answer.headers:
        return False
    return call.method in {"GET", "HEAD"} or answer.status in {307, 308}


def may_be_repeated(answer: Answer, reply: HostReply) -> bool:
    """True if another attempt may succeed: no reply, a failure of the host, or a broken body."""
    if answer.outcome is not Outcome.TRANSIENT:
        return False
    return reply.repeatable or reply.status in REPEATABLE or reply.status == 200
