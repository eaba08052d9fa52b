"""The action of GitHub and the template of GitLab push, preview and gate on a running service."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from factbook.cli.pipelines import MARK
from tests.api import checking
from tests.api.defining import SOURCES, pushed
from tests.cli.code_reviews import TOKEN, CodeReviews
from tests.deploy.pipeline_steps import action, jobs, run_action, run_job
from tests.fakes.serving import served
from tests.processes import ServerProcess, serving
from tests.service import PUSH, component
from tests.waiting import until

pytestmark = pytest.mark.system

TITLED = {"source": "entity-metadata", "fact": "hasTitle", "operator": "equal", "value": True}
CODE = "$(touch owned) `touch owned` '; touch owned; #"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server with a check of owners, and a scorecard whose first level it decides."""
    folder = tmp_path_factory.mktemp("pipelines")
    with serving(f"sqlite:///{folder / 'factbook.db'}", folder) as server:
        with server.client(server.token()) as http:
            entities = {"items": [component("old", owner="team-a")]}
            owned = checking.check(rule=checking.OWNED, severity="required")
            titled = checking.check("titled", rule=TITLED, severity="required")
            entries = [
                {"check": "covered", "level": "bronze"},
                {"check": "titled", "level": "silver"},
            ]
            for address, document in (
                (f"{SOURCES}/coverage", pushed()),
                (f"{PUSH}/sets/old", entities),
                (f"{checking.CHECKS}/covered?publish=true", owned),
                (f"{checking.CHECKS}/titled?publish=true", titled),
                (
                    f"{checking.SCORECARDS}/readiness?publish=true",
                    checking.scorecard(entries=entries),
                ),
            ):
                answer = http.put(address, json=document)
                assert answer.status_code == 200, answer.text
            assert http.post(f"{SOURCES}/coverage/publish").status_code == 200
        yield server


@pytest.fixture(scope="module")
def variables(server: ServerProcess) -> dict[str, str]:
    """Variables of the server, as a project has them."""
    return {"FACTBOOK_SERVER": server.url, "FACTBOOK_TOKEN": server.token()}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A working tree with two files of entities, one of them with a blank in its name."""
    for name, place in (("web", "."), ("till", "in a folder")):
        file = tmp_path / place / "catalog-info.yaml"
        file.parent.mkdir(exist_ok=True)
        entity = component(name, owner="team-a")
        entity["metadata"]["title"] = name.title()
        file.write_text(yaml.safe_dump(entity))
    return tmp_path


@pytest.fixture
def reviews() -> CodeReviews:
    return CodeReviews()


@pytest.fixture
def host(reviews: CodeReviews) -> Iterator[str]:
    """The address of a code host with one pull request."""

    async def answer(request: Request) -> Response:
        asked = httpx2.Request(
            request.method,
            str(request.url),
            headers=request.headers.raw,
            content=await request.body(),
        )
        found = reviews(asked)
        return Response(found.content, found.status_code, media_type="application/json")

    routes = [Route("/{path:path}", answer, methods=["GET", "POST", "PATCH", "PUT"])]
    with served(Starlette(routes=routes)) as url:
        yield url


@pytest.fixture
def workflow(variables: dict[str, str], host: str, tree: Path) -> dict[str, str]:
    """Variables of a job of GitHub for a pull request."""
    return {
        "GITHUB_ACTIONS": "true",
        "GITHUB_API_URL": host,
        "GITHUB_REPOSITORY": "acme/shop",
        "GITHUB_REF": "refs/pull/7/merge",
        "GITHUB_EVENT_NAME": "pull_request",
        "GITHUB_STEP_SUMMARY": str(tree / "summary.md"),
        "RUNNER_TEMP": str(tree),
        "JOB_TOKEN": TOKEN,
    }


@pytest.fixture
def given(variables: dict[str, str]) -> dict[str, str]:
    """Inputs that every use of the action has."""
    return {"server": variables["FACTBOOK_SERVER"], "token": variables["FACTBOOK_TOKEN"]}


def names(server: ServerProcess, set_id: str) -> list[str]:
    """The entities of a set."""
    with server.client(server.token()) as http:
        items = http.get(f"{PUSH}/sets/{set_id}").json()["items"]
    return sorted(one["entityRef"] for one in items)


BOTH = ["component:default/till", "component:default/web"]


@pytest.mark.spec("pipelines.push-preview-gate")
def test_the_action_replaces_a_set_with_the_files_that_fit(
    server: ServerProcess, tree: Path, workflow: dict[str, str], given: dict[str, str]
) -> None:
    inputs = {"command": "push", "set": "shop", "files": "**/catalog-info.yaml\n"}
    done = run_action(tree, given | inputs, workflow)
    assert [one.returncode for one in done] == [0, 0], done[-1].stderr
    assert names(server, "shop") == BOTH


def test_the_action_says_which_pattern_fits_no_file(
    tree: Path, workflow: dict[str, str], given: dict[str, str]
) -> None:
    inputs = {"command": "push", "set": "none", "files": "*.yml"}
    done = run_action(tree, given | inputs, workflow)
    assert (done[-1].returncode, "No file fits *.yml." in done[-1].stderr) == (2, True)


def test_the_action_pushes_facts_with_blanks_in_them(
    server: ServerProcess, tree: Path, workflow: dict[str, str], given: dict[str, str]
) -> None:
    facts = "lines=870\ntool=py test\n"
    inputs = {"command": "facts", "source": "coverage", "entity": "component:old", "facts": facts}
    done = run_action(tree, given | inputs, workflow)
    assert done[-1].returncode == 0, done[-1].stderr
    with server.client(server.token()) as http:
        [found] = http.get("/api/tech-insights/v1/facts/coverage").json()["entities"]
    assert found["facts"] == {"lines": 870, "tool": "py test"}


@pytest.mark.spec("pipelines.one-comment")
def test_the_action_comments_once_on_what_a_pull_request_would_change(
    tree: Path, workflow: dict[str, str], given: dict[str, str], reviews: CodeReviews
) -> None:
    for _ in range(2):
        done = run_action(tree, given | {"command": "preview"}, workflow)
        assert done[-1].returncode == 0, done[-1].stderr
    [comment] = reviews.comments
    assert len(reviews.writes) == 1
    report = comment["body"].removeprefix(f"{MARK}\n")
    assert (tree / "summary.md").read_text() == report * 2


def test_a_pull_request_that_breaks_a_required_check_fails_and_says_so(
    tree: Path, workflow: dict[str, str], given: dict[str, str], reviews: CodeReviews
) -> None:
    broken: dict[str, Any] = component("web")
    del broken["spec"]["owner"]
    (tree / "catalog-info.yaml").write_text(yaml.safe_dump(broken))
    done = run_action(tree, given | {"command": "preview"}, workflow)
    assert done[-1].returncode == 1, done[-1].stdout
    [comment] = reviews.comments
    assert "component:default/web" in comment["body"]


@pytest.mark.spec("pipelines.push-preview-gate")
def test_both_gate_on_a_level(
    server: ServerProcess,
    tree: Path,
    workflow: dict[str, str],
    given: dict[str, str],
    variables: dict[str, str],
) -> None:
    with server.client(server.token()) as http:
        place = f"{checking.CARDS}/readiness/next-steps?entity=component:old"
        until(lambda: http.get(place).json().get("level") == "bronze", told=http.get(place).json)
    gate = {"command": "gate", "entity": "component:old", "scorecard": "readiness"}
    for level, code in (("bronze", 0), ("silver", 1)):
        done = run_action(tree, given | gate | {"level": level}, workflow)
        assert done[-1].returncode == code, done[-1].stderr
        named = {
            "FACTBOOK_ENTITY": "component:old",
            "FACTBOOK_SCORECARD": "readiness",
            "FACTBOOK_LEVEL": level,
        }
        assert run_job(tree, ".factbook-gate", variables | named).returncode == code


@pytest.mark.spec("pipelines.forks-have-no-secret")
@pytest.mark.parametrize("command", ["push", "facts", "preview", "gate"])
def test_a_fork_has_no_token_asks_nothing_and_ends_well(
    tree: Path, workflow: dict[str, str], given: dict[str, str], reviews: CodeReviews, command: str
) -> None:
    nowhere = {"command": command, "token": "", "server": "http://127.0.0.1:9"}
    done = run_action(tree, given | nowhere, workflow)
    assert (done[-1].returncode, "There is no token" in done[-1].stdout) == (0, True)
    variables = {
        "FACTBOOK_SERVER": "http://127.0.0.1:9",
        "CI_PIPELINE_SOURCE": "merge_request_event",
    }
    job = run_job(tree, f".factbook-{command}", variables)
    assert (job.returncode, "There is no FACTBOOK_TOKEN" in job.stdout) == (0, True)
    assert reviews.asked == []


@pytest.mark.parametrize("command", ["push", "facts", "preview", "gate"])
def test_without_a_token_on_a_branch_nothing_passes(
    tree: Path, workflow: dict[str, str], given: dict[str, str], command: str
) -> None:
    release = workflow | {"GITHUB_EVENT_NAME": "push", "GITHUB_REF": "refs/tags/v1"}
    done = run_action(tree, given | {"command": command, "token": ""}, release)
    assert (done[-1].returncode, "There is no token." in done[-1].stderr) == (2, True)
    job = run_job(tree, f".factbook-{command}", {"CI_PIPELINE_SOURCE": "push"})
    assert (job.returncode, "There is no FACTBOOK_TOKEN." in job.stderr) == (2, True)


@pytest.mark.spec("pipelines.inputs-are-no-code")
@pytest.mark.parametrize("command", ["push", "facts", "preview", "gate", CODE])
def test_no_input_is_run(
    tree: Path, workflow: dict[str, str], given: dict[str, str], command: str
) -> None:
    free = set(action()["inputs"]) - {"server", "token", "command"}
    run_action(tree, given | dict.fromkeys(free, CODE) | {"command": command}, workflow)
    assert not list(tree.rglob("owned"))


def test_no_step_of_the_action_holds_an_expression_or_an_action_of_others() -> None:
    for step in action()["runs"]["steps"]:
        assert "${{" not in step["run"]
        assert "uses" not in step


def test_every_input_of_the_action_is_described_and_used() -> None:
    [*_, run] = action()["runs"]["steps"]
    used = {value.strip("${ }").removeprefix("inputs.") for value in run["env"].values()}
    assert used - {"github.token"} == set(action()["inputs"])
    assert all(one["description"].endswith(".") for one in action()["inputs"].values())


@pytest.mark.spec("pipelines.push-preview-gate")
def test_the_template_pushes_sets_and_facts(
    server: ServerProcess, tree: Path, variables: dict[str, str]
) -> None:
    push = {"FACTBOOK_SET": "lab", "FACTBOOK_FILES": "lab.yaml"}
    (tree / "lab.yaml").write_text(yaml.safe_dump(component("lab", owner="team-a")))
    done = run_job(tree, ".factbook-push", variables | push)
    assert done.returncode == 0, done.stderr
    assert names(server, "lab") == ["component:default/lab"]
    facts = {
        "FACTBOOK_SOURCE": "coverage",
        "FACTBOOK_ENTITY": "component:lab",
        "FACTBOOK_FACTS": "lines=12\ntool=py test",
    }
    done = run_job(tree, ".factbook-facts", variables | facts)
    assert done.returncode == 0, done.stderr


@pytest.mark.spec("pipelines.one-comment")
def test_the_template_comments_once_on_a_merge_request(
    tree: Path, variables: dict[str, str], host: str, reviews: CodeReviews
) -> None:
    request = {
        "GITLAB_CI": "true",
        "CI_API_V4_URL": f"{host}/api/v4",
        "CI_PROJECT_ID": "42",
        "CI_MERGE_REQUEST_IID": "7",
        "FACTBOOK_COMMENT_TOKEN": TOKEN,
    }
    for _ in range(2):
        done = run_job(tree, ".factbook-preview", variables | request)
        assert done.returncode == 0, done.stderr
    assert len(reviews.comments) == len(reviews.writes) == 1
    [rule] = jobs()[".factbook-preview"]["rules"]
    assert rule == {"if": '$CI_PIPELINE_SOURCE == "merge_request_event"'}
