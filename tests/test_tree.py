"""With or without Git, checks of the whole repository read the same files."""

import shutil
from pathlib import Path

import pytest

from tests import tree

ROOT = Path(__file__).parents[1]
IGNORED = ("a/__pycache__/b.pyc", ".venv/c", "site/d", "dist/e.whl", "own.db", "node_modules/f/g")
READ = (".gitignore", "README.md", "a/site/h.md", "a/own.db", ".ci/run")


def test_without_git_what_gitignore_names_is_left_out(tmp_path: Path) -> None:
    shutil.copy(ROOT / ".gitignore", tmp_path)
    for name in (*IGNORED, *READ[1:], ".git/config"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    assert {path.relative_to(tmp_path).as_posix() for path in tree.files(tmp_path)} == set(READ)


def test_both_ways_list_the_same_files(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = {path for path in tree.files(ROOT) if path.is_file()}
    assert len(listed) > 1_000
    monkeypatch.setenv("PATH", "")
    assert set(tree.files(ROOT)) >= listed


def test_an_empty_tree_is_an_error(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("*\n")
    with pytest.raises(LookupError, match="no files"):
        tree.files(tmp_path)
