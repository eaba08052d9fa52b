"""Secrets of a webhook at rest: its address and its signing key.

Some receivers authorise by the address alone, so it is as secret as the key. Each opens only beside
its own webhook, and the key only beside the address that it is for.
"""

from typing import Final

from factbook.auth import encryption

_LABEL: Final = "webhooks"


def seal(key: bytes, id_: str, url: str, secret: bytes) -> bytes:
    """The secret as it is stored."""
    return encryption.seal(key, _LABEL, f"{id_} {url}", secret)


def opened(key: bytes, id_: str, url: str, sealed: bytes) -> bytes:
    """The secret; raises sealing.NotOpenedError."""
    return encryption.opened(key, _LABEL, f"{id_} {url}", sealed)
