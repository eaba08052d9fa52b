"""Links to this service's own pages, made outside of any request."""

import ipaddress
from typing import Final

from factbook.settings import Settings

# Where the secret of an invitation is used.
WELCOME: Final = "/welcome/{secret}"


def server(settings: Settings) -> str | None:
    """Address of the service by the settings; None when the system chooses the port."""
    if settings.public_url:
        return settings.public_url.rstrip("/")
    if settings.port == 0:
        return None
    return f"http://{_host(settings.host)}:{settings.port}"


def welcome(server: str, secret: str) -> str:
    """Link of the invitation with this secret."""
    return server.rstrip("/") + WELCOME.replace("{secret}", secret)


def _host(bound: str) -> str:
    """How a browser on this machine calls what is bound so."""
    try:
        address = ipaddress.ip_address(bound)
    except ValueError:
        return bound
    if address.is_unspecified:
        return "localhost"
    return f"[{bound}]" if address.version == 6 else bound
