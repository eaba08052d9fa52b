"""Dependencies of every page beside the open parts of the service."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from starlette.types import ASGIApp

from factbook.auth.limits import RateLimit
from factbook.clock import MINUTE, SECOND
from factbook.http.context import State

if TYPE_CHECKING:
    # Heavy to import, and few configure a provider.
    from factbook.auth.oidc.client import OpenID

# Wrong passwords a minute for one name, from browsers that are not known to it, and from each that
# is; what one address may try is a setting.
_WRONG_PASSWORDS = 10
_AT_ONCE = 4

T = TypeVar("T")


@dataclass(eq=False)
class Site:
    """The service as pages see it; `openid` is None unless a provider is configured.

    `application` is the whole application, including the pages.
    """

    state: State
    openid: "OpenID | None" = None
    wrong_passwords: RateLimit = field(init=False)
    known_browsers: RateLimit = field(init=False)
    application: ASGIApp = field(init=False)
    hashing: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE))

    def __post_init__(self) -> None:
        rate = _WRONG_PASSWORDS * SECOND / MINUTE
        self.wrong_passwords = RateLimit(rate, _WRONG_PASSWORDS, self.state.clock)
        self.known_browsers = RateLimit(rate, _WRONG_PASSWORDS, self.state.clock)

    async def slow(self, function: Callable[..., T], *arguments: object) -> T:
        """Run a password function on a thread, few at a time, as each takes 64 MiB."""
        async with self.hashing:
            return await asyncio.to_thread(function, *arguments)

    @property
    def is_secure(self) -> bool:
        """True if people reach the service over TLS, as far as the settings say."""
        return (self.state.settings.public_url or "").startswith("https://")
