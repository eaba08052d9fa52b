"""The calls of an integration's first run, counted by asking the fakes of the vendors."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from factbook.clock import DAY, HOUR, MINUTE
from tests.docs.tables import table
from tests.fakes.datadog import Monitor, Objective
from tests.fakes.fake import Fake
from tests.fakes.pagerduty import Incident
from tests.fakes.pagerduty import Service as PagerDutyService
from tests.fakes.prometheus import Episode
from tests.fakes.snyk import Organization, Project
from tests.integrations.asking import Asking
from tests.integrations.datadog import asking as datadog
from tests.integrations.gitea import asking as gitea
from tests.integrations.github import asking as github
from tests.integrations.gitlab import asking as gitlab
from tests.integrations.pagerduty import asking as pagerduty
from tests.integrations.prometheus import asking as prometheus
from tests.integrations.snyk import asking as snyk
from tests.service import NOON

_SIZES: Final = (1, 10, 50)
_NAMES: Final = [f"P{number:06d}" for number in range(_SIZES[-1])]
_SLUGS: Final = [f"acme/{name}" for name in _NAMES]

Begin = Callable[[], tuple[Fake, Asking]]


def _github() -> tuple[Fake, Asking]:
    return github.started(*(replace(github.full(), name=slug) for slug in _SLUGS))


def _gitlab() -> tuple[Fake, Asking]:
    numbered = enumerate(_SLUGS, 1)
    return gitlab.started(*(replace(gitlab.full(), name=slug, number=n) for n, slug in numbered))


def _gitea() -> tuple[Fake, Asking]:
    return gitea.started(*(replace(gitea.full(), name=slug) for slug in _SLUGS))


def _snyk() -> tuple[Fake, Asking]:
    projects = [Project(number, slug, (0, 1, 2, 3)) for number, slug in enumerate(_SLUGS)]
    return snyk.started(Organization(1, projects), organizations=[snyk.ACME])


def _pagerduty() -> tuple[Fake, Asking]:
    services = [PagerDutyService(name, "A service.", named=name) for name in _NAMES]
    incidents = [
        Incident(name, created, created + HOUR, created + MINUTE)
        for name in _NAMES
        for created in (NOON - DAY, NOON - 50 * DAY, NOON - 200 * DAY)
    ]
    return pagerduty.started(services, incidents)


def _datadog() -> tuple[Fake, Asking]:
    tags = [(f"service:{name.lower()}",) for name in _NAMES]
    return datadog.started(
        [Monitor(number, tag) for number, tag in enumerate(tags)],
        [Objective(f"o{number}", tag) for number, tag in enumerate(tags)],
    )


def _prometheus() -> tuple[Fake, Asking]:
    server = prometheus.full()
    server.up = dict.fromkeys(_NAMES, 99.9)
    server.episodes = [
        Episode(name, "Down", at, at + 600)
        for name in _NAMES
        for at in (prometheus.NOW - 2 * prometheus.DAY, prometheus.NOW - 60 * prometheus.DAY)
    ]
    return prometheus.started(server)


# A vendor's fake with so many of what entities point to, and the annotation that does.
VENDORS: Final[Mapping[str, tuple[Begin, str, Sequence[str]]]] = {
    "datadog": (_datadog, "datadoghq.com/service-name", _NAMES),
    "gitea": (_gitea, f"{gitea.HOST}/project-slug", _SLUGS),
    "github": (_github, "github.com/project-slug", _SLUGS),
    "gitlab": (_gitlab, "gitlab.com/project-slug", _SLUGS),
    "pagerduty": (_pagerduty, "pagerduty.com/service-id", _NAMES),
    "prometheus": (_prometheus, "prometheus.io/service", _NAMES),
    "snyk": (_snyk, "github.com/project-slug", _SLUGS),
}


def calls(vendor: str) -> str:
    """How many calls the first run makes about so many entities."""
    rows = [(str(size), f"{asyncio.run(_count(vendor, size)):,}") for size in _SIZES]
    return table(("Entities", "Calls"), rows)


async def _count(vendor: str, size: int) -> int:
    begin, annotation, values = VENDORS[vendor]
    fake, asking = begin()
    targets = [_target(asking, annotation, value) for value in values[:size]]
    brought = await asking.collect(*targets)
    assert all(collected.values for collected in brought.values()), vendor
    return fake.requests.total()


def _target(asking: Asking, annotation: str, value: str) -> str:
    entity: dict[str, Any] = {"kind": "Component", "metadata": {"annotations": {annotation: value}}}
    found = asking.integration.target(entity)
    assert isinstance(found, str), found
    return found
