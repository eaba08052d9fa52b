"""The site and one request for a page of it: its person, their permissions, and its response."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeVar

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.types import ASGIApp

from factbook import __version__, invisible
from factbook.audit import trail
from factbook.audit.trail import About, AuditEntry, Caller
from factbook.auth.oauth.client_documents import (
    ClientDocuments,
    FetchDocument,
    GuardedDocumentFetch,
)
from factbook.auth.permissions import TITLES, suffices
from factbook.auth.sessions import Session
from factbook.catalog.store import by_ref
from factbook.clock import MINUTE, SECOND
from factbook.errors import NotAllowedError
from factbook.http import urls
from factbook.http.admission import RateLimit
from factbook.http.context import State
from factbook.http.requests import Reply, Request
from factbook.storage import Write
from factbook.web import charts
from factbook.web.charts import kind_glyph, kind_shape
from factbook.web.live import ChangeTail
from factbook.web.site import assets, cookies, fact_display, formats, navigation
from factbook.web.site.forms import Form

if TYPE_CHECKING:
    # Heavy to import, and few configure a provider.
    from factbook.auth.oidc.client import OpenID

T = TypeVar("T")

_NOTICE_SECONDS = 60
# Wrong passwords a minute for one name, from browsers that are not known to it, and from each that
# is; what one address may try is a setting.
_WRONG_PASSWORDS = 10
_AT_ONCE = 4

THEMES = ("system", "light", "dark")


@dataclass(eq=False)
class Site:
    """The service as pages see it; `openid` is None unless a provider is configured.

    `application` is the whole application, including the pages.
    """

    state: State
    application: ASGIApp
    openid: "OpenID | None" = None
    fetch_document: FetchDocument | None = None
    wrong_passwords: RateLimit = field(init=False)
    known_browsers: RateLimit = field(init=False)
    tail: ChangeTail = field(init=False)
    documents: ClientDocuments = field(init=False)
    hashing: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE))

    def __post_init__(self) -> None:
        rate = _WRONG_PASSWORDS * SECOND / MINUTE
        self.wrong_passwords = RateLimit(rate, _WRONG_PASSWORDS, self.state.clock)
        self.known_browsers = RateLimit(rate, _WRONG_PASSWORDS, self.state.clock)
        state = self.state
        self.tail = ChangeTail(state.database, state.clock, state.stopping, state.spawn)
        fetch = self.fetch_document or GuardedDocumentFetch(state.settings)
        self.documents = ClientDocuments(fetch, state.clock, state.oauth.client_hosts)

    async def slow(self, function: Callable[..., T], *arguments: object) -> T:
        """Run a password function on a thread, few at a time, as each takes 64 MiB."""
        async with self.hashing:
            return await asyncio.to_thread(function, *arguments)

    @property
    def is_secure(self) -> bool:
        """True if people reach the service over TLS, as far as the settings say."""
        return (self.state.settings.public_url or "").startswith("https://")


@dataclass
class PageContext:
    """Context of a page's handler."""

    site: Site
    request: Request
    address: str
    session: Session | None
    form_key: str = ""
    form: Form | None = None
    set_cookies: list[str] = field(default_factory=list)
    recorded: bool = False  # that it was refused, in the audit
    own_only: bool = False  # let in to write what the person's groups own, and nothing else

    @property
    def state(self) -> State:
        """The open parts of the service."""
        return self.site.state

    @property
    def person(self) -> Session:
        """Person signed in; pages that need one always have one."""
        assert self.session is not None
        return self.session

    @property
    def sent(self) -> Form:
        """The form; every request that changes something has one."""
        assert self.form is not None
        return self.form

    @property
    def now(self) -> int:
        """Current time, in milliseconds since the epoch."""
        return self.state.clock()

    @property
    def server(self) -> str:
        """Address of this service, from the settings or else from the request."""
        return urls.own(self.request, self.state.settings)

    def may(self, *permissions: str) -> bool:
        """True if a person is signed in who has all of these permissions."""
        return self.session is not None and self.session.permissions.issuperset(permissions)

    def may_own(self, *permissions: str) -> bool:
        """True if the person lacks some of these, and may do it with what the own groups own."""
        return not self.may(*permissions) and (
            self.session is not None and suffices(self.session.permissions, permissions)
        )

    def writing(
        self, about: AuditEntry | About, status: int = HTTPStatus.SEE_OTHER, actor: str = ""
    ) -> Write:
        """Transaction runner that records the person in the audit, in the same transaction.

        `actor` is the reference of a person who is not signed in yet.
        """
        grant = "" if actor else self.person.grant
        caller = Caller(actor or self.person.ref, self.now, self.address, grant=grant)
        return trail.writing(self.state.database, caller, about, status)

    async def known(self, refs: Iterable[str]) -> frozenset[str]:
        """References among these that are entities; people often have none."""
        return frozenset(await by_ref.display_names(self.state.database, list(dict.fromkeys(refs))))

    def require(self, *permissions: str) -> None:
        """Raise NotAllowedError naming the missing permissions."""
        missing = tuple(name for name in permissions if not self.may(name))
        if missing:
            named = " and ".join(f'"{TITLES[name]}"' for name in missing)
            raise NotAllowedError(f"Your account does not have the permission {named}.")

    def query(self, name: str, default: str = "") -> str:
        """Last value of a query parameter, stripped."""
        return (self.request.all(name) or [default])[-1].strip()

    def page(self, template: str, status: int = 200, **values: Any) -> Reply:
        """Render a page."""
        shared = {
            "visit": self,
            "csrf": cookies.masked(self.form_key) if self.form_key else "",
            "now": self.now,
            "theme": self._theme(),
            "notice": self._taken_notice(),
            "navigation": navigation.groups(self.request.path, self.may) if self.session else [],
            "help": navigation.help_with(self.request.path) if self.session else "",
        }
        body = _environment().get_template(template).render({**shared, **values})
        return Reply(body.encode(), status, content_type=b"text/html; charset=utf-8")

    def redirect(self, path: str, notice: str | None = None) -> Reply:
        """Redirect to another page of this service, which shows the notice once.

        Raises ValueError for an address that leads elsewhere.
        """
        if not path[:1] == "/" != path[1:2]:
            raise ValueError("A page can only lead to pages of this service.")
        if notice is not None:
            self.keep_cookie(cookies.NOTICE, cookies.packed(notice), _NOTICE_SECONDS)
        return Reply(status=303, headers={"location": path}, content_type=b"text/plain")

    def cookie(self, name: str) -> str | None:
        """Value of a cookie of this service."""
        return cookies.read(self.request, name, secure=self.site.is_secure)

    def keep_cookie(self, name: str, value: str, seconds: int | None = None) -> None:
        """Set a cookie with the answer."""
        secure = self.site.is_secure
        self.set_cookies.append(cookies.written(name, value, secure=secure, seconds=seconds))

    def drop_cookie(self, name: str) -> None:
        """Delete a cookie with the answer."""
        self.set_cookies.append(cookies.dropped(name, secure=self.site.is_secure))

    def _theme(self) -> str:
        found = self.cookie(cookies.THEME)
        return found if found in THEMES else THEMES[0]

    def _taken_notice(self) -> str | None:
        """One-time notice from the previous page, removed from its cookie."""
        value = self.cookie(cookies.NOTICE)
        if not value:
            return None
        self.drop_cookie(cookies.NOTICE)
        return cookies.unpacked(value) or None


def _visible(value: Any) -> Any:
    """Text with invisible characters made visible; markup was checked before."""
    return invisible.marked(value) if type(value) is str else value


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("factbook.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        finalize=_visible,
    )
    environment.filters |= formats.FILTERS | {
        "fact_title": fact_display.title,
        "kind_glyph": kind_glyph,
        "moment": charts.moment,
        "kind_shape": kind_shape,
    }
    environment.globals |= {"asset": assets.url, "version": __version__}
    return environment
