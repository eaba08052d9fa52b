"""Results that the files of a working tree decide, as the facts of a code host would."""

from pathlib import Path

import pytest

from tests.api.checking import check as document
from tests.api.checking import evaluated, put, with_source
from tests.api.test_entity_previews import README
from tests.cli.bridge import Run
from tests.cli.test_checks_tree import empty_files, git, text_file, tree
from tests.conftest import StartService
from tests.service import Service, component


@pytest.fixture
async def service(start: StartService) -> Service:
    return await start(integrations={"github": {"default": {"token": "secret"}}})


@pytest.fixture
async def catalog(service: Service) -> Service:
    """A component in an importer's set, of which no files are known."""
    await with_source(service)
    answer = await service.push("import-github", component("web"))
    assert answer.status_code == 200, answer.text
    return service


def remove(name: str) -> None:
    Path(name).unlink()


async def test_files_that_git_has_count_though_it_ignores_them_or_left_them_out(
    served: Run, catalog: Service
) -> None:
    await put(catalog, document("readme", rule=README), publish=True)
    await evaluated(catalog)
    hosted = component("web")
    hosted["metadata"]["annotations"] = {"github.com/project-slug": "acme/shop"}
    git("init", "--quiet")
    tree(catalog_info=hosted)
    empty_files(["README.md", "sparse/a.py"])
    git("add", "README.md", "sparse")
    text_file(".gitignore", "README.md\nbuilt.txt\n")
    empty_files(["built.txt"])
    assert "unknown → pass readme" in (await served("checks", "preview", "--path", ".")).stdout
    remove("README.md")
    assert "unknown → fail readme" in (await served("checks", "preview", "--path", ".")).stdout
    git("update-index", "--skip-worktree", "README.md")
    assert "unknown → pass readme" in (await served("checks", "preview", "--path", ".")).stdout


async def test_files_of_hidden_folders_count_where_there_is_no_repository(
    served: Run, catalog: Service
) -> None:
    fact = "codehost.codeReview.usesCodeowners"
    owned = {"source": "github", "fact": fact, "operator": "equal", "value": True}
    answer = await put(catalog, document("owners", rule=owned), publish=True)
    assert answer.status_code == 200, answer.text
    await evaluated(catalog)
    hosted = component("web")
    hosted["metadata"]["annotations"] = {"github.com/project-slug": "acme/shop"}
    tree(catalog_info=hosted)
    empty_files([".github/CODEOWNERS"])
    shown = await served("checks", "preview", "--path", ".")
    assert "unknown → pass owners" in shown.stdout
    remove(".github/CODEOWNERS")
    shown = await served("checks", "preview", "--path", ".")
    assert "unknown → fail owners" in shown.stdout
