"""The owner of an entity, and how to reach them: what their own entity says."""

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from factbook.tools.entities import document
from factbook.tools.pages import shortened

Document = Mapping[str, Any]

_MOST: Final = 10
# Annotations of chats, of whoever is on call, and of addresses.
_REACHED_BY: Final = re.compile(
    "slack|teams|chat|discord|mattermost|zulip|e-?mail|on-?call|pagerduty|opsgenie|victorops|phone",
    re.IGNORECASE,
)


def owner(ref: str | None, found: str | None) -> dict[str, Any] | None:
    """The owner with this reference, and its document as pushed; None without an owner."""
    if ref is None:
        return None
    if found is None:
        return {"entityRef": ref, "exists": False}
    return {"entityRef": ref, "exists": True, "writtenByOthers": reach(msgspec.json.decode(found))}


def reach(entity: Document) -> dict[str, Any]:
    """Name, address, chat and on-call annotations, and links of a group or person."""
    spec: Document = entity.get("spec") or {}
    profile = spec.get("profile")
    named: Document = profile if isinstance(profile, dict) else {}
    title = named.get("displayName") or (entity.get("metadata") or {}).get("title")
    ways = {
        name: shortened(text)[0]
        for name, text in document.annotations(entity).items()
        if _REACHED_BY.search(name)
    }
    found = {
        "title": shortened(title)[0],
        "email": shortened(named.get("email"))[0],
        "annotations": dict(list(ways.items())[:_MOST]),
        "links": document.links(entity)[:_MOST],
    }
    return {name: value for name, value in found.items() if value}
