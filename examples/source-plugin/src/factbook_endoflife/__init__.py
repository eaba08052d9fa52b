"""Whether what a component is built on is still supported: a source outside Factbook's package."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any

import msgspec

from factbook.integrations import sdk

ANNOTATION = "endoflife.date/product"
FACTS = (
    sdk.Fact("supported", "boolean", "The release still gets fixes."),
    sdk.Fact("end", "string", "The day on which that ends."),
    sdk.Fact("latest", "string", "The latest version of the release."),
)
_TARGET = re.compile(r"([a-z0-9][a-z0-9-]{0,60})@([a-zA-Z0-9][a-zA-Z0-9.-]{0,60})", re.ASCII)
_UNKNOWN_FORM = sdk.Missing(sdk.Outcome.TRANSIENT, "answered in an unknown format")


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One instance of the service; it needs no credential."""

    base_url: Annotated[str, msgspec.Meta(description="Address of the service.")] = (
        "https://endoflife.date"
    )


class Release(msgspec.Struct):
    """A release as the service shows it; `eol` is a day, or whether it is over."""

    eol: str | bool
    latest: str | None = None


def configured(
    name: str, values: Mapping[str, Any], *, clock: sdk.Clock = sdk.now
) -> sdk.Integration:
    """The integration that `[integrations.endoflife.<name>]` of the settings describes."""
    options = sdk.read("endoflife", name, values, Options)
    id_ = sdk.source_id("endoflife", name)
    return sdk.Integration(
        source=sdk.DataSource(
            id=id_,
            title=sdk.title("End of life", name),
            description="Support of what components are built on.",
            cadence="0 3 * * *",
            lifecycle=sdk.Lifecycle(max_items=30),
            handler=sdk.Handler("builtin", id_, builtin_id="endoflife"),
            timeout={"minutes": 10},
            entity_filter=[{f"metadata.annotations.{ANNOTATION}": {"exists": True}}],
            schema=FACTS,
        ),
        fills=(),
        credential=id_,
        authorize=lambda _: sdk.ANONYMOUS,
        base_url=options.base_url,
        target=target,
        batches=partial(sdk.portions, size=20),
        collect=collect,
    )


def target(entity: Mapping[str, Any]) -> str | sdk.Missing:
    """`product@release`, which is asked for once for all entities that name it."""
    named = sdk.annotations(entity).get(ANNOTATION)
    if isinstance(named, str) and _TARGET.fullmatch(named):
        return named
    return sdk.Missing(sdk.Outcome.NO_ANNOTATION, "what it holds is not product@release")


async def collect(
    targets: Sequence[str], client: sdk.Client, memory: sdk.Memory, now: int
) -> dict[str, sdk.Collected]:
    """The facts about each target, or why there are none."""
    return {one: await _collected(one, client, memory, now) for one in targets}


async def _collected(
    target: str, client: sdk.Client, memory: sdk.Memory, now: int
) -> sdk.Collected:
    product, release = target.split("@")
    # With the memory, what has not changed since is confirmed and not sent again.
    answer = await client.get(sdk.path("api", product, f"{release}.json"), memory=memory)
    if not answer.ok:
        return sdk.Collected(missing={"": answer.missing})
    try:
        found = msgspec.convert(answer.data, Release)
    except msgspec.ValidationError:
        return sdk.Collected(missing={"": _UNKNOWN_FORM})
    return _facts(found, now)


def _facts(found: Release, now: int) -> sdk.Collected:
    nothing = sdk.Missing(sdk.Outcome.NOT_APPLICABLE, "no such day is known")
    collected = sdk.Collected()
    if isinstance(found.eol, bool):
        collected.values["supported"] = not found.eol
        collected.missing["end"] = nothing
    else:
        today = datetime.fromtimestamp(now / 1000, UTC).date().isoformat()
        collected.values |= {"supported": found.eol >= today, "end": found.eol}
    if found.latest is None:
        collected.missing["latest"] = nothing
    else:
        collected.values["latest"] = found.latest
    return collected


INTEGRATION = sdk.Vendor(
    id="endoflife",
    title="End of life",
    options=Options,
    facts=FACTS,
    fills=(),
    configured=configured,
)
