"""The site, its navigation, and one request for a page: person, permissions, form, response."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import parse_qsl

from jinja2 import Environment, PackageLoader, StrictUndefined

from factbook import __version__, invisible
from factbook.asgi import ASGIApp
from factbook.audit.trail import About, AuditEntry, Caller, audit_writes
from factbook.auth.oauth.clients import ClientDocuments, FetchDocument, GuardedDocumentFetch
from factbook.auth.permissions import (
    AUDIT_READ,
    CATALOG_READ,
    CHECK_READ,
    EVENTS_READ,
    OPERATIONS_MANAGE,
    SOURCE_WRITE,
    TITLES,
    TOKEN_MANAGE,
    suffices_when_owned,
)
from factbook.auth.sessions import Session
from factbook.catalog.store import stored_entities
from factbook.clock import MINUTE, SECOND
from factbook.errors import InputError, NotAllowedError, UnsupportedMediaTypeError
from factbook.http.admission import RateLimit
from factbook.http.context import State
from factbook.http.requests import Reply, Request, get_own_address
from factbook.storage import Write
from factbook.web import charts
from factbook.web.charts import kind_glyph, kind_shape
from factbook.web.site import assets, cookies, fact_display, formats


class Section(NamedTuple):
    """A place in the navigation; `current` while one of its pages is shown."""

    title: str
    path: str
    icon: str
    current: bool


class SectionGroup(NamedTuple):
    """A group of sections, with a title or without."""

    title: str | None
    sections: list[Section]


_MAIN = (
    ("Overview", "/", "overview"),
    ("Catalog", "/catalog", "catalog"),
    ("Sets", "/sets", "sets"),
    ("Scorecards", "/scorecards", "scorecards"),
    ("Checks", "/checks", "checks"),
    ("Exemptions", "/exemptions", "exemptions"),
    ("Data sources", "/data-sources", "sources"),
    ("Connect an agent", "/connect", "connect"),
)
# With the permission that each needs; none: whoever is signed in.
_ADMINISTRATION = (
    ("Account", "/administration/account", "account", ()),
    ("People", "/administration/people", "people", (TOKEN_MANAGE,)),
    ("Connections", "/administration/connections", "connections", (SOURCE_WRITE,)),
    ("Webhooks", "/administration/webhooks", "webhooks", (EVENTS_READ, OPERATIONS_MANAGE)),
    (
        "Digests",
        "/administration/digests",
        "digests",
        (CATALOG_READ, CHECK_READ, OPERATIONS_MANAGE),
    ),
    ("Audit", "/administration/audit", "audit", (AUDIT_READ,)),
    ("Status", "/status", "status", (OPERATIONS_MANAGE,)),
)


# Which part of the documentation is about the pages below a path; the first that fits counts.
_HELP = (
    ("/catalog/", "/help/pages#an-entity"),
    ("/catalog", "/help/pages#catalog"),
    ("/sets", "/help/how-to/push"),
    ("/imports", "/help/how-to/import"),
    ("/importers", "/help/how-to/import"),
    ("/scorecards", "/help/how-to/scorecards"),
    ("/checks/", "/help/reference/checks"),
    ("/checks", "/help/pages#checks"),
    ("/exemptions", "/help/how-to/scorecards#exempt-an-entity"),
    ("/data-sources/new", "/help/how-to/define-sources"),
    ("/data-sources", "/help/pages#data-sources"),
    ("/connect/tools", "/help/reference/tools"),
    ("/connect", "/help/how-to/connect"),
    ("/administration/account/api-access", "/help/pages#api-access"),
    ("/administration/account", "/help/how-to/people#local-accounts"),
    ("/administration/people", "/help/how-to/people"),
    ("/administration/connections", "/help/how-to/define-sources#make-a-connection"),
    ("/administration/webhooks", "/help/how-to/events#webhooks"),
    ("/administration/digests", "/help/how-to/scorecards#tell-teams-what-changed"),
    ("/administration/audit", "/help/how-to/people#the-audit"),
    ("/status", "/help/pages#status"),
    ("/oauth", "/help/how-to/sign-in-agents"),
    ("/help", "/help"),
    ("/", "/help/pages"),
)


def help_with(path: str) -> str:
    """Address of the documentation of the page at `path`."""
    return next(address for below, address in _HELP if path.startswith(below))


def groups(path: str, may: Callable[..., bool]) -> list[SectionGroup]:
    """Navigation for a person with these permissions, on the page at `path`."""
    main = [Section(*one, current=_is_current(path, one[1])) for one in _MAIN]
    administration = [
        Section(title, where, icon, current=_is_current(path, where))
        for title, where, icon, needs in _ADMINISTRATION
        if may(*needs)
    ]
    return [SectionGroup(None, main), SectionGroup("Administration", administration)]


def _is_current(path: str, section: str) -> bool:
    return path == section or (section != "/" and path.startswith(f"{section}/"))


_LARGEST = 512 * 1024
_MOST_FIELDS = 1000
_TYPE = b"application/x-www-form-urlencoded"

CSRF = "csrf"


class Form:
    """Fields of a form as sent."""

    def __init__(self, fields: list[tuple[str, str]]) -> None:
        self._fields = fields

    def one(self, name: str, default: str = "") -> str:
        """Last value of a field, stripped."""
        return self.raw(name, default).strip()

    def raw(self, name: str, default: str = "") -> str:
        """Last value of a field as typed: blanks of a password count."""
        return dict(self._fields).get(name, default)

    def all(self, name: str) -> list[str]:
        """Every value of a field that may be sent several times, such as checkboxes."""
        return [value for key, value in self._fields if key == name]

    def values(self) -> Mapping[str, str]:
        """Last value of every field except the CSRF token."""
        return {name: value for name, value in self._fields if name != CSRF}


async def read(request: Request) -> Form:
    """Form in the body; raises InputError, UnsupportedMediaTypeError, PayloadTooLargeError."""
    type_ = request.headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if type_ != _TYPE:
        raise UnsupportedMediaTypeError("A form has to be sent the way a browser sends it.")
    body = await request.body(_LARGEST, "a form")
    try:
        text = bytes(body).decode("ascii")
        fields = parse_qsl(
            text, keep_blank_values=True, max_num_fields=_MOST_FIELDS, errors="strict"
        )
    except (UnicodeDecodeError, ValueError):
        raise InputError("The form cannot be read.") from None
    # Browsers end the lines of a text with two characters, whatever the system.
    return Form([(name, value.replace("\r\n", "\n")) for name, value in fields])


if TYPE_CHECKING:
    # Heavy to import, and few configure a provider.
    from factbook.auth.oidc.client import OpenID
    from factbook.web.live import ChangeTail

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
    tail: "ChangeTail"
    openid: "OpenID | None" = None
    fetch_document: FetchDocument | None = None
    wrong_passwords: RateLimit = field(init=False)
    known_browsers: RateLimit = field(init=False)
    documents: ClientDocuments = field(init=False)
    hashing: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE))

    def __post_init__(self) -> None:
        rate = _WRONG_PASSWORDS * SECOND / MINUTE
        self.wrong_passwords = RateLimit(rate, _WRONG_PASSWORDS, self.state.clock)
        self.known_browsers = RateLimit(rate, _WRONG_PASSWORDS, self.state.clock)
        fetch = self.fetch_document or GuardedDocumentFetch(self.state.settings)
        hosts = self.state.oauth.client_hosts
        self.documents = ClientDocuments(fetch, self.state.clock, hosts)

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
        return get_own_address(self.request, self.state.settings)

    def may(self, *permissions: str) -> bool:
        """True if a person is signed in who has all of these permissions."""
        return self.session is not None and self.session.permissions.issuperset(permissions)

    def may_own(self, *permissions: str) -> bool:
        """True if the person lacks some of these, and may do it with what the own groups own."""
        return not self.may(*permissions) and (
            self.session is not None and suffices_when_owned(self.session.permissions, permissions)
        )

    def writing(
        self, about: AuditEntry | About, status: int = HTTPStatus.SEE_OTHER, actor: str = ""
    ) -> Write:
        """Transaction runner that records the person in the audit, in the same transaction.

        `actor` is the reference of a person who is not signed in yet.
        """
        grant = "" if actor else self.person.grant
        caller = Caller(actor or self.person.ref, self.now, self.address, grant=grant)
        return audit_writes(self.state.database, caller, about, status)

    async def known(self, refs: Iterable[str]) -> frozenset[str]:
        """References among these that are entities; people often have none."""
        return frozenset(
            await stored_entities.read_display_names(self.state.database, list(dict.fromkeys(refs)))
        )

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
            "navigation": groups(self.request.path, self.may) if self.session else [],
            "help": help_with(self.request.path) if self.session else "",
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
