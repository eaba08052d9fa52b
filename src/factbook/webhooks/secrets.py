"""The secrets of webhooks at rest: each opens only beside its webhook's address."""

from typing import Final

from factbook.auth import encryption

_LABEL: Final = "webhooks"


def seal(key: bytes, id_: str, url: str, secret: bytes) -> bytes:
    """The secret as it is stored."""
    return encryption.seal(key, _LABEL, f"{id_} {url}", secret)


def opened(key: bytes, id_: str, url: str, sealed: bytes) -> bytes:
    """The secret; raises sealing.NotOpenedError."""
    return encryption.opened(key, _LABEL, f"{id_} {url}", sealed)
