"""The client's requests to digests, which Slack and Microsoft Teams are sent."""

from typing import Any

from factbook.client.calls import Call, get, segment, send
from factbook.client.responses import decode, nothing
from factbook.schemas.events import ShownDigest, ShownDigests, TriedWebhook

_DIGESTS = "/api/tech-insights/v1/digests"


def digests() -> Call[list[ShownDigest]]:
    """Every digest, by owner."""
    return Call(
        method="GET",
        path=_DIGESTS,
        read=lambda response: decode(ShownDigests, response).digests,
    )


def digest(digest_id: str) -> Call[ShownDigest]:
    """A digest, with what became of the last one. Raises ApiError (404) when there is none."""
    return get(_path(digest_id), ShownDigest)


def create_digest(
    url: str,
    form: str = "slack",
    *,
    owner: str | None = None,
    cadence: str = "weekly",
    day: str = "monday",
    hour: int = 8,
    time_zone: str = "UTC",
) -> Call[ShownDigest]:
    """Send what changes for an owner, or for everybody, to a channel from now on."""
    return send(
        "POST",
        _DIGESTS,
        ShownDigest,
        {**_body(form, owner, cadence, day, hour, time_zone), "url": url},
    )


def replace_digest(
    digest_id: str,
    form: str | None = None,
    *,
    url: str | None = None,
    owner: str | None = None,
    cadence: str = "weekly",
    day: str = "monday",
    hour: int = 8,
    time_zone: str = "UTC",
) -> Call[ShownDigest]:
    """Replace a digest; without `url` its address stays, and so does `form`."""
    body = _body(form, owner, cadence, day, hour, time_zone)
    return send("PUT", _path(digest_id), ShownDigest, body if url is None else {**body, "url": url})


def delete_digest(digest_id: str) -> Call[None]:
    """Remove a digest."""
    return Call(method="DELETE", path=_path(digest_id), read=nothing)


def test_digest(digest_id: str) -> Call[TriedWebhook]:
    """Send what the next digest would tell by now, once, and return the result."""
    return send("POST", f"{_path(digest_id)}/test", TriedWebhook)


def _body(
    form: str | None, owner: str | None, cadence: str, day: str, hour: int, time_zone: str
) -> dict[str, Any]:
    return {
        **({"owner": owner} if owner is not None else {}),
        **({"form": form} if form is not None else {}),
        "cadence": cadence,
        "day": day,
        "hour": hour,
        "timeZone": time_zone,
    }


def _path(digest_id: str) -> str:
    return f"{_DIGESTS}/{segment(digest_id)}"
