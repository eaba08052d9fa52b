"""Signing in and out: the form, the session, and what keeps others out."""

import pytest

from factbook.auth import invitations
from factbook.clock import DAY, HOUR, MINUTE
from tests.service import Service
from tests.web.visiting import PASSWORD, Browser, add_person, browser, signed_in, words


async def test_who_is_not_signed_in_is_led_to_the_form_and_back(service: Service) -> None:
    await add_person(service, "ada")
    visitor = browser(service)
    answer = await visitor.open("/administration/account")
    assert answer.status_code == 303
    assert answer.headers["location"] == "/sign-in?next=%2Fadministration%2Faccount"
    answer = await visitor.sign_in("ada", next="/administration/account")
    assert answer.headers["location"] == "/administration/account"
    assert "Ada" in await visitor.text("/administration/account")
