"""The checks of `python -m tests.supply`, each on something that is wrong."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.supply import advisories, audit_record, licences, tracked
from tests.supply.advisories import Audit

LOCK = """\
# made by make lock
good==1.0 \\
    --hash=sha256:00
elsewhere==2.0 ; sys_platform == 'win32' \\
    --hash=sha256:00
odd==3.0 \\
    --hash=sha256:00
"""


# Licences


@pytest.mark.spec("security.packages-are-checked")
def test_a_package_with_a_licence_that_is_not_allowed_is_named() -> None:
    found = licences.problems(LOCK, {"good": "MIT", "odd": "AGPL-3.0-only"}.get)
    assert found == ['odd has the licence "AGPL-3.0-only"']


def test_a_package_that_says_nothing_of_its_licence_is_named() -> None:
    found = licences.problems(LOCK, {"good": "MIT", "odd": ""}.get)
    assert found == ['odd has the licence "unknown"']


def test_a_package_that_is_not_installed_is_named_unless_it_is_for_another_system() -> None:
    [found] = licences.problems(LOCK, {"good": "MIT"}.get)
    assert found.startswith("odd is not installed")


def test_of_several_licences_one_can_be_chosen_and_of_a_sum_each_counts(
    subtests: pytest.Subtests,
) -> None:
    expected = {
        "MIT": True,
        "MIT OR GPL-3.0-only": True,
        "MIT AND GPL-3.0-only": False,
        "(Apache-2.0 AND CNRI-Python)": True,
        "": False,
        "Proprietary": False,
    }
    for expression, allowed in expected.items():
        with subtests.test(expression=expression):
            assert licences.is_allowed(expression) is allowed


# Advisories

VULNERABLE = {
    "name": "odd",
    "version": "3.0",
    "vulns": [{"id": "PYSEC-1", "fix_versions": ["3.1"]}],
}
SOUND: dict[str, Any] = {"name": "good", "version": "1.0", "vulns": []}
SKIPPED = {"name": "good", "skip_reason": "Dependency not found on PyPI"}


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    path = tmp_path / "runtime.lock"
    path.write_text(LOCK)
    return path


@pytest.mark.spec("security.packages-are-checked")
def test_an_advisory_is_named_with_what_mends_it(lock: Path) -> None:
    def ask(_service: str, files: Sequence[Path]) -> list[dict[str, Any]]:
        return [SOUND, VULNERABLE] if files == [lock] else [SOUND]

    assert advisories.audit([lock], ask) == Audit(["odd 3.0: PYSEC-1, mended in 3.1"], [], "pypi")


@pytest.mark.parametrize("answer", [None, [], [SKIPPED]])
def test_a_service_that_answers_nothing_is_no_audit(
    lock: Path, answer: list[dict[str, Any]] | None
) -> None:
    """Neither does one count that says of everything that it does not know it."""
    assert advisories.audit([lock], lambda _service, _files: answer) is None


def test_another_service_is_asked_when_the_first_is_out_of_reach(lock: Path) -> None:
    def ask(service: str, _files: Sequence[Path]) -> list[dict[str, Any]] | None:
        return None if service == advisories.SERVICES[0] else [SOUND]

    assert advisories.audit([lock], ask) == Audit([], [], "osv")


def test_a_package_that_the_service_does_not_know_is_told(lock: Path) -> None:
    def ask(_service: str, files: Sequence[Path]) -> list[dict[str, Any]]:
        return [SOUND, {**SKIPPED, "name": "odd"}] if files == [lock] else [SOUND]

    assert advisories.audit([lock], ask) == Audit([], ["odd"], "pypi")


def test_findings_fail_the_check_wherever_a_service_answers(lock: Path) -> None:
    record = lock.with_name("audit.json")
    for answer in ([SOUND, VULNERABLE], [SOUND, {**SKIPPED, "name": "odd"}]):
        answers = {lock: answer}

        def ask(_service: str, files: Sequence[Path], answers: Any = answers) -> Any:
            return answers.get(files[0], [SOUND])

        outcome = advisories.checked([lock], record, record_on="2026-11-22", ask=ask)
        assert outcome.failed
        assert "odd" in outcome.lines[0]
    assert not record.exists()


def test_a_service_that_breaks_off_is_not_taken_for_one_out_of_reach(lock: Path) -> None:
    def ask(_service: str, files: Sequence[Path]) -> list[dict[str, Any]] | None:
        return None if files == [lock] else [SOUND]

    outcome = advisories.checked([lock], lock.with_name("audit.json"), ask=ask)
    assert outcome.failed
    assert outcome.lines == ["osv answers for one package and not for all"]


@pytest.mark.spec("security.packages-are-checked")
def test_where_no_service_answers_the_last_audit_is_told(lock: Path) -> None:
    record = lock.with_name("audit.json")

    def told(ask: Any = lambda _service, _files: None) -> str:
        outcome = advisories.checked([lock], record, ask=ask)
        assert not outcome.failed
        return outcome.lines[0].partition("; ")[2]

    record.write_text("{}")
    assert told() == "no audit has been possible so far"
    sound = advisories.checked([lock], record, record_on="2026-11-22", ask=lambda *_: [SOUND])
    assert sound == ([], False)
    assert told() == "the last audit was on 2026-11-22 (pypi)"
    lock.write_text(LOCK + "# changed\n")
    assert told() == "the last audit was on 2026-11-22 (pypi), before changes to runtime.lock"


@pytest.mark.parametrize("how", [{"required": True}, {"record_on": "2026-11-22"}])
def test_an_audit_that_is_asked_for_fails_where_no_service_answers(lock: Path, how: Any) -> None:
    record = lock.with_name("audit.json")
    record.write_text("{}")
    outcome = advisories.checked([lock], record, ask=lambda *_: None, **how)
    assert outcome.failed
    assert record.read_text() == "{}"


def test_the_record_of_the_repository_names_its_locks_alone() -> None:
    requirements = Path(__file__).parents[2] / "requirements"
    record = audit_record.load(requirements / "audit.json")
    assert set(record.locks) <= {lock.name for lock in requirements.glob("*.lock")}
    assert (record.audited_on is None) == (not record.locks)


# Secrets in files

# In two pieces, so that this file holds nothing that looks like a secret.
PLACED = {
    "private_key": "-----BEGIN PRIVATE "
    + "KEY-----\n"
    + "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSj",
    "github": "gh" + "p_16C7e42F292c6912E7710c838347Ae178B4a",
    "aws": "AK" + "IAIOSFODNN7EXAMPLE",
    "factbook": "fb" + "k_9RDL5ZFTSuTIswYvwn9ffKPyY7Z2ahbBaMag9AvS2wU78K",
    "random": "api_key" + ' = "q7Rz0LmX3vB8nT5yW2kD9cF6"',
}


@pytest.mark.parametrize("kind", PLACED)
def test_what_looks_like_a_secret_is_found_and_not_repeated(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "settings.py"
    file.write_text(f"# first line\nX = 1\n{PLACED[kind]}\n")
    [found] = tracked.problems(tmp_path, [file])
    assert found == f"settings.py:3 holds what looks like a secret ({kind})"


def test_what_is_plainly_no_secret_is_left_alone(subtests: pytest.Subtests) -> None:
    texts = [
        "token = tokens.generate()",
        'TOKEN_KEY = "a key of tests, long enough to be one"',
        "fbk_" + "0" * 46,
        "secret: str = Field(description=...)",
        "FACTBOOK_TOKEN_KEY=<the output of: openssl rand -hex 32>",
    ]
    for text in texts:
        with subtests.test(text=text):
            assert tracked.suspicious(text) == []
