"""Table rows of the pages, and the steps of the request pipeline that are theirs.

The session, the permissions and, for a form, the CSRF token are checked before the handler runs;
any error becomes a page, and every answer carries the headers that keep other sites out.
"""

import gzip
import hmac
from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import quote

from factbook.auth import sessions
from factbook.auth.sessions import Session
from factbook.auth.tokens import hash_token, is_use_noted
from factbook.errors import (
    AuthenticationError,
    ConflictError,
    FactbookError,
    InputError,
    NotAllowedError,
    OverloadedError,
    PayloadTooLargeError,
    PreconditionFailedError,
    TooManyRequestsError,
)
from factbook.http.pipeline import REFUSED, Pipeline, record_refusal
from factbook.http.requests import Reply, Request, get_client_address, run_offloaded
from factbook.web.site import cookies, page_context
from factbook.web.site.page_context import CSRF, PageContext, Site

Handler = Callable[[PageContext], Awaitable[Reply]]

OPEN: Final = None  # to everybody, signed in or not
SIGNED_IN: Final[tuple[str, ...]] = ()

# Nothing from elsewhere, nothing inline, in no other site's frame.
_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
# What a person may see is kept nowhere.
_PRIVATE = {"cache-control": "no-store"}
_TEXT = b"text/plain; charset=utf-8"
# Forms that were not done, by the status that says why.
_REFUSED: Final[Mapping[int, str]] = {
    error.status: error.name
    for error in (
        InputError,
        AuthenticationError,
        NotAllowedError,
        ConflictError,
        PreconditionFailedError,
        PayloadTooLargeError,
        TooManyRequestsError,
    )
}
# Bytes of replies that are compressed: smaller ones fit into one packet, larger ones are compressed
# on a thread, as others would wait for it.
_SMALLEST, _LARGE = 1_400, 256 * 1024
_QUICK, _SMALL = 4, 9
_TLS_ONLY = {"strict-transport-security": "max-age=31536000"}


# A window that a client opened for somebody to sign in has to find back to the one that opened it.
_OF_OTHERS = {"cross-origin-opener-policy": "unsafe-none"}


class PageRoute(NamedTuple):
    """A method of a path; `needs` are permissions, none for everybody who is signed in.

    Clients of OAuth open those of `for_clients` in a window of theirs. One that is `owned` lets in
    who may write what their own groups own: its handler looks at `own_only`, as those of routes do.
    """

    method: str
    path: str
    handler: Handler
    needs: tuple[str, ...] | None = SIGNED_IN
    for_clients: bool = False
    owned: bool = False


class PageEndpoint(Pipeline[PageRoute, PageContext]):
    """ASGI application for all methods of one path."""

    def __init__(self, pages: Mapping[str, PageRoute], site: Site) -> None:
        path = next(iter(pages.values())).path
        # Of some pages the path is a secret: the link of an invitation.
        super().__init__(path, pages, site.state, writing=pages.keys() - {"GET"}, log_path=path)
        self._site = site
        opened = any(page.for_clients for page in pages.values())
        self._headers = {**_HEADERS, **(_OF_OTHERS if opened else {}), **_PRIVATE}

    def begun(self, request: Request) -> PageContext:
        address = get_client_address(request.scope, self.state.proxies)
        return PageContext(self._site, request, address, None)

    def caller(self, visit: PageContext) -> Mapping[str, str]:
        return {} if visit.session is None else {"actor": visit.session.ref}

    async def answer(self, visit: PageContext, page: PageRoute | None) -> Reply:
        if page is None:
            raise self.no_method()
        await _find_session(visit)
        if page.needs is not None:
            if visit.session is None:
                raise AuthenticationError("Sign in to see this page.")
            visit.own_only = page.owned and visit.may_own(*page.needs)
            if not visit.own_only:
                visit.require(*page.needs)
        if _is_form(visit.request):
            visit.form = await page_context.read(visit.request)
            _check_form(visit)
        return await self._finished(visit, await page.handler(visit))

    async def refused(self, visit: PageContext, error: FactbookError) -> Reply:
        if isinstance(error, OverloadedError):
            # A page would cost as much as what is refused.
            reply = Reply(error.message.encode(), error.status, error.headers(), _TEXT)
        else:
            reply = _refusal(visit, self.path, error)
        return await self._finished(visit, reply)

    async def _finished(self, visit: PageContext, reply: Reply) -> Reply:
        _note_refusal(visit, self.path, reply.status)
        tls = _TLS_ONLY if self._site.is_secure else {}
        headers = {**self._headers, **tls, **reply.headers}
        reply = reply._replace(headers=headers, cookies=tuple(visit.set_cookies))
        return await compressed(reply, visit.request)


async def _find_session(visit: PageContext) -> None:
    """Find the session, and give the request the token that its forms carry."""
    state = visit.state
    value = visit.cookie(cookies.SESSION)
    if value:
        visit.session = await _alive(visit, hash_token(value, state.token_key))
        if visit.session is None:
            visit.drop_cookie(cookies.SESSION)
    if visit.session is None:
        value = visit.cookie(cookies.VISITOR)
        if not value:
            value = sessions.generate_cookie()
            visit.keep_cookie(cookies.VISITOR, value)
    visit.form_key = hash_token(f"form {value}", state.token_key)


def _check_form(visit: PageContext) -> None:
    """Raise NotAllowedError unless the form carries the token of the person's own page."""
    sent = cookies.unmasked(visit.sent.raw(CSRF))
    if not hmac.compare_digest(sent, visit.form_key):
        raise NotAllowedError(
            "The form is too old, comes from another site, or the browser keeps no cookies. "
            "Open the page again and repeat what you did."
        )


async def _alive(visit: PageContext, hash_: str) -> Session | None:
    state, now = visit.state, visit.now
    state.database.refresh()
    found = await sessions.find_session(state.database, hash_)
    if found is None or not found.counts(now):
        return None
    if not (is_use_noted(found.used_at, now) or is_use_noted(state.touched.get(hash_, 0), now)):
        state.touched[hash_] = now
        state.spawn(state.database.write(lambda tx: sessions.record_session_use(tx, hash_, now)))
    return found


def _refusal(visit: PageContext, path: str, error: FactbookError) -> Reply:
    """Error page, or a redirect to sign in for a person who is not signed in."""
    request = visit.request
    if _is_stream(request):
        # A redirect would be followed again and again.
        return Reply(error.message.encode(), error.status, error.headers(), _TEXT)
    if isinstance(error, AuthenticationError) and visit.session is None:
        back = "/" if _is_form(request) else request.url
        if _is_form(request):
            _note_refusal(visit, path, error.status)
        return visit.redirect(f"/sign-in?next={quote(back, safe='')}")
    if isinstance(error, NotAllowedError):
        _record(visit, path, error.status)
    reply = visit.page("error.html", error.status, error=error)
    return reply._replace(headers={**reply.headers, **error.headers()})


def _note_refusal(visit: PageContext, path: str, status: int) -> None:
    """Record the refusal of a form, unless that is done already."""
    if status in _REFUSED and _is_form(visit.request) and not visit.recorded:
        _record(visit, path, status)


def _record(visit: PageContext, path: str, status: int) -> None:
    visit.recorded = True
    record_refusal(
        visit.state,
        actor=visit.session.ref if visit.session else "",
        address=visit.address,
        action=REFUSED,
        object=path,
        status=status,
        detail={"method": visit.request.method[:20], "error": _REFUSED[status]},
    )


def _is_stream(request: Request) -> bool:
    return request.headers.get(b"accept") == b"text/event-stream"


def _is_form(request: Request) -> bool:
    return request.method not in {"GET", "HEAD"}


async def compressed(reply: Reply, request: Request) -> Reply:
    """Reply to a GET, compressed if that makes it smaller and the browser accepts it.

    Replies to forms stay as they are: some of them show a secret.
    """
    body = reply.body
    if request.method != "GET" or not isinstance(body, bytes) or len(body) < _SMALLEST:
        return reply
    headers = {**reply.headers, "vary": "accept-encoding"}
    if b"gzip" not in request.headers.get(b"accept-encoding", b""):
        return reply._replace(headers=headers)
    # An asset that is kept for ever is the same for everybody.
    is_kept = "immutable" in reply.headers.get("cache-control", "")
    if is_kept:
        smaller = _kept(body)
    elif len(body) > _LARGE:
        smaller = await run_offloaded(_quickly, body)
    else:
        smaller = _quickly(body)
    return reply._replace(body=smaller, headers={**headers, "content-encoding": "gzip"})


def _quickly(body: bytes) -> bytes:
    return gzip.compress(body, _QUICK, mtime=0)


@lru_cache(maxsize=16)
def _kept(body: bytes) -> bytes:
    return gzip.compress(body, _SMALL, mtime=0)
