"""The table of routes below /api/tech-insights/v1: sources, facts, checks, results, digests."""

from collections.abc import Sequence
from typing import Any

from factbook.api import check_parameters, data_sources, definitions, facts, results, webhooks
from factbook.api.check_parameters import (
    CHECK_ID,
    ETAG,
    EXEMPTION_CHECK,
    EXEMPTION_CURSOR,
    EXEMPTION_ID,
    EXEMPTION_SCORECARD,
    EXEMPTION_STATE,
    EXPAND,
    ID_CURSOR,
    IF_MATCH,
    ONE_ENTITY,
    PAGE_LIMIT,
    PUBLISH,
    SCORECARD_ID,
    DefinitionId,
)
from factbook.api.endpoint import NOTHING_STORED, Handler, Route
from factbook.api.facts import (
    BY,
    CATALOG_PART,
    ENDS,
    FACT,
    TOP,
    VALUE_CURSOR,
    VALUE_FILTER,
    VALUE_SORT,
)
from factbook.api.parameters import (
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
    Parameter,
)
from factbook.auth.permissions import (
    CATALOG_READ,
    CHECK_READ,
    CHECK_WRITE,
    FACT_WRITE,
    OPERATIONS_MANAGE,
    SCORECARD_WRITE,
    SOURCE_READ,
    SOURCE_RUN,
    SOURCE_WRITE,
)
from factbook.auth.tokens import PUSHED_FACTS_REACH, SOURCE_REACH
from factbook.errors import ConflictError, NotFoundError, PreconditionFailedError
from factbook.http.csv_lines import CSV
from factbook.schemas import checks as check_schemas
from factbook.schemas import events
from factbook.schemas import facts as fact_schemas
from factbook.schemas import results as result_schemas
from factbook.schemas.common import Wire
from factbook.schemas.facts import NewConnection, NewDataSource, NewRun, NewTrial, Publish

_READ_SOURCES = (SOURCE_READ,)
_WRITE_SOURCES = (SOURCE_WRITE,)
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
    Route(
        "GET", _SOURCES, data_sources.get_data_sources, _READ_SOURCES, (SOURCE_LIMIT, SOURCE_CURSOR)
    ),
    Route(
        "POST",
        _SOURCES,
        data_sources.post_data_source,
        _WRITE_SOURCES,
        body=NewDataSource,
        status=201,
        refusals=_CONFLICT,
        owned=True,
        reading=_READ_SOURCES,
    ),
    Route(
        "GET",
        _SOURCE,
        data_sources.get_data_source,
        _READ_SOURCES,
        (SOURCE_ID,),
        reach=SOURCE_REACH,
    ),
    Route(
        "PUT",
        _SOURCE,
        data_sources.put_data_source,
        _WRITE_SOURCES,
        (SOURCE_ID,),
        body=NewDataSource,
        refusals=_CONFLICT,
        owned=True,
        reading=_READ_SOURCES,
    ),
    Route(
        "DELETE",
        _SOURCE,
        data_sources.delete_data_source,
        _WRITE_SOURCES,
        (SOURCE_ID,),
        status=204,
        refusals=_CONFLICT,
        owned=True,
        reading=NOTHING_STORED,
    ),
    Route(
        "POST",
        f"{_SOURCE}/publish",
        data_sources.publish_data_source,
        _WRITE_SOURCES,
        (SOURCE_ID,),
        body=Publish,
        needs_body=False,
        refusals=_CONFLICT,
        owned=True,
        reading=_READ_SOURCES,
    ),
    Route(
        "POST",
        f"{_SOURCE}/test",
        data_sources.post_source_trial,
        # It shows what an entity holds, and makes the service call others.
        (CATALOG_READ, SOURCE_WRITE),
        (SOURCE_ID,),
        body=NewTrial,
        refusals=_CONFLICT,
        owned=True,
        reading=_READ_SOURCES,
    ),
    Route(
        "POST",
        f"{_SOURCE}/run",
        data_sources.run_data_source,
        (SOURCE_RUN,),
        (SOURCE_ID,),
        body=NewRun,
        needs_body=False,
        status=202,
        refusals=_CONFLICT,
        owned=True,
        reading=_READ_SOURCES,
        reach=SOURCE_REACH,
    ),
    Route(
        "GET",
        f"{_SOURCE}/runs",
        data_sources.get_source_runs,
        _READ_SOURCES,
        (SOURCE_ID,),
        reach=SOURCE_REACH,
    ),
    Route(
        "GET",
        f"{_SOURCE}/runs/{{number}}",
        data_sources.get_source_run,
        _READ_SOURCES,
        (SOURCE_ID, NUMBER),
        reach=SOURCE_REACH,
    ),
    Route(
        "GET",
        _CONNECTIONS,
        data_sources.get_connections,
        _WRITE_SOURCES,
        reading=_READ_SOURCES,
        owned=True,
    ),
    Route(
        "GET",
        _CONNECTION,
        data_sources.get_connection,
        _WRITE_SOURCES,
        (CONNECTION,),
        reading=_READ_SOURCES,
        owned=True,
    ),
    Route(
        "PUT",
        _CONNECTION,
        data_sources.put_connection,
        _WRITE_SOURCES,
        (CONNECTION,),
        body=NewConnection,
        refusals=_CONFLICT,
        reading=_READ_SOURCES,
    ),
    Route(
        "DELETE",
        _CONNECTION,
        data_sources.delete_connection,
        _WRITE_SOURCES,
        (CONNECTION,),
        status=204,
        refusals=_CONFLICT,
        reading=_READ_SOURCES,
    ),
    Route(
        "GET",
        "/facts",
        facts.get_fact_history,
        _READ_FACTS,
        (ENTITY_WANTED, HISTORY_SOURCES, HISTORY_START, HISTORY_END, FACTS_LIMIT, HISTORY_CURSOR),
        refusals=(NotFoundError,),
        reach=SOURCE_REACH,
    ),
    Route(
        "GET",
        _FACTS,
        facts.get_latest_facts,
        _READ_FACTS,
        (SOURCE_ID, ENTITY, FACTS_LIMIT, FACTS_CURSOR),
        reach=SOURCE_REACH,
    ),
    Route(
        "POST",
        _FACTS,
        facts.post_facts,
        (FACT_WRITE,),
        (SOURCE_ID,),
        body=fact_schemas.NewItems,
        refusals=_CONFLICT,
        owned=True,
        reading=_READ_FACTS,
        reach=PUSHED_FACTS_REACH,
    ),
    Route(
        "GET",
        f"{_FACTS}/distribution",
        facts.get_fact_distribution,
        _READ_FACTS,
        (*_ACROSS, BY, TOP, ENDS),
    ),
    Route(
        "GET",
        f"{_FACTS}/values",
        facts.get_fact_values,
        _READ_FACTS,
        (*_ACROSS, *VALUE_FILTER, VALUE_SORT, FACTS_LIMIT, VALUE_CURSOR),
    ),
    Route(
        "GET",
        f"{_FACTS}/values.csv",
        facts.export_fact_values,
        _READ_FACTS,
        (*_ACROSS, *VALUE_FILTER),
        media=CSV,
    ),
)
_READ_CHECKS = (CHECK_READ,)
_CHECKS = "/checks"
_SCORECARDS = "/scorecards"
_EXEMPTIONS = "/exemptions"
_STARTER = "/starter-scorecard"
_CHANGED = (ConflictError, PreconditionFailedError)
# Results name entities, and say what is known of them.
_READ_RESULTS = (CATALOG_READ, CHECK_READ)
_RESULTS = "/check-results"
_RESULT = f"{_RESULTS}/{{id}}"
_CARDS = "/scorecard-results"
_CARD = f"{_CARDS}/{{id}}"
_OF_CARD = (
    SCORECARD_ID,
    check_parameters.LEVEL,
    check_parameters.OWNER,
    PAGE_LIMIT,
    check_parameters.ENTITY_CURSOR,
)
# A digest takes results out of the service, and outlives the token of whoever made it.
_MANAGE_DIGESTS = (CATALOG_READ, CHECK_READ, OPERATIONS_MANAGE)
_DIGESTS = "/digests"
_DIGEST = f"{_DIGESTS}/{{id}}"
_DIGEST_PARAMETERS = (webhooks.DIGEST_ID,)
# Below /api/tech-insights/v1.
DIGEST_ROUTES: Sequence[Route] = (
    Route("GET", _DIGESTS, webhooks.get_digests, _MANAGE_DIGESTS),
    Route(
        "POST",
        _DIGESTS,
        webhooks.post_digest,
        _MANAGE_DIGESTS,
        body=events.NewDigest,
        status=201,
        refusals=(ConflictError,),
        reading=NOTHING_STORED,
    ),
    Route("GET", _DIGEST, webhooks.get_digest, _MANAGE_DIGESTS, _DIGEST_PARAMETERS),
    Route(
        "PUT",
        _DIGEST,
        webhooks.put_digest,
        _MANAGE_DIGESTS,
        _DIGEST_PARAMETERS,
        body=events.ChangedDigest,
        reading=NOTHING_STORED,
    ),
    Route(
        "DELETE",
        _DIGEST,
        webhooks.delete_digest,
        _MANAGE_DIGESTS,
        _DIGEST_PARAMETERS,
        status=204,
        reading=NOTHING_STORED,
    ),
    Route(
        "POST",
        f"{_DIGEST}/test",
        webhooks.send_digest_test,
        _MANAGE_DIGESTS,
        _DIGEST_PARAMETERS,
        refusals=(ConflictError,),
        reading=NOTHING_STORED,
    ),
)


def _list_definition_routes(
    path: str,
    id_: DefinitionId,
    permission: str,
    body: type[Wire],
    handlers: tuple[Handler, ...],
) -> Sequence[Route]:
    """The interface of the definitions of a kind."""
    list_all, create, get, replace, delete, publish, list_versions = handlers
    one, write = f"{path}/{{id}}", (permission,)

    def writing(method: str, path: str, handler: Handler, *parameters: Parameter[Any]) -> Route:
        route = Route(method, path, handler, write, parameters, headers=(ETAG,))
        return route._replace(refusals=_CHANGED, reading=_READ_CHECKS, owned=True)

    return (
        Route("GET", path, list_all, _READ_CHECKS, (PAGE_LIMIT, ID_CURSOR, EXPAND)),
        writing("POST", path, create)._replace(body=body, status=201, refusals=(ConflictError,)),
        Route("GET", one, get, _READ_CHECKS, (id_, EXPAND), headers=(ETAG,)),
        writing("PUT", one, replace, id_, PUBLISH, IF_MATCH)._replace(body=body),
        writing("DELETE", one, delete, id_, IF_MATCH)._replace(status=204, headers=()),
        writing("POST", f"{one}/publish", publish, id_, IF_MATCH),
        Route("GET", f"{one}/versions", list_versions, _READ_CHECKS, (id_,)),
    )


# Below /api/tech-insights/v1.
RESULT_ROUTES: Sequence[Route] = (
    Route(
        "GET",
        _RESULTS,
        results.get_check_results,
        _READ_RESULTS,
        (
            *check_parameters.RESULT_FILTERS,
            check_parameters.ONE_ENTITY,
            PAGE_LIMIT,
            check_parameters.RESULT_CURSOR,
        ),
        refusals=(NotFoundError,),
    ),
    Route(
        "GET",
        f"{_RESULTS}.csv",
        results.export_check_results,
        _READ_RESULTS,
        check_parameters.RESULT_FILTERS,
        media=CSV,
    ),
    Route(
        "POST",
        f"{_RESULTS}/preview",
        results.post_entity_preview,
        # Messages tell facts, and who may read these may read checks.
        (CATALOG_READ, SOURCE_READ),
        body=result_schemas.NewEntityPreview,
        reading=_READ_CHECKS,
    ),
    Route("GET", _RESULT, results.get_check_overview, _READ_CHECKS, (CHECK_ID,)),
    Route("GET", f"{_RESULT}/{{ref:path}}", results.get_check_result, _READ_RESULTS, (CHECK_ID,)),
    Route(
        "GET",
        f"{_RESULT}/{{kind}}:{{namespace}}/{{name}}/history",
        results.get_check_result_history,
        _READ_RESULTS,
        (CHECK_ID, PAGE_LIMIT, check_parameters.HISTORY_CURSOR),
    ),
    Route("GET", _CARDS, results.get_all_scorecard_results, _READ_CHECKS),
    # Before the one whose id could end so.
    Route(
        "GET",
        f"{_CARD}.csv",
        results.export_scorecard_levels,
        _READ_RESULTS,
        (SCORECARD_ID, check_parameters.LEVEL, check_parameters.OWNER),
        media=CSV,
    ),
    Route("GET", _CARD, results.get_scorecard_results, _READ_RESULTS, _OF_CARD),
    # Another name of the same.
    Route(
        "GET",
        "/scorecards/entity-results/{id}",
        results.get_scorecard_results,
        _READ_RESULTS,
        _OF_CARD,
        described=False,
    ),
    Route(
        "GET",
        f"{_CARD}/rollup",
        results.get_scorecard_rollup,
        _READ_RESULTS,
        (SCORECARD_ID, check_parameters.BY, check_parameters.GROUP, check_parameters.DEPTH),
    ),
    Route(
        "GET",
        f"{_CARD}/trend",
        results.get_scorecard_trend,
        _READ_RESULTS,
        (SCORECARD_ID, check_parameters.GROUP, check_parameters.TREND_START, check_parameters.STEP),
    ),
    Route(
        "GET",
        f"{_CARD}/next-steps",
        results.get_next_steps,
        _READ_RESULTS,
        (SCORECARD_ID, ENTITY_WANTED),
    ),
    *(
        Route(
            "GET",
            f"/badges/{{id}}/{{kind}}:{{namespace}}/{{name}}.{ending}",
            handler,
            None,
            (SCORECARD_ID,),
            media=media,
            headers=(check_parameters.BADGE_TAG,),
        )
        for ending, handler, media in (
            ("svg", results.get_badge_image, results.SVG),
            ("json", results.get_shields_badge, "application/json"),
        )
    ),
)


# Below /api/tech-insights/v1.
CHECK_ROUTES: Sequence[Route] = (
    Route(
        "POST",
        f"{_CHECKS}/preview",
        results.post_check_preview,
        # Rules can ask for every fact of every entity.
        (CATALOG_READ, SOURCE_READ),
        body=result_schemas.NewPreview,
        refusals=(NotFoundError,),
        reading=_READ_CHECKS,
    ),
    *_list_definition_routes(
        _CHECKS,
        CHECK_ID,
        CHECK_WRITE,
        check_schemas.NewCheck,
        (
            definitions.get_checks,
            definitions.post_check,
            definitions.get_check,
            definitions.put_check,
            definitions.delete_check,
            definitions.publish_check,
            definitions.get_check_versions,
        ),
    ),
    *_list_definition_routes(
        _SCORECARDS,
        SCORECARD_ID,
        SCORECARD_WRITE,
        check_schemas.NewScorecard,
        (
            definitions.get_scorecards,
            definitions.post_scorecard,
            definitions.get_scorecard,
            definitions.put_scorecard,
            definitions.delete_scorecard,
            definitions.publish_scorecard,
            definitions.get_scorecard_versions,
        ),
    ),
    Route("GET", _STARTER, definitions.get_starter_scorecard, (SOURCE_READ,)),
    Route(
        "POST",
        _STARTER,
        definitions.adopt_starter_scorecard,
        # It is made for the data sources that there are.
        (CHECK_WRITE, SCORECARD_WRITE, SOURCE_READ),
        refusals=(ConflictError,),
        reading=(SOURCE_READ,),
    ),
    Route(
        "GET",
        _EXEMPTIONS,
        definitions.get_exemptions,
        _READ_CHECKS,
        (
            EXEMPTION_STATE,
            ONE_ENTITY,
            EXEMPTION_CHECK,
            EXEMPTION_SCORECARD,
            PAGE_LIMIT,
            EXEMPTION_CURSOR,
        ),
    ),
    Route(
        "POST",
        _EXEMPTIONS,
        definitions.post_exemption,
        _READ_CHECKS,
        body=check_schemas.NewExemption,
        status=201,
        refusals=(ConflictError, NotFoundError),
        reading=_READ_CHECKS,
        judged=True,
    ),
    Route("GET", f"{_EXEMPTIONS}/{{id}}", definitions.get_exemption, _READ_CHECKS, (EXEMPTION_ID,)),
    *(
        Route(
            "POST",
            f"{_EXEMPTIONS}/{{id}}/{decision}",
            handler,
            _READ_CHECKS,
            (EXEMPTION_ID,),
            body=check_schemas.NewDecision,
            needs_body=False,
            refusals=(ConflictError,),
            reading=_READ_CHECKS,
            # Groups that scorecards name decide without the permission.
            judged=True,
        )
        for decision, handler in (
            ("approve", definitions.approve_exemption),
            ("deny", definitions.deny_exemption),
            ("revoke", definitions.revoke_exemption),
        )
    ),
)
