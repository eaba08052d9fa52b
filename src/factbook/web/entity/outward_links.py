"""Links from an entity to where people work on it: its source code, documentation and more.

They come from annotations that other tools know, and from its own links.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from factbook.catalog import url
from factbook.web.site import formats

_MOST: Final = 8
_LINKS: Final = 200  # of an entity that are looked at

SOURCE: Final = "Source code"
DOCUMENTATION: Final = "Documentation"
RUNBOOK: Final = "Runbook"
ON_CALL: Final = "On-call"
DASHBOARD: Final = "Dashboard"
_ORDER: Final = (SOURCE, DOCUMENTATION, RUNBOOK, ON_CALL, DASHBOARD)

_SLUG: Final = re.compile(r"(?!\.+/)[\w.-]+(/(?!\.+(/|\Z))[\w.-]+){1,20}", re.ASCII)
_NAME: Final = re.compile(r"[\w.-]{1,100}", re.ASCII)
_HOST: Final = re.compile(r"[a-z0-9-]+(\.[a-z0-9-]+)+")
_PROJECT_SLUG: Final = "/project-slug"

# What annotations below a domain lead to, where their value is an address.
_VENDORS: Final[Mapping[str, str]] = {
    "pagerduty.com": ON_CALL,
    "opsgenie.com": ON_CALL,
    "splunk.com": ON_CALL,
    "rootly.com": ON_CALL,
    "firehydrant.com": ON_CALL,
    "grafana": DASHBOARD,
    "grafana.com": DASHBOARD,
    "datadoghq.com": DASHBOARD,
    "newrelic.com": DASHBOARD,
    "dynatrace.com": DASHBOARD,
    "sentry.io": DASHBOARD,
}
# What a link leads to, by a word of its type, its icon or its title.
_WORDS: Final[Mapping[str, str]] = {
    "source": SOURCE,
    "repo": SOURCE,
    "repository": SOURCE,
    "github": SOURCE,
    "gitlab": SOURCE,
    "bitbucket": SOURCE,
    "docs": DOCUMENTATION,
    "documentation": DOCUMENTATION,
    "techdocs": DOCUMENTATION,
    "wiki": DOCUMENTATION,
    "runbook": RUNBOOK,
    "runbooks": RUNBOOK,
    "playbook": RUNBOOK,
    "oncall": ON_CALL,
    "pager": ON_CALL,
    "pagerduty": ON_CALL,
    "opsgenie": ON_CALL,
    "dashboard": DASHBOARD,
    "dashboards": DASHBOARD,
    "grafana": DASHBOARD,
    "datadog": DASHBOARD,
    "kibana": DASHBOARD,
    "monitoring": DASHBOARD,
}


class OutwardLink(NamedTuple):
    """A link to what `purpose` says."""

    purpose: str
    title: str
    href: str

    @property
    def host(self) -> str:
        """The host that a browser opens."""
        return url.host(self.href)


def outward_links(entity: Mapping[str, Any]) -> list[OutwardLink]:
    """The links of an entity in the order of their purposes, each address once."""
    metadata: Mapping[str, Any] = entity["metadata"]
    found: dict[str, OutwardLink] = {}
    annotations = metadata.get("annotations") or {}
    for link in (*_of_annotations(annotations), *_of_links(metadata.get("links") or ())):
        address = link.href.rstrip("/")
        found.setdefault(address, link)
    ordered = sorted(found.values(), key=lambda link: _ORDER.index(link.purpose))
    return ordered[:_MOST]


def _of_annotations(annotations: Mapping[str, str]) -> Iterator[OutwardLink]:
    """The links of well-known annotations; one repository is enough."""
    located = _address(annotations.get("backstage.io/source-location"))
    slugs = (_repository(name, text) for name, text in annotations.items())
    source = located or next((address for address in slugs if address), None)
    if source:
        yield OutwardLink(SOURCE, SOURCE, source)
    if documented := _address(annotations.get("backstage.io/techdocs-ref")):
        yield OutwardLink(DOCUMENTATION, DOCUMENTATION, documented)
    for name, text in annotations.items():
        purpose = _VENDORS.get(name.partition("/")[0])
        if purpose and (address := _address(text)):
            yield OutwardLink(purpose, purpose, address)
    if address := _pagerduty(annotations):
        yield OutwardLink(ON_CALL, ON_CALL, address)
    if address := _datadog(annotations):
        yield OutwardLink(DASHBOARD, "Datadog", address)


def _of_links(links: Any) -> Iterator[OutwardLink]:
    for link in list(links)[:_LINKS]:
        address = formats.external(link["url"])
        purpose = _purpose(link)
        if address and purpose:
            yield OutwardLink(purpose, link.get("title") or purpose, address)


def _purpose(link: Mapping[str, Any]) -> str | None:
    """The purpose of a link; None if nothing says it."""
    for name in ("type", "icon", "title"):
        text = str(link.get(name) or "")[:200].lower()
        words = re.findall(r"[a-z]+", re.sub(r"on[- ]call", "oncall", text))
        if found := next((_WORDS[word] for word in words if word in _WORDS), None):
            return found
    return None


def _address(text: object) -> str | None:
    """An address of the web, also one with `url:` before it."""
    return formats.external(text.removeprefix("url:")) if isinstance(text, str) else None


def _repository(name: str, text: str) -> str | None:
    """The address of the repository that `HOST/project-slug` names."""
    host = name.removesuffix(_PROJECT_SLUG)
    if host == name or not _HOST.fullmatch(host):
        return None
    if address := _address(text):
        return address
    return f"https://{host}/{text}" if _SLUG.fullmatch(text) else None


def _pagerduty(annotations: Mapping[str, str]) -> str | None:
    service = annotations.get("pagerduty.com/service-id", "")
    account = annotations.get("pagerduty.com/account", "")
    if not (_NAME.fullmatch(service) and _NAME.fullmatch(account)):
        return None
    return f"https://{account}.pagerduty.com/service-directory/{service}"


def _datadog(annotations: Mapping[str, str]) -> str | None:
    service = annotations.get("datadoghq.com/service-name", "")
    site = annotations.get("datadoghq.com/site") or "datadoghq.com"
    if not service or not _HOST.fullmatch(site):
        return None
    host = site if site.count(".") > 1 else f"app.{site}"
    return formats.external(f"https://{host}/apm/services/{quote(service, safe='')}")
