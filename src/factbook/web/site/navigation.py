"""Sections of the service in the navigation."""

from collections.abc import Callable
from typing import NamedTuple

from factbook.auth.permissions import (
    AUDIT_READ,
    CATALOG_READ,
    CHECK_READ,
    EVENTS_READ,
    OPERATIONS_MANAGE,
    SOURCE_WRITE,
    TOKEN_MANAGE,
)


class Section(NamedTuple):
    """A place in the navigation; `current` while one of its pages is shown."""

    title: str
    path: str
    icon: str
    current: bool


class SectionGroup(NamedTuple):
    """A group of sections, with a title or without."""

    title: str | None
    sections: list[Section]


_MAIN = (
    ("Overview", "/", "overview"),
    ("Catalog", "/catalog", "catalog"),
    ("Sets", "/sets", "sets"),
    ("Scorecards", "/scorecards", "scorecards"),
    ("Checks", "/checks", "checks"),
    ("Exemptions", "/exemptions", "exemptions"),
    ("Data sources", "/data-sources", "sources"),
    ("Connect an agent", "/connect", "connect"),
)
# With the permission that each needs; none: whoever is signed in.
_ADMINISTRATION = (
    ("Account", "/administration/account", "account", ()),
    ("People", "/administration/people", "people", (TOKEN_MANAGE,)),
    ("Connections", "/administration/connections", "connections", (SOURCE_WRITE,)),
    ("Webhooks", "/administration/webhooks", "webhooks", (EVENTS_READ, OPERATIONS_MANAGE)),
    (
        "Digests",
        "/administration/digests",
        "digests",
        (CATALOG_READ, CHECK_READ, OPERATIONS_MANAGE),
    ),
    ("Audit", "/administration/audit", "audit", (AUDIT_READ,)),
    ("Status", "/status", "status", (OPERATIONS_MANAGE,)),
)


# Which part of the documentation is about the pages below a path; the first that fits counts.
_HELP = (
    ("/catalog/", "/help/pages#an-entity"),
    ("/catalog", "/help/pages#catalog"),
    ("/sets", "/help/how-to/push"),
    ("/imports", "/help/how-to/import"),
    ("/importers", "/help/how-to/import"),
    ("/scorecards", "/help/how-to/scorecards"),
    ("/checks/", "/help/reference/checks"),
    ("/checks", "/help/pages#checks"),
    ("/exemptions", "/help/how-to/scorecards#exempt-an-entity"),
    ("/data-sources/new", "/help/how-to/define-sources"),
    ("/data-sources", "/help/pages#data-sources"),
    ("/connect/tools", "/help/reference/tools"),
    ("/connect", "/help/how-to/connect"),
    ("/administration/account/api-access", "/help/pages#api-access"),
    ("/administration/account", "/help/how-to/people#local-accounts"),
    ("/administration/people", "/help/how-to/people"),
    ("/administration/connections", "/help/how-to/define-sources#make-a-connection"),
    ("/administration/webhooks", "/help/how-to/events#webhooks"),
    ("/administration/digests", "/help/how-to/scorecards#tell-teams-what-changed"),
    ("/administration/audit", "/help/how-to/people#the-audit"),
    ("/status", "/help/pages#status"),
    ("/oauth", "/help/how-to/sign-in-agents"),
    ("/help", "/help"),
    ("/", "/help/pages"),
)


def help_with(path: str) -> str:
    """Address of the documentation of the page at `path`."""
    return next(address for below, address in _HELP if path.startswith(below))


def groups(path: str, may: Callable[..., bool]) -> list[SectionGroup]:
    """Navigation for a person with these permissions, on the page at `path`."""
    main = [Section(*one, current=_is_current(path, one[1])) for one in _MAIN]
    administration = [
        Section(title, where, icon, current=_is_current(path, where))
        for title, where, icon, needs in _ADMINISTRATION
        if may(*needs)
    ]
    return [SectionGroup(None, main), SectionGroup("Administration", administration)]


def _is_current(path: str, section: str) -> bool:
    return path == section or (section != "/" and path.startswith(f"{section}/"))
