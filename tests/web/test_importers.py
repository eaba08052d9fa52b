"""The pages that make importers: their options, and secrets that nobody sees again."""

import asyncio
from functools import partial
from typing import Any

import pytest

from factbook.clock import SECOND
from factbook.errors import InputError
from factbook.importers import importer_store, records, registry
from factbook.importers.importer import Importer
from factbook.importers.registry import ImporterRegistry
from factbook.importers.runner import ImportRunner
from factbook.integrations.integration import Integration
from factbook.outbound.client import HttpClient
from factbook.settings import Settings
from tests.conftest import StartService
from tests.service import Service
from tests.web.markup import elements
from tests.web.visiting import Browser, signed_in, words

NEW = "/importers/new"
EDIT = "/importers/github-acme/edit"
SECRET = "ghp_s3cr3t_value"


def fields(**more: str) -> dict[str, str]:
    """The form of a sound importer."""
    return {
        "kind": "github",
        "name": "acme",
        "every": "6h",
        "organizations": "acme\n umbrella ",
        "archived": "yes",
        "account.host": "github.com",
        "account.token": SECRET,
        **{name.replace("__", "."): value for name, value in more.items()},
    }


async def made(service: Service, **more: str) -> Browser:
    """A person who has made an importer."""
    visitor = await signed_in(service)
    done = await visitor.done(NEW, **fields(**more))
    assert "The importer github-acme was made." in done
    return visitor


async def known(service: Service) -> Importer:
    return (await service.state.importers.latest())["github-acme"]


async def sealed(service: Service) -> bytes:
    [row] = await importer_store.list_importer_rows(service.state.database)
    return bytes(row[4] or b"")


async def token_of(service: Service, importer: Importer) -> Any:
    """The header that the importer's calls have."""
    client = service.state.connect(importer.integration)
    return await client._credential.authorize()


async def test_an_importer_is_made_and_listed_without_its_secret(service: Service) -> None:
    visitor = await made(service)
    importer = await known(service)
    assert (importer.title, importer.every) == ("GitHub (acme)", 6 * 3600 * SECOND)
    assert "GitHub (acme)" in words(await visitor.text("/imports"))
    page = await visitor.text(EDIT)
    assert "acme\numbrella" in page
    assert 'value="6h"' in page
    assert SECRET not in page
    assert SECRET.encode() not in await sealed(service)
    assert SECRET in str(await token_of(service, importer))


async def test_a_change_keeps_the_secret_that_is_not_given_again(service: Service) -> None:
    visitor = await made(service)
    service.time.advance(SECOND)
    done = await visitor.done(EDIT, **fields(every="1d", account__token=""))
    assert "The importer github-acme was changed." in done
    importer = await known(service)
    assert importer.every == 24 * 3600 * SECOND
    assert SECRET in str(await token_of(service, importer))
    service.time.advance(SECOND)
    await visitor.done(EDIT, **fields(account__token="ghp_other"))
    assert "ghp_other" in str(await token_of(service, await known(service)))


@pytest.mark.parametrize(
    "more",
    [
        {"account__host": "evil.example.com"},
        {"account__api_url": "https://evil.example.com"},
    ],
)
async def test_a_secret_is_never_sent_to_another_host(
    service: Service, more: dict[str, str]
) -> None:
    visitor = await made(service)
    answer = await visitor.send(EDIT, **fields(account__token="", **more))
    assert answer.status_code == 400
    assert "has to be given again, because the host is another one" in words(answer.text)
    assert (await known(service)).integration.base_url == "https://api.github.com"


async def test_a_secret_is_removed_when_another_takes_its_place(service: Service) -> None:
    visitor = await made(service)
    app = {"account__app_id": "7", "account__installation_id": "8", "account__private_key": "PEM"}
    both = await visitor.send(EDIT, **fields(account__token="", **app))
    assert (both.status_code, "either a token or an app" in words(both.text)) == (400, True)
    assert "PEM" not in both.text.partition("<form class")[2].replace("in PEM", "")
    await visitor.done(EDIT, remove="account.token", **fields(account__token="", **app))
    stored = await importer_store.get_stored_importer(service.state.database, "github-acme")
    assert stored is not None
    assert set(stored.options.secrets) == {"account.private_key"}


async def test_a_mistake_is_told_and_nothing_is_saved(
    service: Service, subtests: pytest.Subtests
) -> None:
    visitor = await signed_in(service)
    cases: list[tuple[dict[str, str], str]] = [
        ({"name": "A b"}, "a name is of lower-case letters"),
        ({"every": "soon"}, "every has to be between 1m and 30d"),
        ({"organizations": ""}, "Organizations : is needed"),
        ({"account__host": "no host"}, "host has to be a host name"),
        ({"account__token": ""}, "either a token or an app is needed"),
        ({"account__token": "x" * 16_001}, "is longer than 16000"),
    ]
    for more, said in cases:
        with subtests.test(more=more):
            answer = await visitor.send(NEW, **fields(**more))
            assert (answer.status_code, said in words(answer.text)) == (400, True), words(
                answer.text
            )
            assert SECRET not in answer.text
            assert await importer_store.list_importer_rows(service.state.database) == []


async def test_a_mistake_is_told_beside_its_field_and_other_values_are_kept(
    service: Service, subtests: pytest.Subtests
) -> None:
    visitor = await signed_in(service)
    cases: list[tuple[dict[str, str], str]] = [
        ({"name": "A b"}, "name"),
        ({"every": "soon"}, "every"),
        ({"organizations": ""}, "organizations"),
        ({"account__host": "no host"}, "account.host"),
        ({"account__token": ""}, "account.token"),
    ]
    for more, field in cases:
        with subtests.test(more=more, field=field):
            page = (await visitor.send(NEW, **fields(files="a.yaml\nb.yaml", **more))).text
            [wrong] = [one for _, one in elements(page) if one.get("aria-invalid") == "true"]
            assert wrong["id"] == field
            assert f'href="#{field}"' in page
            beside = {one["id"] for _, one in elements(page) if one.get("id", "").startswith(field)}
            assert set(wrong["aria-describedby"].split()) <= beside
            assert "a.yaml\nb.yaml" in page
            assert f'value="{more.get("every", "6h")}"' in page


async def test_a_change_is_followed_by_a_run_unless_there_is_none_by_itself(
    service: Service,
) -> None:
    visitor = await made(service)
    assert "waiting" not in words(await visitor.text("/imports/github-acme"))
    await visitor.done(EDIT, **fields(every="never", account__token=""))
    assert "waiting" not in words(await visitor.text("/imports/github-acme"))
    await visitor.done(EDIT, **fields(account__token=""))
    assert "waiting" in words(await visitor.text("/imports/github-acme"))


async def test_a_run_that_follows_a_change_uses_it_in_a_process_that_read_the_importer_before(
    service: Service,
) -> None:
    visitor = await made(service)
    state = service.state
    elsewhere = ImporterRegistry(state.database, [], {}, service.time, state.importers._key)
    before = (await elsewhere.current())["github-acme"]
    await visitor.done(EDIT, **fields(account__token="ghp_another_secret"))
    assert (await elsewhere.current())["github-acme"] is before
    used: list[Integration] = []

    def connect(integration: Integration) -> HttpClient:
        used.append(integration)
        raise InputError("Nothing is read in this test.")

    runner = ImportRunner(state.database, Settings(), elsewhere, connect, service.time, "elsewhere")
    await runner.drain()
    tokens = [await state.connect(one)._credential.authorize() for one in used]
    assert tokens == [{"authorization": "Bearer ghp_another_secret"}]


async def test_every_field_that_is_needed_is_told_at_once(service: Service) -> None:
    visitor = await signed_in(service)
    form = {"kind": "gitea", "name": "acme", "organizations": "acme"}
    answer = await visitor.send(NEW, **form)
    assert "Host : is needed Token : is needed" in words(answer.text)
    nothing = await visitor.send(NEW, kind="github", name="acme")
    assert "Organizations : is needed with a credential of its own" in words(nothing.text)
    assert "Empty: those of the integration. Needed with a credential of its own." in nothing.text
    done = await visitor.done(NEW, **form, **{"account.host": "g.test", "account.token": SECRET})
    assert "The importer gitea-acme was made." in done
    kept = {"account.host": "g.test", "account.token": "", "every": "2h"}
    edit = "/importers/gitea-acme/edit"
    assert "The importer gitea-acme was changed." in await visitor.done(edit, **form, **kept)
    removed = await visitor.send(edit, remove="account.token", **form, **kept)
    assert "Token : is needed" in words(removed.text)


async def test_a_form_has_what_an_import_of_its_kind_needs_and_no_more(service: Service) -> None:
    visitor = await signed_in(service)
    found = {}
    for kind in registry.list_offered_kinds():
        page = await visitor.text(f"{NEW}?kind={kind.id}")
        found[kind.id] = [one["name"] for _, one in elements(page) if "name" in one]
    accounts = {id_: {n for n in names if "." in n} for id_, names in found.items()}
    assert accounts["catalog"] == set()
    assert accounts["gitlab"] == accounts["gitea"] == {
        "account.host", "account.token", "account.api_url"
    }  # fmt: skip
    assert "account.exclude_bots" not in accounts["github"]
    assert found["catalog"].index("address") < found["catalog"].index("every")


async def test_a_name_that_is_taken_is_refused(service: Service) -> None:
    visitor = await made(service)
    answer = await visitor.send(NEW, **fields())
    assert answer.status_code == 409
    assert "is the name of an importer that there is already" in words(answer.text)


@pytest.mark.both_databases
async def test_of_two_that_make_one_name_at_once_the_second_is_refused(service: Service) -> None:
    visitor = await signed_in(service)
    answers = await asyncio.gather(
        *(visitor.send(NEW, **fields(organizations=login)) for login in ("one", "two"))
    )
    assert sorted(answer.status_code for answer in answers) == [303, 409]
    page = await visitor.text(EDIT)
    first = "one" if answers[0].status_code == 303 else "two"
    assert f">{first}</textarea>" in page
    [refused] = [one.text for one in answers if one.status_code == 409]
    assert "is the name of an importer that there is already" in words(refused)
    assert SECRET not in refused


async def test_an_importer_with_the_credential_of_the_settings_has_none_of_its_own(
    start: StartService,
) -> None:
    table = {"token": "ghp_of_the_settings"}
    service = await start(integrations={"github": {"default": table}})
    visitor = await made(service, integration="default")
    assert "[integrations.github.default]" in await visitor.text(NEW + "?kind=github")
    assert await sealed(service) == b""
    importer = await known(service)
    assert importer.integration.credential == "github"
    assert "ghp_of_the_settings" in str(await token_of(service, importer))


async def test_importers_with_one_credential_share_its_limits(start: StartService) -> None:
    service = await start(
        integrations={"github": {"default": {"token": "ghp_of_the_settings"}}},
        importers={"github": {"default": {"organizations": ["acme"]}}},
    )
    await made(service, integration="default")
    importers = await service.state.importers.latest()
    first, second, third = (
        service.state.connect(importers[id_].integration)._governor
        for id_ in ("github", "github-acme", "github")
    )
    assert first is second is third


async def test_another_secret_of_an_importer_begins_with_limits_of_its_own(
    service: Service,
) -> None:
    visitor = await made(service)
    before = service.state.connect((await known(service)).integration)._governor
    assert service.state.connect((await known(service)).integration)._governor is before
    service.time.advance(SECOND)
    await visitor.done(EDIT, **fields(account__token="ghp_another_secret"))
    assert service.state.connect((await known(service)).integration)._governor is not before


async def test_an_importer_of_the_settings_is_not_changed_here(start: StartService) -> None:
    service = await start(
        integrations={"github": {"default": {"token": "ghp_of_the_settings"}}},
        importers={"github": {"acme": {"organizations": ["acme"]}}},
    )
    visitor = await signed_in(service)
    assert "GitHub (acme)" in words(await visitor.text("/imports"))
    assert (await visitor.send(NEW, **fields())).status_code == 409
    for path in (EDIT, "/importers/github-acme/delete"):
        assert (await visitor.send(path, **fields())).status_code == 409


async def test_an_importer_is_deleted_and_its_entities_stay(service: Service) -> None:
    visitor = await made(service)
    await visitor.done("/imports/github-acme/run")
    for id_ in ("github-acme", "github-other"):
        await service.state.database.write(
            partial(records.remember_delivery, importer=id_, delivery="1", now=service.time())
        )
        await service.state.database.write(
            partial(records.give_hints, importer=id_, hints=["R_1 acme/shop"], now=service.time())
        )
    assert "was deleted. Its entities stay." in await visitor.done("/importers/github-acme/delete")
    assert await service.state.importers.latest() == {}
    row = await service.state.database.one("SELECT COUNT(*) FROM import_runs")
    assert row == (0,)
    database = service.state.database
    assert await database.all("SELECT importer FROM import_hints") == [("github-other",)]
    assert await database.all("SELECT importer FROM import_deliveries") == [("github-other",)]
    for path in (EDIT, "/importers/github-acme/delete"):
        assert (await visitor.send(path, **fields())).status_code == 404


async def test_who_may_not_write_sources_makes_none(service: Service) -> None:
    visitor = await signed_in(service, role="viewer")
    assert (await visitor.open(NEW)).status_code == 403
    assert (await visitor.send(NEW, **fields())).status_code == 403
    assert "New importer" not in await visitor.text("/imports")


async def test_only_kinds_that_read_nothing_of_the_machine_are_made_here(service: Service) -> None:
    visitor = await signed_in(service)
    assert "GitHub" in words(await visitor.text(NEW))
    for kind in ("ldif", "kubernetes", "none"):
        assert (await visitor.open(f"{NEW}?kind={kind}")).status_code == 404
        assert (await visitor.send(NEW, **fields(kind=kind))).status_code == 404


async def test_each_kind_that_is_made_here_has_a_form_of_its_options(
    service: Service, subtests: pytest.Subtests
) -> None:
    visitor = await signed_in(service)
    for kind in ["catalog", "gitea", "github", "gitlab"]:
        with subtests.test(kind=kind):
            assert f"kind={kind}" in await visitor.text(NEW)
            page = await visitor.text(f"{NEW}?kind={kind}")
            assert 'name="every"' in page
            assert 'type="password"' in page


async def test_secrets_under_another_key_are_told_and_given_again(
    service: Service, start: StartService
) -> None:
    await made(service)
    other = await start(token_key="another key of tests, also long enough")
    assert await other.state.importers.latest() == {}
    visitor = await signed_in(other, "grace")
    assert "sealed under another token key" in words(await visitor.text("/imports"))
    kept = await visitor.send(EDIT, **fields(account__token=""))
    assert kept.status_code == 409
    await visitor.done(EDIT, **fields())
    assert "github-acme" in await other.state.importers.latest()


@pytest.mark.parametrize(
    "statement",
    [
        """UPDATE importers SET options = REPLACE(options, '"account.host":"github.com"',
            '"account.host":"evil.example.com"')""",
        "UPDATE importers SET options = REPLACE(options, 'github.com', 'evil.example.com')",
    ],
)
async def test_a_host_changed_in_the_database_is_sent_no_secret(
    service: Service, start: StartService, statement: str
) -> None:
    await made(service)
    await service.state.database.write(lambda tx: tx.run(statement))
    other = await start()
    assert await other.state.importers.latest() == {}
    assert "github-acme" in other.state.importers.problems


async def test_what_another_process_made_is_known_within_a_second(
    service: Service, start: StartService
) -> None:
    other = await start()
    assert await other.state.importers.current() == {}
    await made(service)
    other.time.advance(SECOND)
    assert "github-acme" in await other.state.importers.current()


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("gitlab", {"groups": "acme\nother/web", "account.host": "gitlab.example.com"}),
        ("gitea", {"organizations": "acme", "account.host": "git.example.com"}),
    ],
)
async def test_importers_of_other_code_hosts_are_made_too(
    service: Service, kind: str, more: dict[str, str]
) -> None:
    visitor = await signed_in(service)
    form = {"kind": kind, "name": "acme", "every": "6h", "account.token": SECRET, **more}
    assert f"The importer {kind}-acme was made." in await visitor.done(NEW, **form)
    found = (await service.state.importers.latest())[f"{kind}-acme"]
    assert found.integration.base_url == f"https://{more['account.host']}"
    assert SECRET not in await visitor.text(f"/importers/{kind}-acme/edit")
