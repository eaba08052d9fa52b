"""A person signs in at a real OpenID Connect provider, with the pages of its own."""

import html
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qsl, urljoin, urlsplit

import httpx2
import pytest

from factbook.auth.oidc.client import OpenID, connect_openid
from factbook.auth.oidc.identity import Attempt, Identity, choose_role
from factbook.errors import SignInError
from factbook.settings import Settings
from tests.contracts.node import HERE, NODE

pytestmark = pytest.mark.system

REDIRECT = "https://factbook.example.com/sign-in/openid/callback"
SECRET = "a secret: with +, % and / in it, long enough to be one"
_FORM = re.compile(r'<form[^>]* action="([^"]+)"')
_PROMPT = re.compile(r'name="prompt" value="(\w+)"')
_ABORT = re.compile(r'href="([^"]+/abort)"')


@pytest.fixture(scope="module")
def issuer() -> Iterator[str]:
    """The address of the provider."""
    with provided() as url:
        yield url


@contextmanager
def provided(redirect: str = REDIRECT) -> Iterator[str]:
    program: list[str | Path] = [NODE, HERE / "openid.mjs", redirect, SECRET]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            url = process.stdout.readline().strip()
            assert url, "the provider did not start"
            yield url
        finally:
            process.terminate()


def at(issuer: str, client_id: str, client_secret: str, **options: object) -> OpenID:
    table = {"issuer": issuer, "client_id": client_id, "client_secret": client_secret, **options}
    found = connect_openid(Settings(openid=table, outgoing_networks=["127.0.0.0/8"]))
    assert found is not None
    return found


def visited(url: str, name: str, *, abort: bool = False) -> dict[str, str]:
    """The query that a browser comes back with, in which somebody of this name signs in."""
    with httpx2.Client(timeout=60) as browser:
        answer = browser.get(url)
        for _ in range(20):
            if answer.is_redirect:
                place = urljoin(str(answer.url), answer.headers["location"])
                if place.startswith(REDIRECT):
                    return dict(parse_qsl(urlsplit(place).query))
                answer = browser.get(place)
                continue
            assert answer.status_code == 200, answer.text
            link, form, prompt = (each.search(answer.text) for each in (_ABORT, _FORM, _PROMPT))
            assert link, answer.text
            assert form, answer.text
            assert prompt, answer.text
            if abort:
                answer = browser.get(urljoin(str(answer.url), html.unescape(link[1])))
                continue
            data = {"prompt": prompt[1], "login": name, "password": "any"}
            answer = browser.post(urljoin(str(answer.url), html.unescape(form[1])), data=data)
    raise AssertionError("The provider never led back.")


async def sign_in(openid: OpenID, name: str) -> Identity:
    url, attempt = await openid.begin(REDIRECT)
    return await openid.finish(attempt, visited(url, name), REDIRECT)


@pytest.mark.spec("people.openid-connect")
@pytest.mark.parametrize(("client", "secret"), [("confidential", SECRET), ("public", "")])
async def test_people_sign_in_with_and_without_a_secret_of_the_client(
    issuer: str, client: str, secret: str
) -> None:
    openid = at(issuer, client, secret, administrator_groups=["friends-of-root"])
    groups = ("everybody", "friends-of-jane")
    jane = Identity(issuer, "jane", "jane", "jane of the tests", "jane@example.com", groups)
    assert (await sign_in(openid, "jane"))._replace(login=None) == jane
    assert choose_role(jane, openid.options) == "viewer"
    assert choose_role(await sign_in(openid, "root"), openid.options) == "administrator"
    await openid.aclose()


async def test_who_stops_at_the_provider_is_not_signed_in(issuer: str) -> None:
    openid = at(issuer, "confidential", SECRET)
    url, attempt = await openid.begin(REDIRECT)
    with pytest.raises(SignInError, match="did not sign you in: access_denied"):
        await openid.finish(attempt, visited(url, "jane", abort=True), REDIRECT)
    await openid.aclose()


async def test_a_code_is_good_once(issuer: str) -> None:
    openid = at(issuer, "public", "")
    url, attempt = await openid.begin(REDIRECT)
    query = visited(url, "jane")
    assert (await openid.finish(attempt, query, REDIRECT)).subject == "jane"
    with pytest.raises(SignInError, match="did not take the code: invalid_grant"):
        await openid.finish(attempt, query, REDIRECT)
    await openid.aclose()


async def test_a_code_without_its_verifier_or_the_right_secret_is_worth_nothing(
    issuer: str,
) -> None:
    openid, other = at(issuer, "confidential", SECRET), at(issuer, "confidential", "another")
    url, attempt = await openid.begin(REDIRECT)
    query = visited(url, "jane")
    with pytest.raises(SignInError, match="did not take the code: invalid_client"):
        await other.finish(attempt, query, REDIRECT)
    _, second = await openid.begin(REDIRECT)
    mixed = Attempt(attempt.state, attempt.nonce, second.code_verifier, attempt.expires_at)
    with pytest.raises(SignInError, match="did not take the code: invalid_grant"):
        await openid.finish(mixed, query, REDIRECT)
    await openid.aclose()
    await other.aclose()
