"""The interface of results of checks as a table."""

from collections.abc import Sequence

from factbook.api.checks import check_results
from factbook.api.checks import result_parameters as parameters
from factbook.api.checks.parameters import PAGE_LIMIT
from factbook.api.endpoint import Route
from factbook.auth.permissions import CATALOG_READ, CHECK_READ
from factbook.errors import NotFoundError
from factbook.http.csv_lines import CSV

_READ = (CHECK_READ,)
# Results name entities, and say what is known of them.
_READ_RESULTS = (CATALOG_READ, CHECK_READ)
_RESULTS = "/check-results"
_ONE = f"{_RESULTS}/{{id}}"

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
    Route("GET", _ONE, check_results.overview, _READ, (parameters.CHECK,)),
    Route("GET", f"{_ONE}/{{ref:path}}", check_results.get, _READ_RESULTS, (parameters.CHECK,)),
    Route(
        "GET",
        f"{_ONE}/{{kind}}:{{namespace}}/{{name}}/history",
        check_results.history,
        _READ_RESULTS,
        (parameters.CHECK, PAGE_LIMIT, parameters.HISTORY_CURSOR),
    ),
)
