"""Stylesheet, script and pictures: read once, served under content-hashed names."""

import hashlib
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from factbook.errors import NotFoundError
from factbook.http.requests import Reply

_FOREVER = "public, max-age=31536000, immutable"
_FOLDER = files("factbook.web") / "static"


class Asset(NamedTuple):
    """A static file of the pages."""

    name: str
    content_type: bytes
    content: bytes


@cache
def assets() -> dict[str, Asset]:
    """Every asset by the path in the pages."""
    sheets = sorted(
        (one for one in (_FOLDER / "css").iterdir() if one.name.endswith(".css")),
        key=lambda one: one.name,
    )
    found = (
        ("factbook.css", b"text/css; charset=utf-8", b"\n".join(map(_read, sheets))),
        ("factbook.js", b"text/javascript; charset=utf-8", _read(_FOLDER / "factbook.js")),
        ("factbook.svg", b"image/svg+xml", _read(_FOLDER / "factbook.svg")),
    )
    return {path(Asset(*one)): Asset(*one) for one in found}


@cache
def url(name: str) -> str:
    """Address of the asset with this name."""
    return next(address for address, asset in assets().items() if asset.name == name)


def path(asset: Asset) -> str:
    """Path of an asset."""
    digest = hashlib.blake2b(asset.content, digest_size=6).hexdigest()
    stem, _, ending = asset.name.rpartition(".")
    return f"/static/{stem}-{digest}.{ending}"


def reply(address: str) -> Reply:
    """Reply with the asset at this address; raises NotFoundError."""
    asset = assets().get(address)
    if asset is None:
        raise NotFoundError
    headers = {"cache-control": _FOREVER, "x-content-type-options": "nosniff"}
    return Reply(asset.content, headers=headers, content_type=asset.content_type)


def _read(resource: object) -> bytes:
    content: bytes = resource.read_bytes()  # type: ignore[attr-defined]
    return content
