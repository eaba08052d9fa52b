"""Webhooks: delivery of events to the addresses that administrators configure."""

from factbook.webhooks.adoption import adopt
from factbook.webhooks.digest_cadence import DigestCadence
from factbook.webhooks.digest_sender import DigestSender
from factbook.webhooks.digest_store import StoredDigest
from factbook.webhooks.digests import WantedDigest
from factbook.webhooks.management import create, enable, listed, one, remove, try_out
from factbook.webhooks.sender import WebhookSender
from factbook.webhooks.store import GivenUp, StoredWebhook
from factbook.webhooks.transport import GuardedPost, Post

__all__ = [
    "DigestCadence",
    "DigestSender",
    "GivenUp",
    "GuardedPost",
    "Post",
    "StoredDigest",
    "StoredWebhook",
    "WantedDigest",
    "WebhookSender",
    "adopt",
    "create",
    "enable",
    "listed",
    "one",
    "remove",
    "try_out",
]
