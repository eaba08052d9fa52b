"""The paths of the community's Backstage plugin as a table."""

from collections.abc import Sequence

from factbook.api.checks import community
from factbook.api.endpoint import Route
from factbook.auth.permissions import CATALOG_READ, CHECK_READ, SOURCE_READ

_READ = (CHECK_READ,)
# The results of this plugin show the facts that they rest on.
_READ_FACTS = (CATALOG_READ, SOURCE_READ)
_RUN = "/checks/run"

# Below /api/tech-insights. The interface above describes the same.
COMMUNITY_ROUTES: Sequence[Route] = tuple(
    Route(method, path, handler, permissions, None, described=False, reading=permissions)
    for method, path, handler, permissions in (
        ("GET", "/checks", community.list_checks, _READ),
        ("POST", _RUN, community.run_many, _READ_FACTS),
        ("POST", f"{_RUN}/{{namespace}}/{{kind}}/{{name}}", community.run_one, _READ_FACTS),
        ("GET", "/facts/latest", community.latest_facts, _READ_FACTS),
        ("GET", "/facts/range", community.past_facts, _READ_FACTS),
        ("GET", "/fact-schemas", community.fact_schemas, (SOURCE_READ,)),
    )
)
