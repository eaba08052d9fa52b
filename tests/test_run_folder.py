"""Test runs leave each other's folders alone, and remove those of runs that ended."""

from pathlib import Path

from tests.run_folder import RunFolder


def test_a_new_run_removes_folders_of_runs_that_ended_and_no_other(tmp_path: Path) -> None:
    other = RunFolder(tmp_path)
    for name in ("factbook-tests-killed", "somebody-elses"):
        (tmp_path / name / "pytest").mkdir(parents=True)
    run = RunFolder(tmp_path)
    kept = {other.path.name, run.path.name, "somebody-elses"}
    assert {path.name for path in tmp_path.iterdir()} == kept


def test_a_folder_goes_with_its_run_unless_it_is_kept(tmp_path: Path) -> None:
    run, failed = RunFolder(tmp_path), RunFolder(tmp_path)
    failed.keep()
    for each in (run, failed):
        (each.path / "file").touch()
        each.remove_unless_kept()
    assert list(tmp_path.iterdir()) == [failed.path]
