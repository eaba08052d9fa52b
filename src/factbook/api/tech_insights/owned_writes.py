"""Writes of data sources, for owners with a look at whose the source is."""

from http import HTTPStatus

from factbook.audit.trail import About, AuditEntry
from factbook.auth.permissions import SOURCE_WRITE
from factbook.datasources.owned_source import OwnedSource
from factbook.http import audit
from factbook.http.context import SourceContext
from factbook.http.requests import Request
from factbook.storage import Write


def writing(
    request: Request,
    state: SourceContext,
    source_id: str,
    about: AuditEntry | About,
    status: int = HTTPStatus.OK,
    *,
    needed: str = SOURCE_WRITE,
) -> Write:
    """Transaction runner that records the request; for owners, it looks whose the source is."""
    if not request.own_only:
        return audit.writing(request, state, about, status)
    configured = state.registry.configured
    owned = OwnedSource(source_id, request.actor, state.trust, configured, needed)
    return owned.guarding(audit.writing(request, state, owned.told(about), status))


def guarding(request: Request, state: SourceContext, source_id: str) -> Write:
    """Transaction runner that records nothing; for owners, it looks whose the source is."""
    write = state.database.write
    if not request.own_only:
        return write
    owned = OwnedSource(source_id, request.actor, state.trust, state.registry.configured)
    return owned.guarding(write)
