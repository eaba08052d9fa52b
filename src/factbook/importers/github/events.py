"""Events that GitHub sends: proved to be its own, and read for the repository they are about."""

import hmac
from collections.abc import Mapping
from typing import Final

import msgspec

from factbook.errors import InputError
from factbook.importers.events import EventRules
from factbook.importers.github.hinted_repositories import RepositoryHint
from factbook.importers.github.options import GithubImportOptions

_SIGNATURE: Final = b"x-hub-signature-256"
_DELIVERY: Final = b"x-github-delivery"
_EVENT: Final = b"x-github-event"
_BRANCH: Final = "refs/heads/"


class _EventRepository(msgspec.Struct):
    node_id: str
    full_name: str
    default_branch: str = ""


class _Event(msgspec.Struct):
    repository: _EventRepository | None = None
    ref: str = ""


def events(options: GithubImportOptions) -> EventRules | None:
    """The rules for events, if there is a secret to prove them with."""
    if not options.webhook_secret:
        return None
    key = options.webhook_secret.encode()
    return EventRules(lambda headers, body: _is_signed(key, headers, body), _delivery, hints)


def hints(headers: Mapping[bytes, bytes], body: bytes | bytearray) -> frozenset[str]:
    """The repository of a push to its default branch, or of a change of the repository itself.

    Empty for other events. Raises InputError for a body that is none of an event.
    """
    name = headers.get(_EVENT)
    if name not in (b"push", b"repository"):
        return frozenset()
    try:
        event = msgspec.json.decode(body, type=_Event)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise InputError("The body is not that of an event: send application/json.") from None
    found = event.repository
    if found is None or (name == b"push" and event.ref != _BRANCH + found.default_branch):
        return frozenset()
    return frozenset({str(RepositoryHint(found.node_id, found.full_name))})


def _is_signed(key: bytes, headers: Mapping[bytes, bytes], body: bytes | bytearray) -> bool:
    expected = f"sha256={hmac.digest(key, body, 'sha256').hex()}".encode()
    return hmac.compare_digest(headers.get(_SIGNATURE, b""), expected)


def _delivery(headers: Mapping[bytes, bytes]) -> str:
    return headers.get(_DELIVERY, b"").decode("latin-1")
