"""What is read of repositories, and what it costs."""

import os
from pathlib import Path

import pytest
from starlette.requests import Request
from starlette.responses import Response

from factbook.clock import HOUR
from factbook.outbound.outcomes import Outcome
from tests.fakes.faults import Answer, Fault, not_json, saying, unavailable
from tests.fakes.git import RESULT, FakeGit, commit, git, packet
from tests.integrations.git.asking import APP, EVERYTHING, TOKEN, folders, full
from tests.integrations.git.conftest import Make

HEAD_ONLY = {"refs": 1, "ls-refs": 1}
READ = {"refs": 2, "ls-refs": 2, "fetch": 1}


async def test_every_fact_has_its_value_and_submodules_are_no_files(
    fake: FakeGit, make: Make
) -> None:
    full(fake)
    found = await make(fake).one(APP)
    assert (found.values, found.missing) == (EVERYTHING, {})
    assert folders() == []


@pytest.mark.slow
async def test_of_five_megabytes_a_thousandth_is_transferred(fake: FakeGit, make: Make) -> None:
    contents = {f"large/{number}": os.urandom(1024 * 1024) for number in range(5)}
    commit(fake.folder / f"{APP}.git", contents)
    found = await make(fake).one(APP)
    assert found.values["repository.totalFiles"] == 5
    assert fake.requests == READ
    assert fake.sent < 5 * 1024


async def test_a_host_that_cannot_leave_contents_out_is_read_all_the_same(
    fake: FakeGit, make: Make
) -> None:
    full(fake)
    fake.filters = False
    assert (await make(fake).one(APP)).values == EVERYTHING


@pytest.mark.slow
async def test_while_head_stays_only_head_is_asked_for(fake: FakeGit, make: Make) -> None:
    full(fake)
    collector = make(fake)
    first = await collector.one(APP)
    fake.requests.clear()
    assert await collector.one(APP) == first
    assert fake.requests == HEAD_ONLY
    # Another branch is not the default one.
    commit(fake.folder / f"{APP}.git", {"other": b""}, branch="other")
    assert await collector.one(APP) == first
    fake.requests.clear()
    commit(fake.folder / f"{APP}.git", {"README.md": b""})
    assert (await collector.one(APP)).values["repository.filePaths"] == ["README.md"]
    assert fake.requests == READ
    assert collector.client.health.calls == 6


async def test_names_of_any_bytes_are_read(fake: FakeGit, make: Make) -> None:
    names: dict[str | bytes, bytes] = dict.fromkeys(
        ("a b\tc\nd", 'quo"te', "ünïcode/文", b"latin-\xe9", b"-rf", "blob x", "DOCKERFILE"), b""
    )
    commit(fake.folder / APP, names)
    found = (await make(fake).one(APP)).values
    assert found["repository.filePaths"] == sorted(
        ["a b\tc\nd", 'quo"te', "ünïcode/文", "latin-\ufffd", "-rf", "blob x", "DOCKERFILE"]
    )
    assert found["repository.fileTypes.docker"] == 1


async def test_an_empty_repository_has_no_files(fake: FakeGit, make: Make) -> None:
    git("init", "--quiet", "--bare", str(fake.folder / APP))
    found = await make(fake).one(APP)
    assert found.values["repository.filePaths"] == []
    assert found.values["repository.totalFiles"] == 0
    assert found.values["repository.inCatalog"] is False
    assert found.missing == {}


async def test_a_head_that_leads_nowhere_is_no_empty_repository(fake: FakeGit, make: Make) -> None:
    commit(fake.folder / APP, {"a": b""}, branch="other")
    found = await make(fake).one(APP)
    assert (found.values, found.reasons) == (
        {},
        {"": "not-applicable: its HEAD is a branch that does not exist"},
    )


async def test_a_web_page_is_no_empty_repository(fake: FakeGit, make: Make) -> None:
    full(fake)
    fake.fail("refs", not_json, times=100)
    found = await make(fake).one(APP)
    assert found.values == {}
    assert found.missing[""].outcome is Outcome.TRANSIENT
    assert "does not answer as Git's smart HTTP does" in found.missing[""].detail


async def test_a_host_that_wants_another_ending_is_asked_that_way_from_then_on(
    fake: FakeGit, make: Make
) -> None:
    full(fake)
    moved = saying(None, 301, {"location": f"/{APP}.git/info/refs?service=git-upload-pack"})
    fake.fail("refs", moved)
    collector = make(fake)
    assert (await collector.one(APP)).values == EVERYTHING
    assert fake.requests == READ | {"refs": 3}
    fake.requests.clear()
    assert (await collector.one(APP)).values == EVERYTHING
    assert fake.requests == HEAD_ONLY


@pytest.mark.slow
@pytest.mark.parametrize(
    ("status", "outcome", "refs"),
    [
        (400, Outcome.TRANSIENT, 1),
        (401, Outcome.REFUSED, 1),
        (403, Outcome.DENIED, 1),
        (404, Outcome.NOT_FOUND, 2),
        (410, Outcome.NOT_FOUND, 2),
        (429, Outcome.RATE_LIMITED, 1),
        (500, Outcome.TRANSIENT, 3),
        (503, Outcome.TRANSIENT, 3),
        (301, Outcome.NOT_FOUND, 2),
        (302, Outcome.TRANSIENT, 2),
    ],
)
async def test_what_the_host_says_decides_why_nothing_is_known(
    fake: FakeGit, make: Make, status: int, outcome: Outcome, refs: int
) -> None:
    full(fake)
    fake.fail("refs", saying({"message": "a secret"}, status, {"location": "/b/c"}), times=100)
    collector = make(fake)
    found = await collector.one(APP)
    assert (found.values, found.missing[""].outcome) == ({}, outcome)
    assert "secret" not in found.missing[""].detail
    assert fake.requests == {"refs": refs}
    assert collector.client.health.calls == refs
    assert folders() == []


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("Repository not found: a secret", Outcome.NOT_FOUND),
        ("Access denied: a secret", Outcome.DENIED),
        ("a secret\nfatal: a secret", Outcome.TRANSIENT),
    ],
)
async def test_what_the_host_says_in_words_is_understood_and_not_shown(
    fake: FakeGit,
    make: Make,
    text: str,
    outcome: Outcome,
    capfd: pytest.CaptureFixture[str],
) -> None:
    async def refuse(_: Request, __: Answer) -> Response:
        return Response(packet(f"ERR {text}".encode()), 200, media_type=RESULT)

    full(fake)
    fake.fail("ls-refs", refuse, times=100)
    collector = make(fake)
    found = await collector.one(APP)
    assert found.missing[""].outcome is outcome
    health = repr(collector.client.health)
    assert "a secret" not in found.missing[""].detail + health + "".join(capfd.readouterr())


async def cut(request: Request, answer: Answer) -> Response:
    """A good answer that ends within a packet."""
    response = await answer(request)
    response.body = response.body[: len(response.body) * 2 // 3]
    response.headers["content-length"] = str(len(response.body))
    return response


@pytest.mark.slow
@pytest.mark.parametrize("fault", [unavailable, not_json, saying({}, 429), cut])
async def test_whatever_goes_wrong_is_told_and_the_next_run_reads_everything(
    fake: FakeGit, make: Make, fault: Fault
) -> None:
    full(fake)
    collector = make(fake)
    for kind in ("refs", "ls-refs", "fetch"):
        fake.fail(kind, fault, times=100)
        found = await collector.one(APP)
        assert found.values == {}
        assert found.missing[""].passing
        assert fake.requests[kind]
        assert folders() == []
        fake.recover()
        collector.time.advance(HOUR)
    assert (await collector.one(APP)).values == EVERYTHING


async def test_a_token_is_needed_and_has_to_be_the_right_one(guarded: FakeGit, make: Make) -> None:
    full(guarded)
    assert (await make(guarded, token=TOKEN).one(APP)).values == EVERYTHING
    for table in ({}, {"token": "another"}, {"token": TOKEN, "username": "other"}):
        found = await make(guarded, **table).one(APP)
        assert (found.values, found.reasons[""].partition(":")[0]) == ({}, "forbidden")


async def test_what_a_repository_is_called_explains_nothing(fake: FakeGit, make: Make) -> None:
    full(fake, "proxy/certificate-of-dumb-http")
    fake.fail("ls-refs", cut, times=100)
    found = await make(fake).one("proxy/certificate-of-dumb-http")
    assert found.missing[""].detail == "127.0.0.1: the response is incomplete"


async def test_one_repository_that_is_refused_costs_the_others_nothing(
    fake: FakeGit, make: Make
) -> None:
    full(fake)
    full(fake, "acme/secret")
    fake.forbidden = {"acme/secret"}
    found = await make(fake).collect(APP, "acme/secret", "acme/gone", APP)
    assert found[APP].values == EVERYTHING
    assert found["acme/secret"].missing[""].outcome is Outcome.DENIED
    assert found["acme/gone"].missing[""].outcome is Outcome.NOT_FOUND


async def test_a_repository_of_sha_256_is_read(fake: FakeGit, make: Make) -> None:
    git("init", "--quiet", "--bare", "--object-format=sha256", "-b", "main", str(fake.folder / APP))
    commit(fake.folder / APP, {"a": b""})
    assert (await make(fake).one(APP)).values["repository.filePaths"] == ["a"]


@pytest.mark.slow
async def test_a_name_is_only_ever_a_name(fake: FakeGit, make: Make, temporary: Path) -> None:
    names = ("--upload-pack=touch x", "$(touch x)", "ü;'", "%2e%2e")
    for name in names:
        full(fake, f"acme/{name}")
    found = await make(fake).collect(*(f"acme/{name}" for name in names), names[0])
    assert found.pop(names[0]).missing[""].outcome is Outcome.NOT_FOUND
    assert [one.values for one in found.values()] == [EVERYTHING] * len(names)
    assert os.listdir(temporary) == []  # noqa: PTH208 - quick, and there is nothing to wait for
