"""Every page of the product by name, on the catalog that `bench.page_content` fills."""

from urllib.parse import quote, urlencode

from bench import catalog, facts_across, scored
from bench.page_content import DIVISION, DOMAIN, SOURCE

_FACT = f"{facts_across.SOURCE}/score"
_CATALOG: dict[str, dict[str, str]] = {
    "catalog": {},
    "catalog-all": {"kind": ""},
    "catalog-kind": {"kind": "component"},
    "catalog-search": {"q": "billing"},
    "catalog-search-rare": {"q": "billing-api-000000"},
    "catalog-tag": {"tag": "java"},
    "catalog-type": {"type": "service"},
    "catalog-all-filters": {
        "kind": "component",
        "namespace": "default",
        "tag": "java",
        "q": "worker",
    },
    "catalog-owner": {"owner": "team-01"},
    "catalog-part-of-owner": {"owner": "team-1"},
    "catalog-system": {"system": "system-001"},
    "catalog-part-of-system": {"system": "system-0"},
    "catalog-set": {"set": "organisation"},
    "catalog-mine": {"ownership": "mine"},
    "catalog-lifecycle": {"kind": "component", "lifecycle": "production"},
    "catalog-without-owner": {"ownership": "none"},
    "catalog-owner-missing": {"ownership": "missing"},
    "catalog-level": {"level": f"{scored.CARD}/silver"},
    "catalog-no-level": {"level": f"{scored.CARD}/none"},
    "catalog-columns": {"kind": "component", "column": _FACT},
}
_ORDERS = ("kind", "updated")
# Filters that many entities meet, in each order.
_ORDERED = ("catalog-all", "catalog-kind", "catalog-search", "catalog-tag", "catalog-lifecycle")


def paths() -> dict[str, str]:
    """Paths by name of what does not depend on the run."""
    key = catalog.key(next(catalog.entities(1)))
    entity = f"/catalog/{key.kind}/default/{key.name}"
    return {
        "overview": "/",
        **_lists(),
        "search": "/search?q=billing",
        "search-letter": "/search?q=b",
        "search-check": "/search?q=check",
        **_entities(entity),
        **_sets(f"/sets/{quote(f'bench-{key.name}')}"),
        **_sources(),
        **scored.paths(f"{key.kind}:default/{key.name}".lower()),
        **_others(f"/connect/tools/get-entity-facts?{urlencode({'name': key.name})}"),
    }


def _lists() -> dict[str, str]:
    found = dict(_CATALOG)
    for name in _ORDERED:
        for order in _ORDERS:
            found[f"{name}-by-{order}"] = _CATALOG[name] | {"order": order}
    return {name: f"/catalog?{urlencode(of)}".rstrip("?") for name, of in found.items()}


def _entities(entity: str) -> dict[str, str]:
    group, system = "/catalog/group/default", f"/catalog/system/default/{catalog.system(0)}"
    team, domain = f"{group}/{catalog.team(0)}", f"/catalog/domain/default/{DOMAIN}"
    return {
        "entity": entity,
        "entity-history": f"{entity}/history",
        "entity-relations": f"{entity}/relations",
        "entity-raw": f"{entity}/raw",
        "entity-source": f"{entity}/facts/{facts_across.SOURCE}",
        "fact": f"{entity}/facts/{SOURCE}/milliseconds",
        "fact-of-many": f"{entity}/facts/{_FACT}",
        "team": team,
        "team-contents": f"{team}/contents",
        "division": f"{group}/{DIVISION}",
        "division-contents": f"{group}/{DIVISION}/contents",
        "system": system,
        "system-contents": f"{system}/contents",
        "domain": domain,
        "domain-contents": f"{domain}/contents",
    }


def _sets(large: str) -> dict[str, str]:
    return {
        "sets": "/sets",
        "set": large,
        "set-push": f"{large}/push",
        "revisions": f"{large}/revisions",
        "revision": f"{large}/revisions/1",
        "imports": "/imports",
        "importer": "/imports/github-acme",
        "importer-new": "/importers/new",
        "importer-editor": "/importers/github-acme/edit",
    }


def _sources() -> dict[str, str]:
    across = f"/data-sources/{facts_across.SOURCE}"
    return {
        "data-sources": "/data-sources",
        "data-source": f"/data-sources/{SOURCE}",
        "data-source-of-many": across,
        "data-source-failures": f"{across}/failures",
        "data-source-runs": f"{across}/runs",
        "data-source-editor": f"{across}/edit",
        "data-source-new": "/data-sources/new",
        "fact-across": f"{across}/facts/score?sort=value",
        "fact-across-owner": f"{across}/facts/protected?by=owner",
        "fact-across-rare": f"/data-sources/{SOURCE}/facts/milliseconds",
    }


def _others(playground: str) -> dict[str, str]:
    return {
        "connect": "/connect",
        "playground": playground,
        "account": "/administration/account",
        "api-access": "/administration/account/api-access",
        "people": "/administration/people",
        "connections": "/administration/connections",
        "connection-new": "/administration/connections/new",
        "connection-editor": "/administration/connections/ci/edit",
        "webhooks": "/administration/webhooks",
        "digests": "/administration/digests",
        "audit": "/administration/audit",
        "status": "/status",
        "help": "/help",
        "help-page": "/help/pages",
    }
