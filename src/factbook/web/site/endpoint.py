"""Table rows of the pages, and the steps of the request pipeline that are theirs.

The session, the permissions and, for a form, the CSRF token are checked before the handler runs;
any error becomes a page, and every answer carries the headers that keep other sites out.
"""

import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, NamedTuple
from urllib.parse import quote

from starlette.types import Receive, Scope, Send

from factbook.errors import (
    AuthenticationError,
    ConflictError,
    FactbookError,
    InputError,
    MethodNotAllowedError,
    NotAllowedError,
    OverloadedError,
    PayloadTooLargeError,
    PreconditionFailedError,
    TooManyRequestsError,
)
from factbook.http import audit
from factbook.http import error_responses as errors
from factbook.http.authentication import client_address
from factbook.http.requests import ClientGoneError, Reply, Request
from factbook.http.responses import send_reply
from factbook.web.site import forms, session
from factbook.web.site.compression import compressed
from factbook.web.site.page_context import PageContext
from factbook.web.site.site import Site

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
_TLS_ONLY = {"strict-transport-security": "max-age=31536000"}


class PageRoute(NamedTuple):
    """A method of a path; `needs` are permissions, none for everybody who is signed in."""

    method: str
    path: str
    handler: Handler
    needs: tuple[str, ...] | None = SIGNED_IN


class PageEndpoint:
    """ASGI application for all methods of one path."""

    def __init__(self, pages: Mapping[str, PageRoute], site: Site) -> None:
        self._pages = dict(pages)
        self._path = next(iter(self._pages.values())).path
        self._site = site

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = time.perf_counter()
        request = Request(scope, receive)
        visit = PageContext(self._site, request, client_address(request, self._site.state), None)
        try:
            reply = await self._admitted(visit, started)
        except OverloadedError as error:
            # A page would cost as much as what is refused.
            reply = Reply(error.message.encode(), error.status, error.headers(), _TEXT)
        except FactbookError as error:
            reply = await _refusal(visit, self._path, error)
        except ClientGoneError:
            return
        except Exception as error:  # noqa: BLE001 - the edge: whatever went wrong has to be answered
            unexpected = errors.unexpected(error, request, self._path)
            reply = await _refusal(visit, self._path, unexpected)
        _note_refusal(visit, self._path, reply.status)
        metrics, seconds = self._site.state.metrics, time.perf_counter() - started
        metrics.answered(self._path, request.method, reply.status, seconds)
        reply = await compressed(self._with_headers(reply, visit), request)
        await send_reply(reply, send, head=request.method == "HEAD")

    async def _admitted(self, visit: PageContext, now: float) -> Reply:
        request, admission = visit.request, visit.state.admission
        await admission.enter(request, now, writes=_is_form(request))
        try:
            return await self._answer(visit)
        finally:
            admission.leave(request)

    async def _answer(self, visit: PageContext) -> Reply:
        request, state = visit.request, visit.state
        state.hosts.check(request.headers.get(b"host"), request.headers.get(b"origin"))
        method = "GET" if request.method == "HEAD" else request.method
        page = self._pages.get(method)
        if page is None:
            raise MethodNotAllowedError(allow=", ".join(sorted(self._pages)))
        await session.find(visit)
        if page.needs is not None:
            if visit.session is None:
                raise AuthenticationError("Sign in to see this page.")
            visit.require(*page.needs)
        if method != "GET":
            visit.form = await forms.read(request)
            session.check_form(visit)
        return await page.handler(visit)

    def _with_headers(self, reply: Reply, visit: PageContext) -> Reply:
        tls = _TLS_ONLY if self._site.is_secure else {}
        headers = {**_HEADERS, **_PRIVATE, **tls, **reply.headers}
        return reply._replace(headers=headers, cookies=tuple(visit.set_cookies))


async def _refusal(visit: PageContext, path: str, error: FactbookError) -> Reply:
    """An error as a page; who is not signed in is asked to do so first."""
    request = visit.request
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
    audit.refused(
        visit.state,
        actor=visit.session.ref if visit.session else "",
        address=visit.address,
        action=audit.REFUSED,
        # Of some pages the path is a secret: the link of an invitation.
        object=path,
        status=status,
        detail={"method": visit.request.method[:20], "error": _REFUSED[status]},
    )


def _is_form(request: Request) -> bool:
    return request.method not in {"GET", "HEAD"}
