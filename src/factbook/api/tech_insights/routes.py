"""The interface of data sources and facts as a table."""

from collections.abc import Sequence
from typing import Any

from factbook.api.endpoint import NOTHING_STORED, Route
from factbook.api.openapi.parameter_types import Parameter
from factbook.api.openapi.parameters import (
    CONNECTION,
    ENTITY,
    ENTITY_WANTED,
    FACTS_CURSOR,
    FACTS_LIMIT,
    HISTORY_CURSOR,
    HISTORY_END,
    HISTORY_SOURCES,
    HISTORY_START,
    NUMBER,
    SOURCE_CURSOR,
    SOURCE_ID,
    SOURCE_LIMIT,
)
from factbook.api.tech_insights import connections, data_sources, distributions, facts, trials
from factbook.api.tech_insights.value_parameters import (
    BY,
    CATALOG_PART,
    ENDS,
    FACT,
    TOP,
    VALUE_CURSOR,
    VALUE_FILTER,
    VALUE_SORT,
)
from factbook.auth.permissions import (
    CATALOG_READ,
    FACT_WRITE,
    SOURCE_READ,
    SOURCE_RUN,
    SOURCE_WRITE,
)
from factbook.auth.token_reach import OF_PUSHED_FACTS, OF_SOURCE
from factbook.errors import ConflictError, NotFoundError
from factbook.http.csv_lines import CSV
from factbook.schemas import facts as fact_schemas
from factbook.schemas import sources as source_schemas

_READ = (SOURCE_READ,)
_WRITE = (SOURCE_WRITE,)
# Facts are of entities, as in the tools.
_READ_FACTS = (CATALOG_READ, SOURCE_READ)
_SOURCES = "/data-sources"
_SOURCE = f"{_SOURCES}/{{id}}"
_CONNECTIONS = "/connections"
_CONNECTION = f"{_CONNECTIONS}/{{name}}"
_FACTS = "/facts/{id}"
_ACROSS: tuple[Parameter[Any], ...] = (SOURCE_ID, FACT, *CATALOG_PART)
_CONFLICT = (ConflictError,)

# Below /api/tech-insights/v1.
TECH_INSIGHTS_ROUTES: Sequence[Route] = (
    Route("GET", _SOURCES, data_sources.list_all, _READ, (SOURCE_LIMIT, SOURCE_CURSOR)),
    Route(
        "POST",
        _SOURCES,
        data_sources.create,
        _WRITE,
        body=source_schemas.NewDataSource,
        status=201,
        refusals=_CONFLICT,
        owned=True,
        reading=_READ,
    ),
    Route("GET", _SOURCE, data_sources.get, _READ, (SOURCE_ID,), reach=OF_SOURCE),
    Route(
        "PUT",
        _SOURCE,
        data_sources.replace,
        _WRITE,
        (SOURCE_ID,),
        body=source_schemas.NewDataSource,
        refusals=_CONFLICT,
        owned=True,
        reading=_READ,
    ),
    Route(
        "DELETE",
        _SOURCE,
        data_sources.delete,
        _WRITE,
        (SOURCE_ID,),
        status=204,
        refusals=_CONFLICT,
        owned=True,
        reading=NOTHING_STORED,
    ),
    Route(
        "POST",
        f"{_SOURCE}/publish",
        data_sources.publish,
        _WRITE,
        (SOURCE_ID,),
        body=source_schemas.Publish,
        needs_body=False,
        refusals=_CONFLICT,
        owned=True,
        reading=_READ,
    ),
    Route(
        "POST",
        f"{_SOURCE}/test",
        trials.create,
        # It shows what an entity holds, and makes the service call others.
        (CATALOG_READ, SOURCE_WRITE),
        (SOURCE_ID,),
        body=source_schemas.NewTrial,
        refusals=_CONFLICT,
        owned=True,
        reading=_READ,
    ),
    Route(
        "POST",
        f"{_SOURCE}/run",
        data_sources.run,
        (SOURCE_RUN,),
        (SOURCE_ID,),
        body=source_schemas.NewRun,
        needs_body=False,
        status=202,
        refusals=_CONFLICT,
        owned=True,
        reading=_READ,
        reach=OF_SOURCE,
    ),
    Route("GET", f"{_SOURCE}/runs", data_sources.list_runs, _READ, (SOURCE_ID,), reach=OF_SOURCE),
    Route(
        "GET",
        f"{_SOURCE}/runs/{{number}}",
        data_sources.get_run,
        _READ,
        (SOURCE_ID, NUMBER),
        reach=OF_SOURCE,
    ),
    Route("GET", _CONNECTIONS, connections.list_all, _WRITE, reading=_READ, owned=True),
    Route("GET", _CONNECTION, connections.get, _WRITE, (CONNECTION,), reading=_READ, owned=True),
    Route(
        "PUT",
        _CONNECTION,
        connections.put,
        _WRITE,
        (CONNECTION,),
        body=source_schemas.NewConnection,
        refusals=_CONFLICT,
        reading=_READ,
    ),
    Route(
        "DELETE",
        _CONNECTION,
        connections.delete,
        _WRITE,
        (CONNECTION,),
        status=204,
        refusals=_CONFLICT,
        reading=_READ,
    ),
    Route(
        "GET",
        "/facts",
        facts.past,
        _READ_FACTS,
        (ENTITY_WANTED, HISTORY_SOURCES, HISTORY_START, HISTORY_END, FACTS_LIMIT, HISTORY_CURSOR),
        refusals=(NotFoundError,),
        reach=OF_SOURCE,
    ),
    Route(
        "GET",
        _FACTS,
        facts.latest,
        _READ_FACTS,
        (SOURCE_ID, ENTITY, FACTS_LIMIT, FACTS_CURSOR),
        reach=OF_SOURCE,
    ),
    Route(
        "POST",
        _FACTS,
        facts.push,
        (FACT_WRITE,),
        (SOURCE_ID,),
        body=fact_schemas.NewItems,
        refusals=_CONFLICT,
        owned=True,
        reading=_READ_FACTS,
        reach=OF_PUSHED_FACTS,
    ),
    Route(
        "GET", f"{_FACTS}/distribution", distributions.show, _READ_FACTS, (*_ACROSS, BY, TOP, ENDS)
    ),
    Route(
        "GET",
        f"{_FACTS}/values",
        distributions.values,
        _READ_FACTS,
        (*_ACROSS, *VALUE_FILTER, VALUE_SORT, FACTS_LIMIT, VALUE_CURSOR),
    ),
    Route(
        "GET",
        f"{_FACTS}/values.csv",
        distributions.export,
        _READ_FACTS,
        (*_ACROSS, *VALUE_FILTER),
        media=CSV,
    ),
)
