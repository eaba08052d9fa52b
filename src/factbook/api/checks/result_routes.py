"""The interface of results of checks as a table."""

from collections.abc import Sequence

from factbook.api.checks import badges, check_results, entity_previews, scorecard_results
from factbook.api.checks import result_parameters as parameters
from factbook.api.checks.parameters import CHECK_ID, PAGE_LIMIT, SCORECARD_ID
from factbook.api.endpoint import Route
from factbook.api.openapi.parameters import ENTITY_WANTED
from factbook.auth.permissions import CATALOG_READ, CHECK_READ, SOURCE_READ
from factbook.errors import NotFoundError
from factbook.http.csv_lines import CSV
from factbook.schemas import results as result_schemas

_READ = (CHECK_READ,)
# Results name entities, and say what is known of them.
_READ_RESULTS = (CATALOG_READ, CHECK_READ)
_RESULTS = "/check-results"
_ONE = f"{_RESULTS}/{{id}}"
_CARDS = "/scorecard-results"
_CARD = f"{_CARDS}/{{id}}"
_OF_CARD = (
    SCORECARD_ID,
    parameters.LEVEL,
    parameters.OWNER,
    PAGE_LIMIT,
    parameters.ENTITY_CURSOR,
)

# Below /api/tech-insights/v1.
RESULT_ROUTES: Sequence[Route] = (
    Route(
        "GET",
        _RESULTS,
        check_results.list_all,
        _READ_RESULTS,
        (*parameters.FILTERS, parameters.ENTITY, PAGE_LIMIT, parameters.CURSOR),
        refusals=(NotFoundError,),
    ),
    Route(
        "GET",
        f"{_RESULTS}.csv",
        check_results.export,
        _READ_RESULTS,
        parameters.FILTERS,
        media=CSV,
    ),
    Route(
        "POST",
        f"{_RESULTS}/preview",
        entity_previews.create,
        # Messages tell facts, and who may read these may read checks.
        (CATALOG_READ, SOURCE_READ),
        body=result_schemas.NewEntityPreview,
        reading=_READ,
    ),
    Route("GET", _ONE, check_results.overview, _READ, (CHECK_ID,)),
    Route("GET", f"{_ONE}/{{ref:path}}", check_results.get, _READ_RESULTS, (CHECK_ID,)),
    Route(
        "GET",
        f"{_ONE}/{{kind}}:{{namespace}}/{{name}}/history",
        check_results.history,
        _READ_RESULTS,
        (CHECK_ID, PAGE_LIMIT, parameters.HISTORY_CURSOR),
    ),
    Route("GET", _CARDS, scorecard_results.list_all, _READ),
    # Before the one whose id could end so.
    Route(
        "GET",
        f"{_CARD}.csv",
        scorecard_results.export,
        _READ_RESULTS,
        (SCORECARD_ID, parameters.LEVEL, parameters.OWNER),
        media=CSV,
    ),
    Route("GET", _CARD, scorecard_results.get, _READ_RESULTS, _OF_CARD),
    # Another name of the same.
    Route(
        "GET",
        "/scorecards/entity-results/{id}",
        scorecard_results.get,
        _READ_RESULTS,
        _OF_CARD,
        described=False,
    ),
    Route(
        "GET",
        f"{_CARD}/rollup",
        scorecard_results.roll_up,
        _READ_RESULTS,
        (SCORECARD_ID, parameters.BY, parameters.GROUP, parameters.DEPTH),
    ),
    Route(
        "GET",
        f"{_CARD}/trend",
        scorecard_results.follow,
        _READ_RESULTS,
        (SCORECARD_ID, parameters.GROUP, parameters.TREND_START, parameters.STEP),
    ),
    Route(
        "GET",
        f"{_CARD}/next-steps",
        scorecard_results.plan,
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
            headers=(parameters.BADGE_TAG,),
        )
        for ending, handler, media in (
            ("svg", badges.image, badges.SVG),
            ("json", badges.shields, "application/json"),
        )
    ),
)
