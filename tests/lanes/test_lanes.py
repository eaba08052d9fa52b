"""The tables name files that exist, and choose the tests that a change needs."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lanes.choice import SystemTests
from tests.lanes.imports import direct_importers, module
from tests.lanes.quick import nearest
from tests.lanes.repository import RECORD, Repository
from tests.lanes.system import is_clean_at, needed
from tests.lanes.tables import EVERYTHING, LONGEST, NEARBY, SMOKE, SYSTEM

PLUGIN = "tests.lanes.budget"
# Not in one word, by which this file would look like one with system tests.
MARKER = ".".join(("pytest", "mark", "system"))
ROOT = Repository().root


@pytest.fixture(scope="module")
def files() -> list[str]:
    return Repository().files()


@pytest.fixture(scope="module")
def system_tests() -> SystemTests:
    return SystemTests(Repository())


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """A repository with a room, tests of it, and one commit."""
    texts = {
        "src/factbook/webhooks/sender.py": "",
        "src/factbook/webhooks/store.py": "",
        "tests/webhooks/receiver.py": "",
        "tests/webhooks/test_sender.py": "import tests.webhooks.receiver",
        "tests/webhooks/test_retries.py": "",
        "tests/web/test_pages.py": "from factbook.webhooks import sender",
        "tests/web/test_forms.py": "from factbook.webhooks.store import Store",
        "tests/system/test_webhook_crash.py": f"{MARKER}\nimport tests.webhooks.receiver",
        "tests/system/test_wheel.py": MARKER,
    }
    for path, text in texts.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    repository = Repository(tmp_path)
    repository.git("init", "--quiet", "--initial-branch", "main")
    commit(repository)
    return repository


def commit(repository: Repository) -> str:
    """Commit everything, and return the commit."""
    repository.git("add", "--all")
    author = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")
    repository.git(*author, "commit", "--quiet", "--allow-empty", "--message", "A change")
    return repository.git("rev-parse", "HEAD").strip()


def test_every_file_is_mapped_to_system_tests(files: list[str], system_tests: SystemTests) -> None:
    assert [path for path in files if system_tests.of(path) is None] == []


def test_the_tables_name_files_and_tests_that_exist(
    files: list[str], system_tests: SystemTests
) -> None:
    keys = {*SYSTEM, *NEARBY} - {RECORD}
    named = {*keys, *NEARBY.values(), *LONGEST, *(test.partition("::")[0] for test in SMOKE)}
    assert [
        path for path in sorted(named) if not any(each.startswith(path) for each in files)
    ] == []
    prefixes = {prefix for row in SYSTEM.values() for prefix in row} | {*LONGEST}
    assert [prefix for prefix in sorted(prefixes) if not system_tests.matching([prefix])] == []
    for test in SMOKE:
        path, _, name = test.partition("::")
        functions = {
            node.name: node
            for node in ast.walk(ast.parse((ROOT / path).read_bytes()))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        }
        name, variant, _ = name.partition("[")
        assert name in {*functions, ""}, test
        if variant:
            parts = [functions[name].args, *functions[name].decorator_list]
            text = " ".join(ast.unparse(part) for part in parts)
            assert "parametrize" in text or "database_url" in text, test


def test_system_tests_are_recognized_by_their_text(
    files: list[str], system_tests: SystemTests
) -> None:
    """A file that took the marker from another file would not be run."""
    marked = {
        f"{module(path)}.{target.id}"
        for path in system_tests.files
        for node in ast.parse((ROOT / path).read_bytes()).body
        if isinstance(node, ast.Assign) and MARKER in ast.unparse(node)
        for target in node.targets
        if isinstance(target, ast.Name) and target.id != "pytestmark"
    }
    tests = [path for path in files if path.startswith("tests/") and path.endswith(".py")]
    importers = set(direct_importers(ROOT, marked, tests))
    assert importers <= {*system_tests.files}


def test_a_path_that_may_break_anything_runs_every_system_test(system_tests: SystemTests) -> None:
    for path in (
        "src/factbook/storage/migrations/0001_first.sql",
        "requirements/runtime.lock",
        "tests/contracts/package-lock.json",
        "tests/conftest.py",
        "tests/memory.py",
        "tests/lanes/tables.py",
        ".ci/run",
    ):
        assert system_tests.decision(path) == ("everything", system_tests.files), path
    unmapped = ("not in the table: everything", system_tests.files)
    assert system_tests.decision("a-new-folder/a-file") == unmapped


def test_a_path_runs_the_system_tests_that_depend_on_it(system_tests: SystemTests) -> None:
    chosen = {
        path: system_tests.of(path)
        for path in (
            "CHANGELOG.md",
            "docs/decisions/index.md",
            "src/factbook/outbound/git.py",
            "tests/catalog/test_a_new_file.py",
            "tests/system/alerts.py",
            "tests/system/noon.py",
            "tests/system/test_alerts.py",
            "tests/api/conftest.py",
        )
    }
    assert chosen == {
        "CHANGELOG.md": [],
        "docs/decisions/index.md": [],
        "src/factbook/outbound/git.py": [
            "tests/system/test_collecting_git.py",
            "tests/system/test_git_garbage.py",
        ],
        "tests/catalog/test_a_new_file.py": [],
        "tests/system/alerts.py": ["tests/system/test_alerts.py"],
        "tests/system/noon.py": ["tests/system/test_every_vendor.py"],
        "tests/system/test_alerts.py": ["tests/system/test_alerts.py"],
        "tests/api/conftest.py": ["tests/api/test_role_matrix.py"],
    }
    rooms = {path for path in SYSTEM if path.startswith("src/") and path.endswith("/")}
    whole = {room for room in rooms if SYSTEM[room] == EVERYTHING}
    assert whole == {"src/factbook/storage/migrations/"}


def test_what_changed_since_the_last_full_run_is_printed_with_its_tests(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    record(repository, commit(repository))
    commit(repository)
    (repository.root / "src/factbook/webhooks/store.py").rename(repository.root / "LICENSE")
    tests = SystemTests(repository)
    assert needed(repository, tests) == ["tests/system/test_webhook_crash.py"]
    assert capsys.readouterr().out.splitlines()[1:] == [
        "  src/factbook/webhooks/store.py: tests/system/test_webhook_crash.py",
        "  2 others: none",
    ]


def record(repository: Repository, text: str) -> None:
    (repository.root / RECORD).parent.mkdir(exist_ok=True)
    (repository.root / RECORD).write_text(text)


def test_every_system_test_runs_when_the_last_full_run_is_unknown(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    repository.git("checkout", "--quiet", "-b", "other")
    other = commit(repository)
    repository.git("checkout", "--quiet", "main")
    tests = SystemTests(repository)
    for text in (None, "\n", "0" * 40, "--all", f"{other} 2026-11-29\n"):
        if text is not None:
            record(repository, text)
        assert needed(repository, tests) == tests.files, text
        assert "All system tests run" in capsys.readouterr().out, text


def test_only_a_commit_without_other_changes_is_recorded(repository: Repository) -> None:
    first = repository.git("rev-parse", "HEAD").strip()
    second = commit(repository)
    assert is_clean_at(repository, second)
    assert not is_clean_at(repository, first)
    assert not is_clean_at(repository, "")
    (repository.root / "untracked").touch()
    assert not is_clean_at(repository, second)


def test_work_in_progress_is_what_is_not_on_main_or_else_the_last_commit(
    repository: Repository,
) -> None:
    (repository.root / "LICENSE").touch()
    commit(repository)
    assert repository.work_in_progress() == ("in the last commit", {"LICENSE"})
    repository.git("checkout", "--quiet", "-b", "feature")
    (repository.root / "README.md").touch()
    commit(repository)
    (repository.root / "untracked").touch()
    (repository.root / "LICENSE").unlink()
    _, changed = repository.work_in_progress()
    assert changed == {"README.md", "untracked", "LICENSE"}


def test_quick_runs_changed_tests_then_those_of_changed_modules_then_those_of_the_room(
    repository: Repository,
) -> None:
    assert nearest(repository, ["src/factbook/webhooks/sender.py"]) == [
        "tests/webhooks/test_sender.py",
        "tests/web/test_pages.py",
        "tests/webhooks/test_retries.py",
    ]
    changed = ["tests/web/test_forms.py", "src/factbook/webhooks/sender.py"]
    assert nearest(repository, changed)[0] == "tests/web/test_forms.py"
    assert nearest(repository, ["tests/webhooks/receiver.py"])[:2] == [
        "tests/system/test_webhook_crash.py",
        "tests/webhooks/test_sender.py",
    ]


def run_pytest(folder: Path, until: str) -> tuple[int, str]:
    """Run the tests of a folder until a time; return the exit status and the line about it."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", PLUGIN, "--until", until, folder],
        cwd=folder,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    [line] = [line for line in done.stdout.splitlines() if line.startswith("Ran ")]
    return done.returncode, re.sub(r"\d+ s", "… s", line)


@pytest.mark.slow
def test_quick_runs_what_its_time_is_enough_for(tmp_path: Path) -> None:
    (tmp_path / "test_prices.py").write_text("def test_a_price():\n    assert False\n")
    assert run_pytest(tmp_path, "inf") == (1, "Ran 1 of 1 tests in … s.")
    assert run_pytest(tmp_path, "0") == (
        0,
        "Ran 0 of 0 tests in … s (test files not read: 1); `make test` runs the rest.",
    )
