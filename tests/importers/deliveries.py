"""Events as GitHub delivers them, signed with a secret."""

import hashlib
import hmac
import json

from tests.fakes.github.state import Repository

SECRET = "a secret of tests, long enough"
EVENTS = "/api/importers/v1/importers/github/events"


def signed(
    content: bytes, event: str = "push", secret: str = SECRET, delivery: str = "1"
) -> dict[str, str]:
    """The headers with which GitHub sends an event."""
    signature = hmac.new(secret.encode(), content, hashlib.sha256).hexdigest()
    return {
        "content-type": "application/json",
        "x-github-event": event,
        "x-github-delivery": delivery,
        "x-hub-signature-256": f"sha256={signature}",
    }


def about(repository: Repository) -> dict[str, str]:
    """What an event says of its repository."""
    return {"node_id": repository.id, "full_name": repository.name, "default_branch": "main"}


def push_to(repository: Repository) -> bytes:
    """The event of a push to the default branch of a repository."""
    return json.dumps({"ref": "refs/heads/main", "repository": about(repository)}).encode()
