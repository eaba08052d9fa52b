"""Links that work once, and make accounts."""

import asyncio
from typing import Any

import pytest

from factbook.auth import invitations, users
from factbook.clock import DAY
from tests.service import Service
from tests.web.visiting import PASSWORD, add_person, browser, words

ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


async def link(service: Service, **given: Any) -> str:
    """The path of a new invitation."""
    secret, key, now = (
        invitations.generate_invitation_secret(),
        service.state.token_key,
        service.time(),
    )
    fields = {"role": "viewer", "made_by": "test", "now": now, "lifetime": DAY, **given}
    digest = invitations.hash_invitation_secret(secret, key)
    await service.state.database.write(
        lambda tx: invitations.create_invitation(tx, digest=digest, **fields)
    )
    return f"/welcome/{secret}"


@pytest.mark.both_databases
async def test_a_link_that_two_use_at_once_lets_in_one(service: Service) -> None:
    path = await link(service)
    visitors = [browser(service), browser(service)]
    for each in visitors:
        await each.text(path)
    answers = await asyncio.gather(
        *(
            each.send(path, name=name, password=PASSWORD, again=PASSWORD)
            for each, name in zip(visitors, ("kim", "lou"), strict=True)
        )
    )
    assert sorted(answer.status_code for answer in answers) == [303, 404]
    assert len(await users.list_users(service.state.database)) == 1
    assert (await visitors[0].open(path)).status_code == 404


@ON_SQLITE
@pytest.mark.parametrize(
    ("fields", "status", "wrong"),
    [
        ({"name": "a b"}, 400, "A name has 1 to 63 characters"),
        ({"name": ""}, 400, "A name has 1 to 63 characters"),
        ({"name": "ADA"}, 409, "There is already a person user:default/ada."),
        ({"password": "short", "again": "short"}, 400, "A password has 12 to 256 characters."),
        ({"again": "something else"}, 400, "The two passwords differ."),
        ({"name": "k" * 12, "password": "k" * 12, "again": "k" * 12}, 400, "must not be"),
    ],
    ids=str,
)
async def test_what_makes_no_account_leaves_the_link_as_it_was(
    service: Service, fields: dict[str, str], status: int, wrong: str
) -> None:
    await add_person(service, "ada")
    path = await link(service)
    visitor = browser(service)
    await visitor.text(path)
    answer = await visitor.send(
        path, **{"name": "kim", "password": PASSWORD, "again": PASSWORD, **fields}
    )
    assert answer.status_code == status
    assert wrong in answer.text
    sent = {"name": "kim", "password": PASSWORD, "again": PASSWORD}
    assert (await visitor.send(path, **sent)).status_code == 303


async def test_an_invitation_gives_no_role_but_its_own(service: Service) -> None:
    """OWASP mass assignment: further fields count for nothing."""
    path = await link(service)
    visitor = browser(service)
    await visitor.text(path)
    more = {"role": "administrator", "ref": "user:default/ada", "issuer": "x"}
    await visitor.send(path, name="kim", password=PASSWORD, again=PASSWORD, **more)
    [kim] = await users.list_users(service.state.database)
    assert (kim.ref, kim.role, kim.issuer) == ("user:default/kim", "viewer", None)


async def test_the_address_of_a_link_is_told_to_no_other_page_and_recorded_nowhere(
    service: Service,
) -> None:
    path = await link(service)
    visitor = browser(service)
    answer = await visitor.open(path)
    assert answer.headers["referrer-policy"] == "strict-origin"
    assert answer.headers["cache-control"] == "no-store"
    refused = await visitor.send(path, csrf="wrong", name="kim")
    assert refused.status_code == 403
    await service.state.refusals.write()
    rows = str(await service.state.database.all("SELECT * FROM audit"))
    assert "call.refused" in rows
    assert path.removeprefix("/welcome/") not in rows
    metrics = (await service.http.get("/metrics")).text
    assert path.removeprefix("/welcome/") not in metrics


async def test_the_welcome_page_says_what_the_link_makes(service: Service) -> None:
    page = words(await browser(service).text(await link(service)))
    assert "This link creates one account, with the role viewer. It works once." in page
    gone = await browser(service).text("/welcome/gone", 404)
    assert "This link has been used or has expired" in gone
