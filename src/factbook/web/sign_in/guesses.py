"""Rate limits of password guesses, and their keys.

An unknown browser counts by its address, which it may share with many, and by the name that it
tries. A known one counts by itself, so that others cannot lock it out.
"""

from dataclasses import dataclass

from factbook.auth import known_browsers
from factbook.clock import SECOND
from factbook.errors import TooManyRequestsError
from factbook.http.admission import RateLimit
from factbook.web.site import cookies
from factbook.web.site.page_context import PageContext

_WAY = ", or with a browser that you have signed in with before"
# Stands for whoever signs in with the provider, where no name is known beforehand.
ELSEWHERE = "openid"


@dataclass(frozen=True)
class Guesses:
    """Limits of one request, each with its key, and the known browser's way around them."""

    limits: tuple[tuple[RateLimit, str], ...]
    way: str = ""

    def check(self) -> None:
        """Raise TooManyRequestsError if no further guess is allowed now; counts nothing."""
        if seconds := max(limit.waits(key) for limit, key in self.limits):
            raise TooManyRequestsError(
                f"Too many attempts. Try again in {seconds} seconds{self.way}.",
                retry_after=seconds,
            )

    def count(self) -> None:
        """Count a wrong guess."""
        for limit, key in self.limits:
            limit.take(key)


def at_sign_in(visit: PageContext, ref: str, stored: str | None) -> Guesses:
    """Limits for the password of this person with this hash; None where there is none."""
    if (id_ := _known(visit, ref, stored)) is not None:
        return Guesses(((visit.site.known_browsers, id_),))
    by_address = (visit.state.failures, visit.address)
    return Guesses((by_address, (visit.site.wrong_passwords, ref)), _WAY)


def elsewhere(visit: PageContext) -> Guesses:
    """Limits for answers of the provider, whoever they are about."""
    if (id_ := _known(visit, ELSEWHERE, "")) is not None:
        return Guesses(((visit.site.known_browsers, id_),))
    return Guesses(((visit.state.failures, visit.address),), _WAY)


def in_session(visit: PageContext) -> Guesses:
    """Limits for the password of the person signed in, apart from those at sign-in."""
    return Guesses(((visit.site.known_browsers, visit.person.hash),))


def know(visit: PageContext, ref: str, stored: str) -> None:
    """Mark the browser as known to this person, whose password has this hash."""
    key = visit.state.token_key
    value = known_browsers.mark(key, ref, stored, visit.now)
    visit.keep_cookie(_cookie(key, ref), value, known_browsers.LIFETIME // SECOND)


def _known(visit: PageContext, ref: str, stored: str | None) -> str | None:
    """Id of the browser, if it is known to this person."""
    key = visit.state.token_key
    value = visit.cookie(_cookie(key, ref))
    return known_browsers.recognized(key, value, ref, stored, visit.now)


def _cookie(key: bytes, ref: str) -> str:
    return f"{cookies.KNOWN}-{known_browsers.name(key, ref)}"
