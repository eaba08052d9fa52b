"""Credential of a client: the headers that authenticate it, and the name its limits go by."""

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from factbook.clock import SECOND
from factbook.outbound.answers import Answer


@dataclass(frozen=True, slots=True)
class Credential:
    """One credential for one host.

    `name` is for people and never secret. `identity` stands for the account that it authenticates:
    answers are kept under it, so it changes with the credential unless the account is the same.
    `authorize` returns the headers to send; it may first fetch a short-lived token, and returns the
    failed answer if it cannot. It is called before each call, outside the queue.
    """

    name: str
    identity: str = field(repr=False)
    authorize: Callable[[], Awaitable[Mapping[str, str] | Answer]] = field(repr=False)

    @classmethod
    def fixed(cls, name: str, headers: Mapping[str, str]) -> "Credential":
        """A credential whose headers never change, such as a token."""
        text = "\0".join(f"{key.lower()}\0{headers[key]}" for key in sorted(headers))

        async def authorize() -> Mapping[str, str]:
            return headers

        return cls(name, hashlib.sha256(text.encode()).hexdigest(), authorize)


ANONYMOUS: Final = Credential.fixed("anonymous", {})


def expiry(headers: Mapping[str, str]) -> int | None:
    """The time at which the credential expires, in milliseconds, if the host states it (GitHub)."""
    text = headers.get("github-authentication-token-expiration", "").replace("UTC", "+0000")
    try:
        found = datetime.strptime(text.strip(), "%Y-%m-%d %H:%M:%S %z").astimezone(UTC)
    except (ValueError, OverflowError):  # an offset can lead out of the years that there are
        return None
    return int(found.timestamp()) * SECOND
