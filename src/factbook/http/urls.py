"""Addresses of this service, and links to its own pages."""

import ipaddress
from typing import Final

from factbook.errors import InputError
from factbook.http.requests import Request
from factbook.settings import Settings

# Where the secret of an invitation is used.
WELCOME: Final = "/welcome/{secret}"


def server_address(settings: Settings) -> str | None:
    """Address of the service by the settings; None when the system chooses the port."""
    if settings.public_url:
        return settings.public_url.rstrip("/")
    if settings.port == 0:
        return None
    return f"http://{_browser_host(settings.host)}:{settings.port}"


def own_address(request: Request, settings: Settings) -> str:
    """Address of the service for this client, by the settings or else as it was called."""
    if settings.public_url:
        return settings.public_url.rstrip("/")
    # A host that is not among the allowed ones does not get here.
    host = request.header(b"host") or "127.0.0.1:8000"
    return f"{request.scope.get('scheme', 'http')}://{host}"


def require_address(settings: Settings, given: str | None) -> str:
    """The given address, or that of the settings; raises InputError without either."""
    found = given or server_address(settings)
    if found is None:
        raise InputError("The system chooses the port: give the address with --server.")
    return found


def welcome_link(server: str, secret: str) -> str:
    """Link of the invitation with this secret."""
    return server.rstrip("/") + WELCOME.replace("{secret}", secret)


def _browser_host(bound: str) -> str:
    """Host name with which a browser on this machine reaches the bound address."""
    try:
        found = ipaddress.ip_address(bound)
    except ValueError:
        return bound
    if found.is_unspecified:
        return "localhost"
    return f"[{bound}]" if found.version == 6 else bound
