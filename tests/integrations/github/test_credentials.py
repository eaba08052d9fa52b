"""An app signs for its tokens, keeps each until it is about to expire, and says when it cannot."""

from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from factbook.clock import HOUR, MINUTE, SECOND
from tests.fakes import faults
from tests.fakes.github.app import App, FakeGitHub
from tests.fakes.github.faults import of_another_form
from tests.fakes.github.state import Token
from tests.integrations.github.asking import EVERYTHING, Collector, full
from tests.service import Time


def keys() -> tuple[str, str]:
    """A private key, and its public one, in PEM."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return private.decode(), public.decode()


PRIVATE, PUBLIC = keys()
TABLE: dict[str, Any] = {
    "token": "",
    "app_id": "Iv1.abc",
    "installation_id": "42",
    "private_key": PRIVATE,
}


def installed(**table: Any) -> tuple[FakeGitHub, Collector]:
    """A fake with an app that has all rights, and the integration configured as that app."""
    time = Time()
    fake = FakeGitHub([full()], clock=time)
    rights = Token("", is_app=True, reads_administration=True)
    fake.apps.append(App("Iv1.abc", "42", PUBLIC, rights))
    return fake, Collector(fake, time, **TABLE | table)


@pytest.mark.slow
async def test_an_app_collects_with_one_token_for_an_hour() -> None:
    fake, collector = installed()
    for _ in range(58):
        assert (await collector.one()).values == EVERYTHING
        collector.time.advance(MINUTE)
    assert fake.requests["app"] == 1


async def test_a_token_is_renewed_a_minute_before_it_expires() -> None:
    fake, collector = installed()
    await collector.one()
    collector.time.advance(HOUR - MINUTE - SECOND)
    await collector.one()
    assert fake.requests["app"] == 1
    collector.time.advance(SECOND)
    assert (await collector.one()).values == EVERYTHING
    assert fake.requests["app"] == 2


async def test_after_a_clock_was_set_back_an_app_gets_another_token() -> None:
    fake, collector = installed()
    await collector.one()
    collector.time.advance(-24 * HOUR)
    await collector.one()
    assert fake.requests["app"] == 2


async def test_an_app_that_is_not_known_is_forbidden_everything() -> None:
    fake, collector = installed(installation_id="43")
    collected = await collector.one()
    assert collected.reasons[""].startswith("forbidden: ")
    assert fake.requests == {"app": 1}


async def test_a_key_that_is_not_the_apps_is_refused() -> None:
    _, collector = installed(private_key=keys()[0])
    assert (await collector.one()).reasons[""].startswith("forbidden: ")


async def test_a_key_that_is_none_is_refused_without_a_call() -> None:
    fake, collector = installed(private_key="-----BEGIN RSA PRIVATE KEY-----\nno\n")
    collected = await collector.one()
    assert collected.reasons[""] == "forbidden: the app's private key cannot be used"
    assert fake.requests == {}


async def test_a_key_may_stand_in_one_line() -> None:
    _, collector = installed(private_key=PRIVATE.replace("\n", "\\n"))
    assert (await collector.one()).values == EVERYTHING


@pytest.mark.slow
async def test_a_token_that_cannot_be_had_in_passing_is_asked_for_again() -> None:
    fake, collector = installed()
    fake.fail("app", faults.not_json, times=10)
    assert (await collector.one()).passing == {""}
    fake.recover()
    fake.fail("app", of_another_form, times=2)
    assert (await collector.one()).passing == {""}
    assert (await collector.one()).values == EVERYTHING


async def test_answers_are_kept_for_the_app_rather_than_for_its_token() -> None:
    fake, collector = installed()
    repository = fake.repositories[0]
    repository.alerts = {}
    await collector.one()
    collector.time.advance(25 * HOUR)
    await collector.one()
    assert fake.requests["app"] == 2
    assert fake.not_modified == 1
