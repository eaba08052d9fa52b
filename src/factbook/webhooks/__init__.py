"""Webhooks: sending events to the addresses that administrators name."""

from factbook.webhooks.management import create, enable, listed, one, remove, try_out
from factbook.webhooks.sender import Courier
from factbook.webhooks.store import GivenUp, Webhook
from factbook.webhooks.transport import GuardedPost, Post

__all__ = [
    "Courier",
    "GivenUp",
    "GuardedPost",
    "Post",
    "Webhook",
    "create",
    "enable",
    "listed",
    "one",
    "remove",
    "try_out",
]
