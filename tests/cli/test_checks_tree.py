"""What `factbook checks preview --path` says about a working tree, with a running service."""

import json
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from factbook.cli.commands import app
from tests.api.checking import COVERED, evaluated, put, with_source
from tests.api.checking import check as document
from tests.api.defining import item, push
from tests.cli.bridge import Run, write
from tests.cli.conftest import Command
from tests.service import PUSH, Service, component

WEB = "component:default/web"
TITLED = {"source": "entity-metadata", "fact": "hasTitle", "operator": "equal", "value": True}
OWNER = {"source": "entity", "fact": "spec.owner", "operator": "equal", "value": "team-a"}


@pytest.fixture
async def catalog(service: Service) -> Service:
    """A component in an importer's set, with facts, and checks of both."""
    await with_source(service)
    answer = await service.push("import-github", component("web"))
    assert answer.status_code == 200, answer.text
    await push(service, item(WEB, lines=10))
    fix = {"link": "https://wiki.test/owners?of={{ metadata.name }}"}
    messages = {"fail": "{{ spec.owner }} | owns *nothing*, says @grace"}
    await put(service, document("team", rule=OWNER, fix=fix, messages=messages), publish=True)
    production = {"spec.lifecycle": "production"}
    await put(service, document("covered", rule=COVERED, appliesTo=production), publish=True)
    await evaluated(service)
    return service


def tree(**files: dict[str, Any]) -> None:
    """Files of entities in the current folder; `__` stands for a folder, `_` for a dash."""
    for name, entity in files.items():
        path = Path(f"{name.replace('__', '/').replace('_', '-')}.yaml")
        path.parent.mkdir(parents=True, exist_ok=True)
        write(str(path), entity)


def text_file(name: str, text: str) -> None:
    Path(name).parent.mkdir(exist_ok=True)
    Path(name).write_text(text)


def empty_files(names: Iterable[str]) -> None:
    for name in names:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).touch()


def link(name: str, target: Path) -> None:
    Path(name).symlink_to(target)


def git(*arguments: str, text: str = "") -> None:
    subprocess.run(["git", *arguments], check=True, input=text, encoding="utf-8")


def index_paths(index: str) -> str:
    return "".join(f"{line.partition(chr(9))[2]}\n" for line in index.splitlines())


async def test_a_tree_that_fails_a_required_check_anew_ends_with_1(
    served: Run, catalog: Service
) -> None:
    tree(catalog_info=component("web", owner="team-b"))
    answer = await served("checks", "preview", "--path", ".")
    assert (answer.exit_code, answer.stdout.splitlines()) == (
        1,
        [
            f"pass → fail team of {WEB}: team-b | owns *nothing*, says @grace "
            "(https://wiki.test/owners?of=web)",
            "1 entity checked; 1 result would change; 1 new failure",
        ],
    )
    assert "Entities would newly fail: team." in answer.stderr
    shown = (await catalog.http.get(f"{PUSH}/entities/by-ref/{WEB}")).json()
    assert shown["entity"]["spec"]["owner"] == "team-a"


async def test_a_tree_that_changes_nothing_ends_well(served: Run, catalog: Service) -> None:
    tree(catalog_info=component("web"))
    answer = await served("checks", "preview", "--path", ".")
    assert (answer.exit_code, answer.stdout) == (
        0,
        "1 entity checked; 0 results would change; 0 new failures\n",
    )


async def test_a_report_in_markdown_is_one_table_of_plain_text(
    served: Run, catalog: Service
) -> None:
    tree(catalog_info=component("web", owner="team-b"))
    answer = await served("checks", "preview", "--path", ".", "--markdown")
    assert answer.exit_code == 1
    assert answer.stdout.splitlines() == [
        "**1 entity checked; 1 result would change; 1 new failure**",
        "",
        "| Check | Entity | Result | What it says |",
        "| --- | --- | --- | --- |",
        "| Tests cover enough (`team`) | `component:default/web` | pass → fail | "
        "team-b \\| owns \\*nothing\\*, says `@`grace "
        "[How to fix it](<https://wiki.test/owners?of=web>) |",
    ]


async def test_what_an_entity_says_breaks_out_of_no_line_nor_cell(
    served: Run, catalog: Service
) -> None:
    fix = {"link": "{{ metadata.annotations['acme.example/fix'] }}"}
    messages = {"fail": "{{ metadata.description }}"}
    await put(catalog, document("team", rule=OWNER, fix=fix, messages=messages), publish=True)
    await evaluated(catalog)
    entity = component("web", owner="team-b")
    entity["metadata"] |= {
        "description": "told\n::stop-commands::x",
        "annotations": {"acme.example/fix": "https://a.test/>)|>)`"},
    }
    tree(catalog_info=entity)
    answer = await served("checks", "preview", "--path", ".")
    assert answer.stdout.splitlines() == [
        f"pass → fail team of {WEB}: told ::stop-commands::x (https://a.test/>)|>)`)",
        "1 entity checked; 1 result would change; 1 new failure",
    ]
    answer = await served("checks", "preview", "--path", ".", "--markdown")
    assert "[How to fix it](<https://a.test/%3E)%7C%3E)%60>) |" in answer.stdout


async def test_what_rests_on_facts_from_elsewhere_is_told_and_does_not_count(
    served: Run, catalog: Service
) -> None:
    pushed = await catalog.push("import-github", component("web", lifecycle="old"))
    assert pushed.status_code == 200
    tree(catalog_info=component("web"), services__catalog_info=component("new"))
    answer = await served("checks", "preview", "--path", ".")
    assert (answer.exit_code, answer.stdout.splitlines()) == (
        0,
        [
            f"not-applicable → fail, not known from this tree covered of {WEB}",
            "new → unknown, not known from this tree covered of component:default/new",
            "2 entities checked; 3 results would change; 0 new failures",
        ],
    )
    [one] = [
        one
        for one in json.loads((await served("checks", "preview", "--path", ".", "--json")).stdout)[
            "results"
        ]
        if one["entityRef"] == WEB
    ]
    assert (one["then"], one["decided"], one["newFailure"]) == ("fail", False, False)


async def test_what_cannot_be_read_is_left_out_and_told_beside_the_others(
    served: Run, catalog: Service
) -> None:
    nameless = component("x")
    nameless["metadata"] = {}
    tree(a__catalog_info=component("web", owner="team-b"), b__catalog_info=nameless)
    text_file("c/catalog-info.yaml", "kind: [unclosed\n")
    text = component("d")
    text["spec"]["definition"] = {"$text": "./missing.txt"}
    tree(d__catalog_info=text)

    answer = await served("checks", "preview", "--path", ".")
    assert answer.exit_code == 2
    assert answer.stdout.splitlines()[0].startswith(f"pass → fail team of {WEB}")
    assert "3 problems; the rest was previewed. Entities would newly fail: team." in answer.stderr
    told = {line.split()[0] for line in answer.stderr.splitlines()[1:]}
    assert told == {"b/catalog-info.yaml", "c/catalog-info.yaml", "d/catalog-info.yaml"}
    report = await served("checks", "preview", "--path", ".", "--markdown")
    assert "Not previewed:" in report.stdout


async def test_nothing_that_can_be_read_ends_with_2(served: Run, catalog: Service) -> None:
    nameless = component("x")
    nameless["metadata"] = {}
    tree(catalog_info=nameless)
    answer = await served("checks", "preview", "--path", ".")
    assert (answer.exit_code, answer.stdout) == (2, "No entity could be previewed.\n")


async def test_files_that_a_location_names_belong_to_the_tree_and_others_are_named(
    served: Run, catalog: Service
) -> None:
    location = {
        "apiVersion": "backstage.io/v1alpha1",
        "kind": "Location",
        "metadata": {"name": "all"},
        "spec": {"targets": ["./parts/*.yaml", "https://elsewhere.test/catalog-info.yaml"]},
    }
    tree(catalog_info=location, parts__web=component("web", owner="team-b"))
    tree(other=component("other"))
    answer = await served("checks", "preview", "--path", ".", "--catalog", "other.yaml", "--json")
    shown = json.loads(answer.stdout)
    assert {one["entityRef"]: one["change"] for one in shown["entities"]} == {
        "component:default/other": "added",
        WEB: "updated",
        "location:default/all": "added",
    }
    assert "https://elsewhere.test/catalog-info.yaml is an address" in shown["problems"][0]
    outside = await served("checks", "preview", "--path", "parts", "--catalog", "other.yaml")
    assert (outside.exit_code, "other.yaml is not below parts" in outside.stderr) == (2, True)


async def test_stored_values_are_told_of_the_set_that_the_pipeline_names(
    served: Run, catalog: Service
) -> None:
    lines = {"fail": "{{ facts.coverage['lines'] }} lines"}
    old = {"spec.lifecycle": "old"}
    await put(
        catalog, document("covered", rule=COVERED, appliesTo=old, messages=lines), publish=True
    )
    await evaluated(catalog)
    tree(catalog_info=component("web", lifecycle="old"))
    answer = await served("checks", "preview", "--path", ".")
    assert "not-applicable → fail, not known from this tree" in answer.stdout
    assert "10 lines" not in answer.stdout
    answer = await served("checks", "preview", "--path", ".", "--set", "import-github")
    assert "10 lines" in answer.stdout


async def test_links_out_of_the_tree_are_not_followed(
    served: Run, catalog: Service, tmp_path_factory: pytest.TempPathFactory
) -> None:
    secret = tmp_path_factory.mktemp("secret") / "catalog-info.yaml"
    secret.write_text("password: 1\n")
    link("catalog-info.yaml", secret)
    answer = await served("checks", "preview", "--path", ".")
    assert answer.exit_code == 2
    assert "catalog-info.yaml cannot be read: it is not in the tree." in answer.stderr
    assert "password" not in answer.output


async def test_files_that_git_ignores_are_none_of_the_tree(served: Run, catalog: Service) -> None:
    git("init", "--quiet")
    tree(catalog_info=component("web"), built__catalog_info=component("web", owner="team-b"))
    text_file(".gitignore", "built/\n")
    answer = await served("checks", "preview", "--path", ".", "--json")
    shown = json.loads(answer.stdout)
    assert (answer.exit_code, shown["problems"]) == (0, [])
    assert shown["entities"] == [{"entityRef": WEB, "change": "unchanged"}]


async def test_a_repository_that_git_does_not_list_is_refused(
    served: Run, catalog: Service
) -> None:
    tree(catalog_info=component("web"))
    text_file(".git", "gitdir: nowhere\n")
    answer = await served("checks", "preview", "--path", ".")
    assert (answer.exit_code, "git cannot list the files of ." in answer.stderr) == (2, True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("depth", "count", "told"),
    [
        (4, 5_000, "The paths of 5,0"),
        (1, 50_000, "The tree has 50,0"),
    ],
)
async def test_what_files_decide_is_told_not_to_be_known_of_a_tree_that_is_too_large(
    served: Run, catalog: Service, depth: int, count: int, told: str
) -> None:
    git("init", "--quiet")
    tree(catalog_info=component("web"))
    git("add", "catalog-info.yaml")
    folder = "/".join("d" * (220 if depth > 1 else 1) for _ in range(depth))
    empty = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
    index = "".join(f"100644 {empty} 0\t{folder}/{number}\n" for number in range(count))
    git("update-index", "--index-info", text=index)
    git("update-index", "--skip-worktree", "--stdin", text=index_paths(index))
    answer = await served("checks", "preview", "--path", ".")
    assert (answer.exit_code, told in answer.stderr) == (2, True)
    assert "so what checks say of the files of this tree is not known" in answer.stderr
    assert answer.stdout.startswith("1 entity checked")


async def test_a_file_whose_name_is_no_text_keeps_no_tree_from_being_previewed(
    served: Run, catalog: Service
) -> None:
    tree(catalog_info=component("web"))
    folder = "/".join("d" * 220 for _ in range(6))
    empty_files(["\udcff.txt", f"{folder}/long.txt"])
    answer = await served("checks", "preview", "--path", ".")
    assert (answer.exit_code, answer.stderr) == (0, "")
    empty_files(["\udcff/catalog-info.yaml"])
    text_file("\udcff/catalog-info.yaml", "kind: [unclosed\n")
    answer = await served("checks", "preview", "--path", ".", "--markdown")
    assert (answer.exit_code, "/catalog-info.yaml" in answer.stdout) == (2, True)


async def test_problems_beyond_those_that_are_shown_are_counted(
    served: Run, catalog: Service
) -> None:
    for number in range(103):
        text_file(f"p{number}/catalog-info.yaml", "kind: [unclosed\n")
    answer = await served("checks", "preview", "--path", ".", "--markdown")
    assert answer.stdout.splitlines()[-1] == "- and 3 more"
    assert "103 problems" in answer.stderr


@pytest.mark.slow
@pytest.mark.parametrize("named", [".git/config", "secret.env", "linked"])
async def test_files_beside_those_of_the_tree_are_not_read(
    served: Run, catalog: Service, named: str
) -> None:
    git("init", "--quiet")
    git("config", "http.extraheader", "AUTHORIZATION: hunter2")
    text_file(".gitignore", "secret.env\n")
    text_file("secret.env", "hunter2")
    link("linked", Path(".git/config"))
    entity = component("web")
    entity["metadata"]["description"] = {"$text": f"./{named}"}
    tree(catalog_info=entity)
    answer = await served("checks", "preview", "--path", ".", "--json")
    assert answer.exit_code == 2
    assert f"catalog-info.yaml line 1: ./{named}: there is no such file" in answer.stderr
    assert "hunter2" not in answer.output


async def test_checks_of_files_and_a_tree_are_one_report(served: Run, catalog: Service) -> None:
    tree(catalog_info=component("web"))
    checks = write("titled.yaml", {"check": "titled", "title": "Titled", "rule": TITLED})
    answer = await served("checks", "preview", checks, "--path", ".")
    assert answer.exit_code == 1
    assert "titled: 1 result would change; 0 fail now, 1 would" in answer.stdout
    assert answer.stdout.splitlines()[-1].startswith("1 entity checked; 0 results would change")
    shown = json.loads((await served("checks", "preview", checks, "--path", ".", "--json")).stdout)
    assert [one["id"] for one in shown["checks"]] == ["titled"]


def test_misuse_ends_with_2_and_says_what_is_missing(
    factbook: Command, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[tuple[str, ...], str]] = [
        ((), "Give check files, or a working tree with --path."),
        (("--path", "none"), "none is not a directory."),
        (("--path", "."), "There is no catalog-info.yaml or catalog-info.yml in"),
        (("--catalog", "x.yaml", "checks"), "--catalog needs --path"),
        (("--set", "shop", "checks"), "--set needs --path"),
    ]
    for arguments, message in cases:
        with subtests.test(arguments=arguments):
            answer = factbook("checks", "preview", *arguments)
            assert (answer.exit_code, message in answer.stderr) == (2, True)


async def test_a_token_without_rights_ends_with_3(
    served: Run, catalog: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FACTBOOK_TOKEN", await catalog.token("catalog.entity.read"))
    tree(catalog_info=component("web"))
    answer = await served("checks", "preview", "--path", ".")
    assert (answer.exit_code, "tech-insights.data-source.read" in answer.stderr) == (3, True)


@pytest.mark.usefixtures("factbook")
def test_a_service_that_is_not_there_ends_with_4() -> None:
    tree(catalog_info=component("web"))
    server = ("--server", "http://127.0.0.1:1")
    answer = CliRunner().invoke(app, ["checks", "preview", "--path", ".", *server])
    assert (answer.exit_code, "Start one with `factbook serve`" in answer.stderr) == (4, True)
