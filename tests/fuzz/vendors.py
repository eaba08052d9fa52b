"""What vendors answer: from recorded good answers, changed here and there, to facts."""

import asyncio
import functools
from collections.abc import Callable, Mapping
from typing import Any

import httpx2
import msgspec
import stamina
from starlette.types import ASGIApp

from factbook.integrations import find_vendor
from factbook.integrations.integration import Collected
from factbook.outbound.network import Sender
from factbook.outbound.outcomes import HostReply, Missing
from tests.fuzz.edits import Edit, edited, edits
from tests.fuzz.promises import json, text
from tests.fuzz.target import Target
from tests.integrations.asking import Asking
from tests.integrations.datadog import asking as datadog
from tests.integrations.gitea import asking as gitea
from tests.integrations.github import asking as github
from tests.integrations.gitlab import asking as gitlab
from tests.integrations.pagerduty import asking as pagerduty
from tests.integrations.prometheus import asking as prometheus
from tests.integrations.snyk import asking as snyk
from tests.service import Time

_Key = tuple[str, str, bytes | None]


class Recorded(Sender):
    """A sender that asks a fake once, and then answers as it did, after the edits of a run."""

    def __init__(self, fake: ASGIApp) -> None:
        super().__init__(httpx2.ASGITransport(fake))
        self._replies: dict[_Key, HostReply] = {}
        self._calls = 0
        self._edits: list[Edit] = []

    def begin(self, wanted: list[Edit]) -> None:
        """Begin a run with these edits."""
        self._calls, self._edits = 0, wanted

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], content: bytes | None = None
    ) -> HostReply:
        """What the fake replies, after the edits of this call."""
        key = method, url, content
        if key not in self._replies:
            self._replies[key] = await super().send(method, url, headers, content)
        number, self._calls = self._calls, self._calls + 1
        reply = self._replies[key]
        wanted = [edit for edit in self._edits if edit.call == number]
        return edited(reply, wanted) if wanted else reply


class Recording:
    """One vendor's integration, its recorded answers, and what it is asked about."""

    def __init__(
        self, vendor_id: str, fake: ASGIApp, table: Mapping[str, Any], *targets: str
    ) -> None:
        self._vendor = find_vendor(vendor_id)
        self._table = dict(table)
        self._targets = targets
        self._fake = fake
        self._sender = Recorded(fake)
        self._asking = self._new()

    def check(self, data: bytes) -> None:
        """Answers that are not as agreed give reasons, and never raise."""
        self._check_target(json(data))
        self._sender.begin(edits(text(data)))
        with stamina.set_testing(True, attempts=2, cap=True):
            found = asyncio.run(self._run(self._new()))
        assert found.keys() == set(self._targets)
        for collected in found.values():
            self._check_collected(collected)

    async def _run(self, asking: Asking) -> dict[str, Collected]:
        """What one run brings, after which a file is read where that can be done."""
        found = await asking.collect(*self._targets)
        if read := asking.integration.read:
            answer = await read(self._targets[0], "catalog-info.yaml", asking.client, asking.memory)
            assert answer.ok or answer.detail
        return found

    def _new(self) -> Asking:
        """The integration as if nobody had asked before."""
        return Asking(self._vendor, self._fake, self._table, time=Time(), sender=self._sender)

    def _check_collected(self, collected: Collected) -> None:
        integration = self._asking.integration
        declared = {fact.name for fact in integration.source.schema}
        assert collected.values.keys() <= declared
        assert not collected.values.keys() & collected.missing.keys()
        assert msgspec.json.encode([collected.values, collected.reasons])
        checked = integration.source.check(collected.values)
        assert checked.stored.keys() | checked.reasons.keys() == collected.values.keys()
        for name in declared - collected.values.keys():
            assert any(_covers(place, name) for place in collected.missing), name

    def _check_target(self, entity: Any) -> None:
        """An entity of any form points to a target, which can be asked about, or to none."""
        if isinstance(entity, dict) and isinstance(entity.get("metadata", {}), dict):
            target = self._asking.integration.target(entity)
            assert isinstance(target, str | Missing)
            if isinstance(target, str):
                assert self._asking.integration.batches([target, target]) == [[target]]


def _covers(place: str, name: str) -> bool:
    return place in {"", name} or name.startswith(f"{place}.")


def _github() -> Recording:
    fake, _ = github.started(github.full())
    return Recording("github", fake, {"token": github.TOKEN}, github.APP, "acme/none")


def _gitlab() -> Recording:
    fake, _ = gitlab.started(gitlab.full())
    return Recording("gitlab", fake, {"token": gitlab.TOKEN}, gitlab.APP, "acme/none")


def _gitea() -> Recording:
    fake, _ = gitea.started(gitea.full())
    table = {"host": gitea.HOST, "token": gitea.TOKEN}
    return Recording("gitea", fake, table, gitea.APP, "acme/none")


def _snyk() -> Recording:
    fake, collector = snyk.started()
    table = {"token": snyk.KEY, "organizations": [snyk.ACME, snyk.OTHER]}
    target = collector.target(slug="acme/app")
    return Recording("snyk", fake, table, str(target))


def _pagerduty() -> Recording:
    fake, _ = pagerduty.started()
    table = {"api_key": pagerduty.KEY}
    return Recording("pagerduty", fake, table, pagerduty.APP, pagerduty.QUIET)


def _datadog() -> Recording:
    fake, _ = datadog.started()
    return Recording("datadog", fake, datadog.KEYS, datadog.APP)


def _prometheus() -> Recording:
    fake, _ = prometheus.started()
    return Recording("prometheus", fake, prometheus.TABLE, "checkout", "search")


def _target(name: str, make: Callable[[], Recording], *parsers: str) -> Target:
    made = functools.cache(make)
    return Target(name, lambda data: made().check(data), parsers, share=3, examples=12)


TARGETS = (
    _target(
        "github",
        _github,
        "integrations.github.api.decode_github_answer",
        "integrations.github.facts.read_repositories",
        "integrations.github.read_github_file",
    ),
    _target("gitlab", _gitlab, "integrations.gitlab.read_gitlab_file"),
    _target("gitea", _gitea, "integrations.gitea.read_gitea_file"),
    _target(
        "snyk",
        _snyk,
        "integrations.snyk.read_selector",
        "integrations.snyk.read_snyk_pages",
        "integrations.snyk.read_organization",
    ),
    _target("pagerduty", _pagerduty),
    _target("datadog", _datadog, "outbound.outcomes.read_as"),
    _target("prometheus", _prometheus, "integrations.prometheus.api.read_alert_routes"),
)
