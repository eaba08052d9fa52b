"""Secrets of a webhook at rest: its address and its signing key.

Some receivers authorise by the address alone, so it is as secret as the key. Each opens only beside
its own webhook, and the key only beside the address that it is for.
"""

from typing import Final, NamedTuple
from urllib.parse import urlsplit

from factbook.auth import encryption
from factbook.auth.encryption import NotOpenedError

_ADDRESS: Final = "webhook addresses"
_KEY: Final = "webhooks"
# What stands for the part of an address that is not shown.
_HIDDEN: Final = "/…"


class WebhookTarget(NamedTuple):
    """Address of a webhook and the key that signs its messages."""

    url: str
    secret: bytes

    def __repr__(self) -> str:
        """Representation without either, as both are secret."""
        return "Target(…)"


class Sealed(NamedTuple):
    """A target as it is stored; `address` is missing in a row that is not sealed yet."""

    address: bytes | None
    secret: bytes


def seal(key: bytes, id_: str, target: WebhookTarget) -> Sealed:
    """Seal the target for storage."""
    return Sealed(
        encryption.seal(key, _ADDRESS, id_, target.url.encode()),
        encryption.seal(key, _KEY, f"{id_} {target.url}", target.secret),
    )


def opened(key: bytes, id_: str, sealed: Sealed) -> WebhookTarget:
    """Open the target; raises NotOpenedError, also for one that is not sealed yet."""
    if sealed.address is None:
        raise NotOpenedError
    url = encryption.opened(key, _ADDRESS, id_, sealed.address).decode()
    return WebhookTarget(url, encryption.opened(key, _KEY, f"{id_} {url}", sealed.secret))


def sealed_address(key: bytes, id_: str, url: str, secret: bytes) -> bytes:
    """Seal the address alone; raises NotOpenedError unless the key opens its secret."""
    encryption.opened(key, _KEY, f"{id_} {url}", secret)
    return encryption.seal(key, _ADDRESS, id_, url.encode())


def shown(url: str) -> str:
    """The address without what may be secret: scheme, host, port, and a mark if there is more."""
    parts = urlsplit(url)
    more = parts.path.strip("/") or parts.query
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{_HIDDEN if more else ''}"
