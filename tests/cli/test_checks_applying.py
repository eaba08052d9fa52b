"""What `factbook checks plan`, `apply` and `export` do with a running service."""

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml
from typer.testing import CliRunner

from factbook.cli.commands import app
from tests.api.checking import evaluated
from tests.cli.bridge import Bridge, Run, write
from tests.service import PUSH, Service, component

API = "/api/tech-insights/v1"
TITLE = {"source": "entity-metadata", "fact": "hasTitle", "operator": "equal", "value": True}
OTHER = {"source": "checks", "fact": "titled", "operator": "equal", "value": "pass"}


def check(id_: str = "titled", **members: Any) -> dict[str, Any]:
    return {"check": id_, "title": "Titled", "rule": TITLE, **members}


def scorecard(**members: Any) -> dict[str, Any]:
    return {"scorecard": "ready", "title": "Ready", "entries": [{"check": "titled"}], **members}


def exported(file: str) -> Any:
    return yaml.safe_load(Path(file).read_text())


async def shown(service: Service, kind: str = "checks") -> dict[str, Any]:
    """The documents of a kind by id, as the service shows them."""
    answer = await service.http.get(f"{API}/{kind}")
    assert answer.status_code == 200, answer.text
    return {one["id"]: one for one in answer.json()[kind]}


async def test_files_are_planned_applied_and_then_there_is_nothing_to_do(
    served: Run, service: Service
) -> None:
    entity = {"kind": "Component", "metadata": {"name": "a"}, "spec": {"type": "service"}}
    body = {"items": [{"apiVersion": "backstage.io/v1alpha1", **entity}]}
    pushed = await service.http.put(f"{PUSH}/sets/s", json=body)
    assert pushed.status_code == 200, pushed.text
    # The check that reads the other stands first.
    write("all.yaml", check("zero", rule=OTHER), check(), scorecard())

    planned = await served("checks", "plan", "all.yaml")
    assert (planned.exit_code, planned.stdout.splitlines()) == (
        5,
        [
            "check titled: is new, all.yaml document 2 (line 9)",
            "  1 result would change",
            "check zero: is new, all.yaml document 1 (line 1)",
            "scorecard ready: is new, all.yaml document 3 (line 17)",
            "3 to create",
        ],
    )
    assert await shown(service) == {}

    applied = await served("checks", "apply", "all.yaml", "--yes")
    assert applied.exit_code == 0, applied.stderr
    assert applied.stdout.splitlines()[-3:] == [
        "check titled: published, version 1.0.0, which is being evaluated",
        "check zero: published, version 1.0.0, which is being evaluated",
        "scorecard ready: published, version 1.0.0, which is being evaluated",
    ]
    again = await served("checks", "plan", "all.yaml")
    assert (again.exit_code, again.stdout) == (0, "Nothing to do.\n")


async def test_a_changed_file_is_compared_member_by_member(served: Run, service: Service) -> None:
    await served("checks", "apply", write("a.yaml", check()), "--yes")
    write("a.yaml", check(title="Has a title", severity="advisory"))

    planned = await served("checks", "plan", "a.yaml", "--json")

    [step] = json.loads(planned.stdout)
    assert (step["kind"], step["id"], step["action"]) == ("check", "titled", "change")
    assert {one["path"]: one["after"] for one in step["differences"]} == {
        "title": '"Has a title"',
        "severity": '"advisory"',
    }
    assert step["changedResults"] == 0


async def test_drafts_are_left_as_drafts_and_published_by_a_later_apply(
    served: Run, service: Service
) -> None:
    write("a.yaml", check())

    drafted = await served("checks", "apply", "a.yaml", "--yes", "--draft")
    assert drafted.stdout.splitlines()[-1] == "check titled: written as a draft"
    assert (await shown(service))["titled"]["draft"] is True
    assert (await served("checks", "plan", "a.yaml", "--draft")).exit_code == 0

    planned = await served("checks", "plan", "a.yaml")
    assert planned.stdout.splitlines()[0].startswith("check titled: is a draft, to be published")
    await served("checks", "apply", "a.yaml", "--yes")
    assert (await shown(service))["titled"]["draft"] is False


async def test_what_is_in_no_file_stays_unless_it_is_pruned(served: Run, service: Service) -> None:
    await served("checks", "apply", write("a.yaml", check(), check("b"), scorecard()), "--yes")
    write("a.yaml", check("b"))
    assert (await served("checks", "plan", "a.yaml")).exit_code == 0

    pruned = await served("checks", "apply", "a.yaml", "--yes", "--prune")

    assert pruned.stdout.splitlines()[-2:] == [
        "scorecard ready: deleted",
        "check titled: deleted",
    ]
    assert list(await shown(service)) == ["b"]


async def test_a_refused_check_keeps_no_other_from_being_written(
    served: Run, service: Service
) -> None:
    wrong = check("wrong", rule={**TITLE, "fact": "hasTitel"})
    write("a.yaml", wrong, check())

    answer = await served("checks", "apply", "a.yaml", "--yes")

    assert answer.exit_code == 1
    assert "check wrong: rule.fact: names no fact of entity-metadata" in answer.stderr
    assert list(await shown(service)) == ["titled"]


async def test_nothing_is_written_without_a_yes(served: Run, service: Service) -> None:
    write("a.yaml", check())

    answer = await served("checks", "apply", "a.yaml", input="n\n")

    assert (answer.exit_code, "--yes writes without asking" in answer.stderr) == (1, True)
    assert await shown(service) == {}


async def test_an_export_is_what_a_plan_finds_equal(served: Run, service: Service) -> None:
    tests = [{"facts": {"entity-metadata": {"hasTitle": True}}, "expect": "pass"}]
    one = check(owner="group:default/a", appliesTo={"kind": "component"}, tests=tests)
    await served("checks", "apply", write("a.yaml", one, scorecard()), "--yes")

    answer = await served("checks", "export", "--to", "out")

    assert answer.stdout.splitlines() == ["out/checks/titled.yaml", "out/scorecards/ready.yaml"]
    assert exported("out/checks/titled.yaml") == one
    assert (await served("checks", "plan", "out")).exit_code == 0
    again = await served("checks", "export", "--to", "out")
    assert (again.exit_code, "exists already" in again.stderr) == (2, True)


async def push(service: Service, **metadata: str) -> None:
    """Put an entity with this metadata into the catalog, and nothing else."""
    entity = {"kind": "Component", "metadata": {"name": "a", **metadata}}
    item = {"apiVersion": "backstage.io/v1alpha1", "spec": {"type": "service"}, **entity}
    answer = await service.http.put(f"{PUSH}/sets/s", json={"items": [item]})
    assert answer.status_code == 200, answer.text


async def test_a_gate_opens_when_the_check_passes(served: Run, service: Service) -> None:
    card = scorecard(levels=["bronze"], entries=[{"check": "titled", "level": "bronze"}])
    await served("checks", "apply", write("a.yaml", check(), card), "--yes")
    await evaluated(service)
    gate = ("checks", "gate", "--entity", "a", "--scorecard", "ready", "--level", "bronze")

    await push(service)
    shut = await served(*gate)
    await push(service, title="A")
    opened = await served(*gate)

    assert (shut.exit_code, shut.stdout.splitlines()) == (
        1,
        [
            "component:default/a: no level of ready; as of 2026-11-21 12:00 UTC",
            "  fail: Titled (titled)",
        ],
    )
    assert (opened.exit_code, opened.stdout) == (
        0,
        "component:default/a: bronze of ready; as of 2026-11-21 12:00 UTC\n",
    )


async def test_a_preview_tells_who_would_newly_fail(served: Run, service: Service) -> None:
    await push(service, title="A")
    write("a.yaml", check(), check("untitled", rule={**TITLE, "value": False}))

    answer = await served("checks", "preview", "a.yaml", "--entity", "a")
    report = await served("checks", "preview", "a.yaml", "--markdown")

    assert (answer.exit_code, answer.stdout.splitlines()) == (
        1,
        [
            "titled: 1 result would change; 0 fail now, 0 would; as of 2026-11-21 12:00 UTC",
            "  component:default/a: none → pass",
            "untitled: 1 result would change; 0 fail now, 1 would; as of 2026-11-21 12:00 UTC",
            "  component:default/a: none → fail",
        ],
    )
    assert "Entities would newly fail: untitled." in answer.stderr
    assert "| `untitled` | 1 | 0 | 1 |" in report.stdout.splitlines()
    assert await shown(service) == {}


async def test_a_preview_without_new_failures_ends_well(served: Run, service: Service) -> None:
    await push(service, title="A")

    answer = await served("checks", "preview", write("a.yaml", check()), "--json")

    [found] = json.loads(answer.stdout)
    assert (answer.exit_code, found["changed"], found["newFailures"]) == (0, 1, [])


async def test_the_starter_is_written_as_files_that_apply_as_they_are(
    served: Run, service: Service
) -> None:
    written = await served("checks", "starter", "--to", "begin")
    assert written.exit_code == 0, written.output
    fact = "codehost.branchProtection.enabled"
    assert f"Left out: protected-branch, as no data source has {fact}." in written.stderr
    assert (await served("checks", "test", "begin")).exit_code == 0
    applied = await served("checks", "apply", "begin", "--yes")
    assert applied.exit_code == 0, applied.output
    assert (await served("checks", "plan", "begin")).exit_code == 0
    again = await served("checks", "starter", "--adopt")
    assert again.stdout == "0 drafts were created, 6 existed already.\n"


class Interrupted(Bridge):
    """Sends a draft of somebody else before the first write of a command."""

    def __init__(self, service: Service, draft: dict[str, Any]) -> None:
        super().__init__(service)
        self._draft: dict[str, Any] | None = draft

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        draft, is_write = self._draft, request.method in {"PUT", "DELETE"}
        if draft is not None and is_write:
            self._draft = None
            url = request.url.join(f"{API}/checks/{draft['id']}")
            headers = {"authorization": request.headers["authorization"]}
            written = httpx2.Request("PUT", url, json=draft, headers=headers)
            assert super().handle_request(written).status_code == 200
        return super().handle_request(request)


@pytest.mark.parametrize("arguments", [("all.yaml",), ("none.yaml", "--prune")])
async def test_what_somebody_changed_since_the_plan_is_neither_overwritten_nor_removed(
    served: Run, service: Service, arguments: tuple[str, ...]
) -> None:
    write("all.yaml", check())
    assert (await served("checks", "apply", "all.yaml", "--yes")).exit_code == 0
    write("all.yaml", check(title="By the file"))
    write("none.yaml", check("other"))
    draft = {"id": "titled", "title": "By somebody else", "rule": TITLE}
    interrupted = Interrupted(service, draft)
    command = ["checks", "apply", *arguments, "--yes"]
    answer = await asyncio.to_thread(CliRunner().invoke, app, command, obj=interrupted)
    assert answer.exit_code != 0
    assert "It has changed since you read it; read it again." in answer.stderr
    titled = (await shown(service))["titled"]
    assert (titled["title"], titled["unpublished"]["title"]) == ("Titled", "By somebody else")


async def test_exemptions_are_exported_and_ids_that_differ_by_case_have_files_of_their_own(
    served: Run, service: Service
) -> None:
    assert (await service.push("shop", component("web"), component("old"))).status_code == 200
    write("all.yaml", check(), check("Titled"), scorecard(exemptions={"permanent": True}))
    assert (await served("checks", "apply", "all.yaml", "--yes")).exit_code == 0
    wanted = {"entity": "component:web", "reason": "Soon gone", "until": "2027-01-31"}
    for asked in (
        {"check": "titled", **wanted},
        {"check": "Titled", **wanted, "link": "https://tickets.test/1"},
        {"scorecard": "ready", "entity": "component:old", "reason": "For good"},
    ):
        made = await service.http.post(f"{API}/exemptions", json=asked)
        assert made.status_code == 201, made.text

    answer = await served("checks", "export", "--to", "copy")
    assert answer.exit_code == 0, answer.output
    names = [path.relative_to("copy").as_posix() for path in files("copy")]
    assert len({name.casefold() for name in names}) == len(names) == 5
    exemptions = [exported(f"copy/{name}") for name in names if name.startswith("exemptions/")]
    assert {one["exemption"]["check"] for one in exemptions} == {"titled", "Titled"}
    assert "the exemption of component:default/old from ready has no end." in answer.stderr
    planned = await served("checks", "plan", "copy")
    assert (planned.exit_code, planned.stdout.splitlines()[-1]) == (0, "Nothing to do.")


def files(folder: str) -> list[Path]:
    return sorted(Path(folder).rglob("*.yaml"))
