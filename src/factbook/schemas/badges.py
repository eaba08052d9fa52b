"""Badges in the form that shields.io reads from an endpoint."""

from typing import Annotated, Literal

from msgspec import Meta

from factbook.schemas.common import Wire


class ShieldsBadge(Wire):
    """A badge to be drawn."""

    schema_version: Literal[1]
    label: str
    message: str
    color: Annotated[str, Meta(description="Of the background of the message.")]
