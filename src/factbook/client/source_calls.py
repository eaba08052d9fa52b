"""The client's requests to data sources and facts: defining, trying, running; pushing, reading."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from factbook.client.answers import DataSourcePage, TrialAnswer
from factbook.client.calls import Call, get, parameters, segment, send
from factbook.client.responses import decode, nothing
from factbook.schemas.facts import FactDistribution, History, LatestFacts, PushedFacts, ValuePage
from factbook.schemas.sources import OneSource, Run, Runs

PATH = "/api/tech-insights/v1"
_SOURCES = f"{PATH}/data-sources"
# A trial asks a vendor, which may take its time.
_TEST_TIMEOUT = 180.0


def data_sources(*, limit: int | None = None, cursor: str | None = None) -> Call[DataSourcePage]:
    """The data sources, builtin and custom: at most 100, or `limit` of them, from `cursor` on."""
    return get(_SOURCES, DataSourcePage, limit=limit, cursor=cursor)


def data_source(source_id: str) -> Call[OneSource]:
    """The data source with this id. Raises ApiError with status 404 when there is none."""
    return get(_path(source_id), OneSource)


def put_data_source(definition: Mapping[str, Any]) -> Call[OneSource]:
    """Make a definition the draft of the data source that it names, new or not.

    One that says what is published already ends the draft. Raises ApiError (400) with every problem
    of the definition.
    """
    return send("PUT", _path(str(definition["id"])), OneSource, definition)


def publish_data_source(source_id: str, *, force: bool = False) -> Call[OneSource]:
    """Publish the draft of a data source under its next version; without a draft nothing changes.

    Raises ApiError (409), unless forced, when a fact is removed or gets another type.
    """
    return send("POST", f"{_path(source_id)}/publish", OneSource, {"force": force})


def delete_data_source(source_id: str) -> Call[None]:
    """Remove a data source with its facts, their history and its runs."""
    return Call(method="DELETE", path=_path(source_id), read=nothing)


def test_data_source(definition: Mapping[str, Any], entity: str) -> Call[TrialAnswer]:
    """Try a definition on one entity and store nothing; return request, answer and facts."""
    body = {"entity": entity, "definition": definition}
    path = f"{_path(str(definition['id']))}/test"
    return send("POST", path, TrialAnswer, body, timeout=_TEST_TIMEOUT)


def run_data_source(source_id: str, *, entity: str | None = None) -> Call[Run]:
    """Begin to collect a data source now, for every entity or for one.

    Raises ApiError (409) when a run of everything is under way, or nothing collects the source.
    """
    body = {} if entity is None else {"entity": entity}
    return send("POST", f"{_path(source_id)}/run", Run, body)


def data_source_runs(source_id: str) -> Call[list[Run]]:
    """The last runs of a data source, newest first."""
    return Call(
        method="GET",
        path=f"{_path(source_id)}/runs",
        read=lambda response: decode(Runs, response).runs,
    )


def push_facts(source_id: str, items: Iterable[Mapping[str, Any]]) -> Call[PushedFacts]:
    """Push facts to a data source of the type `push`: up to 1,000 items.

    An item is `{"entity": ref, "facts": {name: value}}`, with a `timestamp` when the facts are of
    another moment than now. It replaces what the source says about the entity; with `"merge": True`
    other facts keep their values. `"reasons": {name: text}` says why facts are unknown. The
    answer lists the problems of each item; facts without one are stored.
    """
    return send("POST", _facts_path(source_id), PushedFacts, {"items": list(items)})


def facts(
    source_id: str,
    *,
    entity: str | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[LatestFacts]:
    """The latest facts of a data source: of one entity, or a page of all of them."""
    return get(_facts_path(source_id), LatestFacts, entity=entity, limit=limit, cursor=cursor)


def fact_history(
    entity: str,
    *,
    sources: Sequence[str] = (),
    start: str | None = None,
    end: str | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[History]:
    """A page of the facts that an entity had, newest first, of these data sources or of all.

    `start` and `end` are ISO 8601 with a UTC offset.
    """
    return get(
        f"{PATH}/facts",
        History,
        entity=entity,
        dataSourceIds=",".join(sources) or None,
        startDateTime=start,
        endDateTime=end,
        limit=limit,
        cursor=cursor,
    )


def fact_distribution(
    source_id: str, fact: str, *, by: str | None = None, part: Mapping[str, str] | None = None
) -> Call[FactDistribution]:
    """The distribution of a fact over the entities that its data source is about.

    `by` adds figures for each `owner`, `system` or `kind`. `part` narrows it by `kind`,
    `namespace`, `owner`, `system`, `type` and `lifecycle`.
    """
    path = f"{_facts_path(source_id)}/distribution"
    return get(path, FactDistribution, fact=fact, by=by, **(part or {}))


def fact_values(
    source_id: str,
    fact: str,
    *,
    part: Mapping[str, str] | None = None,
    sort: str | None = None,
    limit: int | None = None,
    cursor: str | None = None,
    **wanted: str,
) -> Call[ValuePage]:
    """A page of the entities with their value of a fact, or why they have none.

    `sort` is `value` or `-value`. `wanted` are `known`, `reason`, `value`, `min` and `below`.
    """
    given = {**(part or {}), **wanted, "sort": sort, "limit": limit, "cursor": cursor}
    return get(f"{_facts_path(source_id)}/values", ValuePage, fact=fact, **given)


def fact_values_csv(
    source_id: str, fact: str, *, part: Mapping[str, str] | None = None
) -> Call[str]:
    """The entities with their value of a fact, all of them, as CSV."""
    return Call(
        method="GET",
        path=f"{_facts_path(source_id)}/values.csv",
        params=parameters(fact=fact, **(part or {})),
        read=lambda response: response.text,
    )


def _path(source_id: str) -> str:
    return f"{_SOURCES}/{segment(source_id)}"


def _facts_path(source_id: str) -> str:
    return f"{PATH}/facts/{segment(source_id)}"
