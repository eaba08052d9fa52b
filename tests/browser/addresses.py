"""What stands at each path of the table of pages, in the service that the browser looks at."""

from typing import Final
from urllib.parse import urlencode

from tests.browser.shop import ADMINISTRATOR, VIEWER

_ACCOUNT: Final = "/administration/account"
_CONNECTIONS: Final = "/administration/connections"
_WEBHOOKS: Final = "/administration/webhooks"
_DIGESTS: Final = "/administration/digests"
_ENTITY: Final = "/catalog/{kind}/{namespace}/{name}"
_CHECKOUT: Final = "/catalog/component/default/checkout"

# What a client of the settings asks a person for; WISH's hash is no secret's.
CLIENT: Final = "desk"
CALLBACK: Final = "http://127.0.0.1/callback"
WISH: Final = urlencode(
    {
        "response_type": "code",
        "client_id": CLIENT,
        "redirect_uri": CALLBACK,
        "scope": "catalog.entity.read tech-insights.data-source.read tech-insights.check.write",
        "code_challenge": "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
        "code_challenge_method": "S256",
    }
)

# RUN is in the place of the number of a run, WEBHOOK and DIGEST of ids.
EXAMPLES: Final[dict[str, tuple[str, ...]]] = {
    "/": ("/", "/?kind=api"),
    "/search": ("/search", "/search?q=c", "/search?q=nothing+like+it"),
    "/catalog": (
        "/catalog",
        "/catalog?q=checkout&owner=%5B",
        "/catalog?q=nothing+like+it",
        "/catalog?kind=component&namespace=default&column=coverage/lines&column=scorecard:readiness",
        "/catalog?ownership=missing&order=updated",
        "/catalog?dangling=any",
    ),
    _ENTITY: (
        _CHECKOUT,
        "/catalog/group/default/team-checkout",
        "/catalog/resource/default/master%20account",
        "/catalog/component/default/nobody",
    ),
    f"{_ENTITY}/relations": (f"{_CHECKOUT}/relations",),
    f"{_ENTITY}/history": (f"{_CHECKOUT}/history", "/catalog/group/default/team-checkout/history"),
    f"{_ENTITY}/contents": ("/catalog/group/default/team-checkout/contents",),
    f"{_ENTITY}/raw": (f"{_CHECKOUT}/raw",),
    f"{_ENTITY}/facts/{{source}}": (f"{_CHECKOUT}/facts/coverage", f"{_CHECKOUT}/facts/builds"),
    f"{_ENTITY}/facts/{{source}}/{{fact:path}}": (
        f"{_CHECKOUT}/facts/coverage/lines",
        f"{_CHECKOUT}/facts/runbooks/hasRunbook?span=week",
        f"{_CHECKOUT}/facts/builds/seconds?span=all",
    ),
    "/sets": ("/sets",),
    "/sets/{set_id}": ("/sets/examples", "/sets/none"),
    "/sets/{set_id}/revisions": ("/sets/examples/revisions",),
    "/sets/{set_id}/revisions/{number}": (
        "/sets/examples/revisions/1",
        "/sets/examples/revisions/2",
    ),
    "/sets/{set_id}/push": ("/sets/examples/push",),
    "/imports": ("/imports",),
    "/imports/{importer}": ("/imports/ldif", "/imports/none"),
    "/imports/{importer}/{part}": ("/imports/ldif/people", "/imports/fake/none"),
    "/importers/new": ("/importers/new", "/importers/new?kind=github"),
    "/importers/{importer}/edit": ("/importers/none/edit",),
    "/scorecards": ("/scorecards", "/scorecards?after=z"),
    "/scorecards/{id}": (
        "/scorecards/readiness",
        "/scorecards/readiness?team=group:team-checkout",
        "/scorecards/draft",
    ),
    "/scorecards/{id}/entities": (
        "/scorecards/readiness/entities",
        "/scorecards/readiness/entities?level=none&state=unknown",
        "/scorecards/readiness/entities?owner=-",
    ),
    "/scorecards/{id}/teams": ("/scorecards/readiness/teams",),
    "/checks": ("/checks", "/checks?q=nothing"),
    "/checks/{id}": (
        "/checks/has-runbook",
        "/checks/has-runbook?entity=component:checkout",
        "/checks/covered?state=unknown",
        "/checks/built?state=exempt",
        "/checks/draft",
    ),
    "/scorecards/-/new": ("/scorecards/-/new",),
    "/scorecards/{id}/edit": ("/scorecards/readiness/edit", "/scorecards/draft/edit"),
    "/checks/-/new": ("/checks/-/new",),
    "/checks/{id}/edit": ("/checks/has-runbook/edit",),
    "/exemptions": ("/exemptions", "/exemptions?state=approved", "/exemptions?state=revoked"),
    "/exemptions/-/new": ("/exemptions/-/new?check=has-runbook&entity=component:checkout",),
    "/data-sources": ("/data-sources", "/data-sources?show=problems", "/data-sources?q=nothing"),
    "/data-sources/new": ("/data-sources/new", "/data-sources/new?type=http&id=another"),
    "/data-sources/{id}": (
        "/data-sources/builds",
        "/data-sources/coverage",
        "/data-sources/draft",
        "/data-sources/techdocs",
    ),
    "/data-sources/{id}/edit": ("/data-sources/builds/edit",),
    "/data-sources/{id}/failures": ("/data-sources/builds/failures",),
    "/data-sources/{id}/facts/{fact:path}": (
        "/data-sources/coverage/facts/lines",
        "/data-sources/coverage/facts/lines?known=false&sort=-value&by=kind",
        "/data-sources/entity-ownership/facts/hasOwner?kind=component",
        "/data-sources/builds/facts/seconds?by=system",
    ),
    "/data-sources/{id}/runs": ("/data-sources/builds/runs", "/data-sources/draft/runs"),
    "/data-sources/{id}/runs/{run}": ("/data-sources/builds/runs/RUN",),
    "/connect": ("/connect", "/connect?client=codex"),
    "/connect/check": ("/connect/check",),
    "/connect/tools": ("/connect/tools",),
    "/connect/tools/{name}": (
        "/connect/tools/get-entity-facts",
        "/connect/tools/get-entity-compliance?run=1&name=checkout",
        "/connect/tools/get-codehost-metrics?run=1&name=nobody",
    ),
    _ACCOUNT: (_ACCOUNT,),
    f"{_ACCOUNT}/api-access": (f"{_ACCOUNT}/api-access", f"{_ACCOUNT}/api-access?all=1"),
    "/administration/people": ("/administration/people",),
    "/administration/people/{name}": (
        f"/administration/people/{VIEWER}",
        f"/administration/people/{ADMINISTRATOR}",
    ),
    _CONNECTIONS: (_CONNECTIONS,),
    f"{_CONNECTIONS}/new": (f"{_CONNECTIONS}/new",),
    f"{_CONNECTIONS}/{{name}}/edit": (f"{_CONNECTIONS}/ci/edit",),
    _WEBHOOKS: (_WEBHOOKS,),
    f"{_WEBHOOKS}/{{id}}": (f"{_WEBHOOKS}/WEBHOOK",),
    _DIGESTS: (_DIGESTS,),
    f"{_DIGESTS}/{{id}}": (f"{_DIGESTS}/DIGEST",),
    "/oauth/authorize": (f"/oauth/authorize?{WISH}", "/oauth/authorize?client_id=nobody"),
    "/help": ("/help",),
    "/help/{page:path}": ("/help/pages", "/help/reference/tools", "/help/nothing"),
    "/status": ("/status",),
    "/administration/audit": ("/administration/audit", "/administration/audit?action=set.replace"),
}
NOWHERE: Final = "/nowhere"
# What is shown to people who are not signed in.
OUTSIDE: Final = {"/sign-in": ("/sign-in",), "/welcome/{secret}": ("/welcome/used",)}
# Files, a stream of events, and what leads to a provider of identities and back.
NO_PAGES: Final = frozenset(
    {
        "/static/{name}",
        "/live",
        "/sign-in/openid",
        "/sign-in/openid/callback",
        f"{_ENTITY}/raw.json",
        f"{_ENTITY}/raw.yaml",
        "/administration/audit/export",
        "/catalog/export",
        "/data-sources/{id}/values/{fact:path}",
        "/scorecards/{id}/export",
        "/checks/{id}/export",
    }
)
