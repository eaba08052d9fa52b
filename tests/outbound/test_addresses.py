"""Which addresses a client asks."""

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factbook.errors import ConfigurationError
from factbook.outbound.client import Credential, build_path
from factbook.outbound.outcomes import Answer, Outcome
from tests.outbound.asking import Host, asking, json

SECRET = "ghp_averysecrettoken"
TOKEN = Credential.fixed("acme", {"Authorization": f"Bearer {SECRET}"})


async def test_nothing_is_sent_to_an_address_that_is_not_the_clients(
    subtests: pytest.Subtests,
) -> None:
    targets = [
        "https://evil.example/x",
        "http://api.example.com/v3/x",
        "https://api.example.com:8443/x",
        "https://api.example.com@evil.example/x",
        "https://user@api.example.com/x",
        "https:\\\\evil.example\\x",
        "//evil.example/x",
        "HTTPS://evil.example",
        "ftp://api.example.com/x",
        "https://api.example.com.evil.example/x",
        "https://api.example.com:x/",
        "a/../../../admin",
        "a/%2e%2e/b",
        "a/./b",
        "a/%2E%2e%2Fb",
        "a b",
        "a\r\nX-Header: 1",
        "a\x00",
        "a#b",
    ]
    for target in targets:
        with subtests.test(target=target):
            host = Host(json(200, {}))
            answer = await asking(host, credential=TOKEN).get(target)
            assert host.requests == []
            assert answer.outcome is Outcome.TRANSIENT
            assert answer.detail.startswith(
                "api.example.com: led to an address outside its base URL"
            )


@pytest.mark.slow
@given(st.text())
async def test_whatever_a_target_is_the_request_stays_on_its_origin(target: str) -> None:
    host = Host(json(200, {}))
    await asking(host).get(target)
    assert all(request.url.host == "api.example.com" for request in host.requests)
    assert all(request.url.scheme == "https" for request in host.requests)


@pytest.mark.slow
@given(st.lists(st.text(min_size=1), min_size=1, max_size=3))
async def test_segments_of_a_path_arrive_as_they_were(segments: list[str]) -> None:
    host = Host(json(200, {}))
    if {".", ".."} & set(segments) or any(_surrogate(segment) for segment in segments):
        return
    await asking(host).get(build_path("repos", *segments))
    for request in host.requests:
        raw = request.url.raw_path.decode().removeprefix("/v3/repos/")
        assert [httpx2.URL(f"https://x/{part}").path[1:] for part in raw.split("/")] == segments


def _surrogate(text: str) -> bool:
    return any(0xD800 <= ord(letter) <= 0xDFFF for letter in text)


@pytest.mark.parametrize("segment", ["", ".", ".."])
def test_a_segment_that_names_another_place_is_refused(segment: str) -> None:
    with pytest.raises(ValueError, match="segment"):
        build_path("repos", segment)


async def test_a_whole_address_on_the_same_origin_is_asked() -> None:
    host = Host(
        json(200, [], Link='<https://api.example.com/v3/x?page=2>; rel="next"'), json(200, [])
    )
    client = asking(host)
    following = (await client.get("x")).link("next")
    assert following is not None
    await client.get(following)
    assert str(host.last.url) == "https://api.example.com/v3/x?page=2"


def test_the_address_of_a_relation_is_found() -> None:
    expected: dict[str, str | None] = {
        '<https://a/1>; rel="prev", <https://a/2>; rel="next"': "https://a/2",
        "<https://a/2>; rel=next": "https://a/2",
        '<https://a/2>; results="true"; cursor="0:1,2:0"; rel="next last"': "https://a/2",
        '<https://a/1>; rel="prev"': None,
        '<https://a/1>; rel="", <https://a/2>; rel=next': "https://a/2",
        "": None,
        "next": None,
    }
    assert {
        header: Answer(Outcome.OK, headers={"link": header}).link("next") for header in expected
    } == expected


def test_a_base_url_that_is_not_one_is_refused_without_repeating_it(
    subtests: pytest.Subtests,
) -> None:
    bases = [
        "api.example.com",
        "ftp://x",
        "https://",
        "https://u:p@x",
        "https://x/?a=1",
        "https://x y",
    ]
    for base in bases:
        with subtests.test(base=base):
            with pytest.raises(ConfigurationError) as refused:
                asking(Host(json(200, {})), base_url=base)
            assert "u:p" not in str(refused.value)


async def test_a_redirect_is_not_followed_unless_the_caller_wishes() -> None:
    moved = json(301, {}, location="https://api.example.com/v3/repositories/7")
    host = Host(moved, json(200, {"id": 7}))
    client = asking(host)
    answer = await client.get("repos/a/b")
    assert (answer.outcome, answer.status, len(host.requests)) == (Outcome.TRANSIENT, 301, 1)
    host.answers.insert(0, moved)
    answer = await client.get("repos/a/b", follow=True)
    assert (answer.data, host.last.url.path) == ({"id": 7}, "/v3/repositories/7")


@pytest.mark.parametrize(
    "location",
    ["https://evil.example/", "//evil.example", "http://api.example.com/", "http://["],
)
async def test_a_redirect_to_another_origin_is_never_followed(location: str) -> None:
    host = Host(json(302, {}, location=location))
    answer = await asking(host, credential=TOKEN).get("x", follow=True)
    assert len(host.requests) == 1
    assert answer.outcome is Outcome.TRANSIENT


async def test_redirects_in_a_circle_end() -> None:
    host = Host(json(302, {}, location="/v3/y"))
    answer = await asking(host).get("x", follow=True)
    assert (len(host.requests), answer.outcome) == (4, Outcome.TRANSIENT)


async def test_a_posted_question_is_not_turned_into_another_by_a_redirect() -> None:
    host = Host(json(302, {}, location="/v3/y"))
    assert (await asking(host).post("x", {}, follow=True)).status == 302
