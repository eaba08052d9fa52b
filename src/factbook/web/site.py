"""What every page is made with, beside the open parts of the service."""

from dataclasses import dataclass, field
from typing import Any

from starlette.types import ASGIApp

from factbook.auth.limits import RateLimit
from factbook.clock import MINUTE, SECOND
from factbook.edge.state import State

# Wrong passwords for one name; what one address may try is a setting.
_WRONG_PASSWORDS = 10


@dataclass
class Site:
    """The service as pages see it; `openid` is None unless a provider is configured.

    `application` is everything that is served, the pages among it.
    """

    state: State
    openid: Any = None
    wrong_passwords: RateLimit = field(init=False)
    application: ASGIApp = field(init=False)

    def __post_init__(self) -> None:
        rate = _WRONG_PASSWORDS * SECOND / MINUTE
        self.wrong_passwords = RateLimit(rate, _WRONG_PASSWORDS, self.state.clock)

    @property
    def is_secure(self) -> bool:
        """Whether people come over TLS, as far as the settings say."""
        return (self.state.settings.public_url or "").startswith("https://")
