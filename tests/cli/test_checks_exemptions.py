"""Exemptions in files: asked for by `factbook checks apply`, approved and revoked by others."""

from typing import Any

import pytest

from tests.api.checking import EXEMPTIONS, RESULTS, check, evaluated, put
from tests.cli.bridge import Run, write
from tests.service import Service, component

TITLED = {"source": "entity-metadata", "fact": "hasTitle", "operator": "equal", "value": True}
WEB = "component:default/web"
ADA, GRACE = "user:default/ada", "user:default/grace"


class TwoPeople:
    """A service, and the command with the token of one or of another person."""

    def __init__(self, service: Service, run: Run, environment: pytest.MonkeyPatch) -> None:
        self.service = service
        self._run = run
        self._environment = environment

    async def __call__(self, person: str, *arguments: str) -> list[str]:
        """Run `factbook checks` as a person; the exit code, and the lines of both outputs."""
        token = await self.service.token(owner=person)
        self._environment.setenv("FACTBOOK_TOKEN", token)
        answer = await self._run("checks", *arguments)
        return [str(answer.exit_code), *answer.stdout.splitlines(), *answer.stderr.splitlines()]

    async def states(self) -> list[tuple[str, str]]:
        """The entities and states of all exemptions."""
        found = (await self.service.http.get(EXEMPTIONS)).json()["exemptions"]
        return [(one["entity"].partition("/")[2], one["state"]) for one in found]

    async def result(self, name: str = "web") -> str:
        answer = await self.service.http.get(f"{RESULTS}/titled/component:default/{name}")
        state: str = answer.json()["state"]
        return state


@pytest.fixture
async def people(served: Run, service: Service, monkeypatch: pytest.MonkeyPatch) -> TwoPeople:
    """Two components without a title, and the check that they fail."""
    pushed = await service.push("shop", component("web"), component("api"))
    assert pushed.status_code == 200
    await put(service, check("titled", rule=TITLED), publish=True)
    await evaluated(service)
    return TwoPeople(service, served, monkeypatch)


def wish(name: str = "web", **more: Any) -> dict[str, Any]:
    """An exemption as a file has it."""
    about = {"check": "titled", "entity": f"component:{name}", "until": "2027-03-31"}
    return {"exemption": {**about, "reason": "Shut down soon", **more}}


async def test_one_person_asks_by_files_and_another_approves_by_the_same(
    people: TwoPeople,
) -> None:
    write("e.yaml", wish())
    subject = f"exemption titled of {WEB}"
    assert await people(GRACE, "plan", "e.yaml") == [
        "5",
        f"{subject}: is new, to be asked for, e.yaml document 1 (line 1)",
        "1 to request",
    ]
    assert await people.states() == []
    asked = await people(GRACE, "apply", "e.yaml", "--yes")
    assert (asked[0], asked[-1]) == ("0", f"{subject}: asked for; somebody else approves it")
    waiting = [f"{subject} waits for someone else to approve it."]
    assert await people(GRACE, "plan", "e.yaml") == ["0", "Nothing to do.", *waiting]
    own = await people(GRACE, "apply", "e.yaml", "--yes", "--approve")
    assert own[0] == "1"
    assert "Somebody other than the requester has to approve" in own[-1]
    assert await people.result() == "fail"

    approved = await people(ADA, "apply", "e.yaml", "--yes", "--approve")
    assert (approved[0], approved[-1]) == ("0", f"{subject}: approved")
    assert await people.result() == "exempt"
    for flags in ((), ("--approve",), ("--revoke",)):
        assert await people(ADA, "apply", "e.yaml", "--yes", *flags) == ["0", "Nothing to do."]
    assert await people.states() == [("web", "approved")]


async def test_what_is_in_no_file_is_revoked_only_when_it_is_asked_for(people: TwoPeople) -> None:
    write("e.yaml", wish(), wish("api"))
    await people(GRACE, "apply", "e.yaml", "--yes")
    write("one.yaml", wish())
    await people(ADA, "apply", "one.yaml", "--yes", "--approve")
    write("c.yaml", {"check": "titled", "title": "Tests cover enough", "rule": TITLED})

    assert (await people(ADA, "plan", "c.yaml", "--prune"))[0] == "0"
    gone = await people(ADA, "apply", "c.yaml", "--yes", "--revoke")
    assert gone[0] == "0"
    assert gone[-2:] == [
        "exemption titled of component:default/api: denied",
        f"exemption titled of {WEB}: revoked",
    ]
    assert await people.result() == "fail"
    assert sorted(await people.states()) == [("api", "denied"), ("web", "revoked")]


async def test_what_differs_is_told_and_asked_anew_only_when_it_is_asked_for(
    people: TwoPeople,
) -> None:
    await people(GRACE, "apply", write("e.yaml", wish()), "--yes")
    await people(ADA, "apply", "e.yaml", "--yes", "--approve")
    write("e.yaml", wish(until="2027-05-31"))
    kept = await people(GRACE, "apply", "e.yaml", "--yes")
    assert kept == [
        "0",
        "Nothing to do.",
        f"exemption titled of {WEB} has another until than e.yaml document 1 (line 1); "
        "--revoke requests it again.",
    ]
    assert await people.result() == "exempt"
    planned = await people(GRACE, "plan", "e.yaml", "--revoke")
    assert planned[2].startswith('  ~ until: "2027-04-01T00:00:00.000+00:00" → "2027-06-01')
    await people(GRACE, "apply", "e.yaml", "--yes", "--revoke")
    assert sorted(await people.states()) == [("web", "requested"), ("web", "revoked")]


async def test_a_file_that_was_decided_against_or_is_over_asks_for_nothing(
    people: TwoPeople,
) -> None:
    await people(GRACE, "apply", write("e.yaml", wish()), "--yes")
    [asked] = (await people.service.http.get(EXEMPTIONS)).json()["exemptions"]
    denied = await people.service.http.post(f"{EXEMPTIONS}/{asked['id']}/deny")
    assert denied.status_code == 200
    write("e.yaml", wish(), wish("api", until="2024-03-31"))
    assert await people(GRACE, "apply", "e.yaml", "--yes") == [
        "0",
        "Nothing to do.",
        f"exemption titled of {WEB} was denied; a changed file makes a new request.",
        "exemption titled of component:default/api is over; e.yaml document 2 (line 7) can go.",
    ]
    write("e.yaml", wish(reason="Shut down in May"))
    assert (await people(GRACE, "plan", "e.yaml"))[0] == "5"


async def test_one_that_is_refused_keeps_no_other_from_being_asked_for(people: TwoPeople) -> None:
    write("e.yaml", wish("none"), wish(until="2029-03-31"), wish("api"))
    answer = await people(GRACE, "apply", "e.yaml", "--yes")
    assert answer[0] == "1"
    told = "\n".join(answer)
    assert "component:default/none: There is no entity component:default/none" in told
    assert f"exemption titled of {WEB}: until: can be at most 365 days" in told
    assert await people.states() == [("api", "requested")]


async def test_a_token_that_may_not_ask_is_told_so(
    people: TwoPeople, served: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("e.yaml", wish())
    monkeypatch.setenv("FACTBOOK_TOKEN", await people.service.token("tech-insights.check.read"))
    answer = await served("checks", "apply", "e.yaml", "--yes")
    assert (answer.exit_code, "needs the permission to request" in answer.stderr) == (1, True)
    monkeypatch.setenv("FACTBOOK_TOKEN", await people.service.token("catalog.entity.read"))
    assert (await served("checks", "apply", "e.yaml", "--yes")).exit_code == 3


async def test_a_check_and_an_exemption_from_it_come_in_one_run(people: TwoPeople) -> None:
    new = {"check": "new", "title": "New", "rule": TITLED}
    write("e.yaml", wish(check="new"), new)
    answer = await people(GRACE, "apply", "e.yaml", "--yes")
    assert answer[0] == "0"
    assert "1 to create, 1 to request" in answer
    assert await people.states() == [("web", "requested")]
