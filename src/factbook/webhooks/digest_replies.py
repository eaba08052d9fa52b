"""Replies of Slack and Microsoft Teams to a digest, which may refuse it with a status of success.

Sources: the incoming webhooks of Slack, which answer `ok` or a word for the mistake, and workflows
of Microsoft Teams, which answer 202 without a body, or JSON with an `error`.
"""

import re
from typing import Any, Final

import msgspec

from factbook.outbound import HostReply
from factbook.schemas.events import DigestForm

_WORD: Final = re.compile(rb"[A-Za-z][A-Za-z_]{1,59}")
_ACCEPTED: Final = frozenset({b"", b"ok"})
# What the connectors that came before workflows write of a message that they did not deliver.
_FAILED: Final = re.compile(rb"fail|error", re.IGNORECASE)


def problem(reply: HostReply, form: DigestForm, url: str) -> str | None:
    """The reason why a message did not arrive, without anything of the address; None if it did."""
    if reply.failure:
        return reply.failure
    body = reply.body.strip()
    good = 200 <= reply.status < 300
    if good and (body.lower() in _ACCEPTED if form == "slack" else not _is_refused(body)):
        return None
    word = _word(body, form)
    told = f": {word}" if word and word not in url else " without taking it" if good else ""
    return f"answered {reply.status}{told}"


def _is_refused(body: bytes) -> bool:
    found = _document(body)
    if isinstance(found, dict):
        return "error" in found
    return _FAILED.search(body) is not None


def _word(body: bytes, form: DigestForm) -> str | None:
    """The word for a mistake."""
    if form == "slack":
        return body.decode() if _WORD.fullmatch(body) else None
    found = _document(body)
    error = found.get("error") if isinstance(found, dict) else None
    code = error.get("code") if isinstance(error, dict) else error
    if not isinstance(code, str):
        return None
    return code if _WORD.fullmatch(code.encode(errors="replace")) else None


def _document(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
