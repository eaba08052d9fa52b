"""Datadog: the observability shape.

A target combines the tags of monitors and of objectives: `service:app service:app` is equal for all
entities with the same tags. Tags are compared in Datadog's normalized form. Each run reads both
lists completely: searches would take fewer calls for a few targets, but their index also matches
words in names and scopes.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Final

import msgspec

from factbook.integrations.integration import (
    Collected,
    Instance,
    InstanceOptions,
    Integration,
    NumberedPages,
    Probe,
    gather_or_cancel,
    get_annotations,
    make_vendor,
    report_bad_annotation,
    report_no_annotation,
)
from factbook.outbound.cache import Memory
from factbook.outbound.client import HttpClient
from factbook.outbound.outcomes import Missing, Outcome
from factbook.settings.option_tables import HOST_PATTERN, about, is_web_address

SERVICE_NAME: Final = "datadoghq.com/service-name"
MONITOR_TAGS: Final = "datadoghq.com/monitor_tags"
SLO_TAG: Final = "datadoghq.com/slo_tag"
SITE: Final = "datadoghq.com/site"
KEYS: Final = (SERVICE_NAME, SLO_TAG, MONITOR_TAGS)
MOST_TAGS: Final = 20
MOST_CHARACTERS: Final = 200
# Marks of queries, which tags never contain: `env:prod AND NOT team:(a OR b)`, `scope:{env:prod}`.
_QUERY: Final = re.compile(r"[(){}*]|\b(?:AND|OR|NOT|IN)\b")
_REPLACED: Final = re.compile(r"[^\w:./-]")

# Source: Datadog's API description, version 1, and its list of sites.
SITES: Final = (
    "datadoghq.com",
    *(f"{region}.datadoghq.com" for region in ("us3", "us5", "ap1", "ap2", "uk1")),
    "datadoghq.eu",
    "ddog-gov.com",
    "us2.ddog-gov.com",
)
_KEY: Final = re.compile(r"[a-z][a-z0-9_./-]{0,99}", re.ASCII)


class DatadogOptions(InstanceOptions, frozen=True, kw_only=True):
    """Organization of Datadog with one pair of keys."""

    site: Annotated[
        str, about("Site of the organization. One that is not Datadog's own needs `base_url`.")
    ] = "datadoghq.com"
    base_url: Annotated[str, about("Address of the interface. Empty: `https://api.<site>`.")] = ""
    api_key: Annotated[str, about("Secret. An API key.")] = ""
    application_key: Annotated[
        str, about("Secret. An application key with the rights `monitors_read` and `slos_read`.")
    ] = ""
    tag_key: Annotated[
        str, about("Key of the tag whose value `datadoghq.com/service-name` gives.")
    ] = "service"

    @property
    def address(self) -> str:
        """The URL of the API, without a trailing slash."""
        return (self.base_url or f"https://api.{self.site}").rstrip("/")

    def problems(self) -> Iterator[str]:
        """The mistakes in the table."""
        if not HOST_PATTERN.fullmatch(self.site):
            yield "site has to be a host name in lower case, such as datadoghq.eu"
        elif self.site not in SITES and not self.base_url:
            yield f"without base_url site has to be one of {', '.join(SITES)}"
        if self.base_url and not is_web_address(self.base_url):
            yield "base_url has to be like https://host/path"
        if not self.api_key or not self.application_key:
            yield "api_key and application_key are needed, both"
        if not _KEY.fullmatch(self.tag_key):
            yield "tag_key has to be a key in lower case, such as service"


def find_datadog_target(options: DatadogOptions, entity: Mapping[str, Any]) -> str | Missing:
    """The tags that the entity's annotations name, or the reason that there are none for this site.

    The tags of monitors and objectives come from their own annotation, else from the service name.
    """
    annotations = get_annotations(entity)
    site, sites = annotations.get(SITE, options.site), {options.site, f"app.{options.site}"}
    if not isinstance(site, str) or site.strip().lower() not in sites:
        return report_no_annotation(f"{SITE} is not {options.site}")
    name = annotations.get(SERVICE_NAME)
    service = _join_tags([f"{options.tag_key}:{name.strip()}"]) if isinstance(name, str) else ""
    tags = []
    for key in (MONITOR_TAGS, SLO_TAG):
        if key not in annotations:
            tags.append(service)
            continue
        text = annotations[key]
        if isinstance(text, str) and not _QUERY.search(text):
            tags.append(_join_tags(text.split(",")))
        else:
            # The tags of a query would match nothing.
            tags.append("")
    if any(tags):
        return " ".join(tags)
    for key in reversed(KEYS):
        if str(annotations.get(key) or "").strip():
            return report_bad_annotation(f"{key} is no list of tags with commas")
    return report_no_annotation("no tags of monitors or objectives")


def normalize_tags(*lists: Iterable[str] | None) -> frozenset[str]:
    """The tags in Datadog's form: in lower case, with `_` for characters that no tag can contain.

    Source: Datadog's documentation of tags.
    """
    return frozenset(
        _REPLACED.sub("_", tag.strip().lower()) for tags in lists for tag in tags or ()
    )


def _join_tags(tags: Iterable[str]) -> str:
    """The distinct tags, sorted; none if one is invalid, as omitting it would count too much."""
    found = sorted(normalize_tags(tag for tag in tags if tag.strip()))
    sound = all(len(tag) <= MOST_CHARACTERS and not tag.endswith(":") for tag in found)
    return ",".join(found) if sound and len(found) <= MOST_TAGS else ""


# Half of Datadog's maximum: a page with long messages stays below the client's size limit.
PAGE: Final = 500
# 100,000 monitors or objectives; beyond that, a figure would take too long.
MOST_PAGES: Final = 200
_INCOMPLETE: Final = Missing(Outcome.TRANSIENT, "answered with errors")
_NO_TAGS: Final = Missing(Outcome.NO_ANNOTATION, "no annotation lists their tags")

PROBES: Final = (
    Probe(
        right="monitors_read",
        target="/api/v1/monitor",
        facts=("observability.monitorCount",),
        query={"page": 0, "page_size": 1},
        budget="monitors",
    ),
    Probe(
        right="slos_read",
        target="/api/v1/slo",
        facts=("observability.sloCount",),
        query={"limit": 1},
        budget="slos",
    ),
)

# Tags of each monitor or objective.
Listed = Sequence[frozenset[str]]


class _Tagged(msgspec.Struct):
    id: int | str
    tags: list[str] | None = None
    monitor_tags: list[str] | None = None

    def normalized(self) -> frozenset[str]:
        return normalize_tags(self.tags, self.monitor_tags)


class _Objectives(msgspec.Struct):
    data: list[_Tagged]
    errors: list[Any] | None = None


async def collect_datadog(
    targets: Sequence[str], client: HttpClient, memory: Memory, now: int
) -> dict[str, Collected]:
    """The facts about each target, or the reason that there are none."""

    async def monitors(number: int) -> list[_Tagged] | Missing:
        query = {"page": number, "page_size": PAGE}
        answer = await client.get("/api/v1/monitor", query=query, budget="monitors")
        return answer.read_as(list[_Tagged])

    async def objectives(number: int) -> list[_Tagged] | Missing:
        query = {"limit": PAGE, "offset": number * PAGE}
        answer = await client.get("/api/v1/slo", query=query, budget="slos")
        found = answer.read_as(_Objectives)
        if isinstance(found, Missing):
            return found
        return _INCOMPLETE if found.errors else found.data

    pages = NumberedPages(memory, now, "Datadog", PAGE, MOST_PAGES, _Tagged.normalized)
    listed = await gather_or_cancel(
        pages.rows("monitors", monitors), pages.rows("slos", objectives)
    )
    return make_datadog_facts(targets, *listed)


def make_datadog_facts(
    targets: Sequence[str], monitors: Listed | Missing, objectives: Listed | Missing
) -> dict[str, Collected]:
    """The facts about each target, from the listings or with the reason for their absence."""
    tags = [target.split(" ") for target in targets]
    by_monitor = _count_tagged([of_monitors for of_monitors, _ in tags], monitors)
    by_objective = _count_tagged([of_objectives for _, of_objectives in tags], objectives)
    counts = zip(targets, by_monitor, by_objective, strict=True)
    return {
        target: Collected.of({"observability": {"monitorCount": monitors, "sloCount": objectives}})
        for target, monitors, objectives in counts
    }


def _count_tagged(wanted: Sequence[str], listed: Listed | Missing) -> Iterable[int | Missing]:
    """For each list of tags, the number of entries that have all of its tags.

    An index by tag avoids comparing every pair.
    """
    if isinstance(listed, Missing):
        return [listed if tags else _NO_TAGS for tags in wanted]
    having: dict[str, set[int]] = {tag: set() for tags in wanted for tag in tags.split(",")}
    for number, found in enumerate(listed):
        for tag in found & having.keys():
            having[tag].add(number)
    common = {tags: set.intersection(*map(having.__getitem__, tags.split(","))) for tags in wanted}
    return [len(common[tags]) if tags else _NO_TAGS for tags in wanted]


def _make_datadog_integration(instance: Instance[DatadogOptions]) -> Integration:
    options = instance.options
    return Integration(
        source=instance.source(f"Monitors and service level objectives on {options.site}.", KEYS),
        authorize=instance.credential(
            {"dd-api-key": options.api_key, "dd-application-key": options.application_key}
        ),
        base_url=options.address,
        # One call for each of the two lists.
        calls_at_once=2,
        target=partial(find_datadog_target, options),
        collect=collect_datadog,
        probes=PROBES,
    )


INTEGRATION: Final = make_vendor(
    "datadog", "Datadog", DatadogOptions, _make_datadog_integration, ("observability",)
)
