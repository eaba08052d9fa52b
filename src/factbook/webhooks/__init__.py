"""Webhooks: sending events to the addresses that administrators name."""

from factbook.webhooks.courier import Courier
from factbook.webhooks.managing import create, enable, listed, one, remove, try_out
from factbook.webhooks.posting import GuardedPost, Post
from factbook.webhooks.store import GivenUp, Webhook

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
