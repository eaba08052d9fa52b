"""A form of every page that changes something, and what it leaves in the audit."""

import re
from collections.abc import AsyncIterator, Coroutine
from functools import partial
from typing import Any, Final, NamedTuple

import httpx2

from factbook.auth.oauth.protocol import AUTHORIZE_PATH
from factbook.collection.run_start import batch_work
from factbook.scheduling import runs
from factbook.scheduling.runs import GivenUpBatch
from factbook.web import definition_editor
from tests.api.authorizing import wish
from tests.api.defining import define, of_entities
from tests.importers.madeup import known_to
from tests.importers.reading import Imports
from tests.importers.reading import item as imported_item
from tests.importers.reading import part as imported
from tests.service import Service, component
from tests.web.editing import TEXT
from tests.web.generating import PATH as TOKENS
from tests.web.generating import REQUEST, the_token
from tests.web.test_connections_page import PATH as CONNECTIONS
from tests.web.test_connections_page import fields
from tests.web.test_importers import fields as of_importer
from tests.web.test_people import path_of
from tests.web.visiting import PASSWORD, Browser, add_person, browser, signed_in, with_password

ACCOUNT: Final = "/administration/account"
PEOPLE: Final = "/administration/people"
WEBHOOKS: Final = "/administration/webhooks"
DIGESTS: Final = "/administration/digests"
NEW: Final = "another correct horse"
# A client that the settings of the service have to name.
CLIENT: Final = "desk"
# Forms that store nothing: a cookie of the browser, questions, and a message to try it out.
NO_WRITES: Final = frozenset(
    {
        f"{ACCOUNT}/theme",
        "/connect/check",
        f"{WEBHOOKS}/{{id}}/test",
        f"{DIGESTS}/{{id}}/test",
    }
)


class Sent(NamedTuple):
    """A page's path in the table, a form that is to be sent to it, and what it leaves."""

    path: str
    form: Coroutine[Any, Any, httpx2.Response]
    actions: tuple[str, ...]


async def every_form(service: Service) -> AsyncIterator[Sent]:
    """Each is to be sent before the next is asked for."""
    ada = await with_password(service)
    await add_person(service, "vic", "viewer")
    yield Sent(AUTHORIZE_PATH, _consent(ada), ("consent.give",))
    [(id_,)] = await service.state.database.all("SELECT id FROM oauth_consents")
    revoked = ada.send(f"{ACCOUNT}/consents", consent=id_)
    yield Sent(f"{ACCOUNT}/consents", revoked, ("consent.revoke",))
    catalog = (_catalog, _scorecards, _definitions, _imports, _importers)
    for part in (_signing_in, _account, _people, *catalog, _connections, _webhooks, _digests):
        async for sent in part(service, ada):
            yield sent


async def _consent(ada: Browser) -> httpx2.Response:
    wanted = wish(client_id=CLIENT)
    await ada.open(AUTHORIZE_PATH, **wanted)
    return await ada.send(AUTHORIZE_PATH, **wanted, decision="allow")


async def _signing_in(service: Service, ada: Browser) -> AsyncIterator[Sent]:
    visitor = browser(service)
    await visitor.open("/sign-in")
    signing_in = visitor.send("/sign-in", name="vic", password=PASSWORD)
    yield Sent("/sign-in", signing_in, ("session.start",))
    await visitor.open(ACCOUNT)
    yield Sent("/sign-out", visitor.send("/sign-out"), ("session.end",))
    await ada.open(PEOPLE)
    path = path_of((await ada.send(f"{PEOPLE}/-/invitations", role="viewer", name="new")).text)
    await visitor.open(path)
    accepted = visitor.send(path, password=PASSWORD, again=PASSWORD)
    yield Sent("/welcome/{secret}", accepted, ("person.create", "session.start"))


async def _account(service: Service, ada: Browser) -> AsyncIterator[Sent]:
    await ada.open(ACCOUNT)
    renamed = ada.send(f"{ACCOUNT}/name", display_name="Ada L.")
    yield Sent(f"{ACCOUNT}/name", renamed, ("person.change",))
    changed = ada.send(f"{ACCOUNT}/password", current=PASSWORD, password=NEW, again=NEW)
    yield Sent(f"{ACCOUNT}/password", changed, ("person.change",))
    ended = ada.send(f"{ACCOUNT}/sessions", session="others")
    yield Sent(f"{ACCOUNT}/sessions", ended, ("session.end",))
    request = REQUEST.search((await ada.open(TOKENS)).text)
    assert request
    asked = {"name": "ci", "preset": "ask", "expires": "90d", "request": request[1]}
    yield Sent(f"{TOKENS}/tokens", ada.send(f"{TOKENS}/tokens", **asked), ("token.create",))
    id_ = (await the_token(service)).id
    yield Sent(f"{TOKENS}/revoke", ada.send(f"{TOKENS}/revoke", token=id_), ("token.revoke",))


async def _people(service: Service, ada: Browser) -> AsyncIterator[Sent]:
    invited = ada.send(f"{PEOPLE}/-/invitations", role="viewer", name="mia")
    yield Sent(f"{PEOPLE}/-/invitations", invited, ("person.invite",))
    found = re.search(r'name="invitation" value="([^"]+)"', (await ada.open(PEOPLE)).text)
    assert found
    withdrawn = ada.send(f"{PEOPLE}/-/withdraw", invitation=found[1])
    yield Sent(f"{PEOPLE}/-/withdraw", withdrawn, ("person.withdraw",))
    added = ada.send(f"{PEOPLE}/-/accounts", new_name="pat", subject="7", role="viewer")
    yield Sent(f"{PEOPLE}/-/accounts", added, ("person.create",))
    for verb, form in (
        ("confirm", {"user_name": ""}),
        ("role", {"role": "administrator"}),
        ("password", {}),
        ("disable", {}),
        ("enable", {}),
    ):
        sent = ada.send(f"{PEOPLE}/vic/{verb}", **form)
        yield Sent(f"{PEOPLE}/{{name}}/{verb}", sent, ("person.change",))
    await signed_in(service, "bob", "viewer")
    ended = ada.send(f"{PEOPLE}/bob/sessions")
    yield Sent(f"{PEOPLE}/{{name}}/sessions", ended, ("session.end",))


async def _catalog(service: Service, ada: Browser) -> AsyncIterator[Sent]:
    await service.push("all", component("web"))
    await service.push("all", component("web"), component("api"))
    restored = ada.send("/sets/all/revisions/1/restore", seen="2")
    yield Sent("/sets/{set_id}/revisions/{number}/restore", restored, ("set.restore",))
    created = ada.send("/data-sources/new", text=TEXT, do="save")
    yield Sent("/data-sources/new", created, ("data-source.create",))
    one = "/data-sources/{id}"
    seen = re.search(
        r'name="seen" value="([^"]*)"', (await ada.open("/data-sources/owners/edit")).text
    )
    assert seen
    saved = ada.send(
        "/data-sources/owners/edit", text=TEXT.replace("Owners", "Theirs"), do="save", seen=seen[1]
    )
    yield Sent(f"{one}/edit", saved, ("data-source.replace",))
    await define(service, of_entities(), publish=False)
    seen = re.search(r'name="seen" value="([^"]*)"', (await ada.open("/data-sources/owners")).text)
    published = ada.send("/data-sources/owners/publish", seen=seen[1] if seen else "")
    yield Sent(f"{one}/publish", published, ("data-source.publish",))
    yield Sent(f"{one}/runs", ada.send("/data-sources/owners/runs"), ("data-source.run",))
    [web] = await service.state.database.one("SELECT min(id) FROM entities") or ()
    work = batch_work(["web"], {"web": [web]})
    batch = GivenUpBatch(1, 0, "owners", work, 6, service.time())
    await service.state.database.write(partial(runs.record_given_up_batch, batch=batch))
    again = ada.send("/data-sources/owners/given-up")
    yield Sent(f"{one}/given-up", again, ("data-source.run",))
    yield Sent(f"{one}/delete", ada.send("/data-sources/owners/delete"), ("data-source.delete",))


async def _scorecards(service: Service, ada: Browser) -> AsyncIterator[Sent]:
    adopted = ada.send("/scorecards/-/starter")
    yield Sent("/scorecards/-/starter", adopted, ("scorecard.create",))
    [(id_,)] = await service.state.database.all("SELECT id FROM scorecards")
    page = (await ada.open(f"/scorecards/{id_}")).text
    seen, drafts = (re.findall(f'name="{name}" value="(.*?)"', page) for name in ("seen", "draft"))
    published = ada.send(f"/scorecards/{id_}/publish", seen=seen[0], draft=drafts)
    yield Sent("/scorecards/{id}/publish", published, ("scorecard.publish",))
    new = "/exemptions/-/new"
    wish = {"check": "catalog-has-owner", "entity": "component:web", "reason": "Soon gone"}
    asked = ada.send(new, **wish, until="2027-01-31")
    yield Sent(new, asked, ("exemption.request",))
    bob = await signed_in(service, "decider")
    for decision in ("approve", "revoke"):
        [(id_,)] = await service.state.database.all("SELECT id FROM exemptions")
        sent = bob.send(f"/exemptions/{id_}/{decision}")
        yield Sent(f"/exemptions/{{id}}/{decision}", sent, (f"exemption.{decision}",))
    await ada.done(new, **{**wish, "check": "catalog-has-description"}, until="2027-01-31")
    [(id_,)] = await service.state.database.all(
        "SELECT id FROM exemptions WHERE state = 'requested'"
    )
    denied = bob.send(f"/exemptions/{id_}/deny")
    yield Sent("/exemptions/{id}/deny", denied, ("exemption.deny",))


async def _definitions(service: Service, ada: Browser) -> AsyncIterator[Sent]:
    """A definition of each kind is written, and written anew."""
    for path, kind, text in (
        ("/checks", "check", definition_editor.CHECK_SKELETON),
        ("/scorecards", "scorecard", definition_editor.SCORECARD_SKELETON),
    ):
        made = ada.send(f"{path}/-/new", text=text, do="save")
        yield Sent(f"{path}/-/new", made, (f"{kind}.create",))
        id_ = text.split()[1]
        page = (await ada.open(f"{path}/{id_}/edit")).text
        seen = re.search(r'name="seen" value="(\w+)"', page)
        assert seen
        changed = text.replace("title: ", "title: New ")
        saved = ada.send(f"{path}/{id_}/edit", text=changed, do="save", seen=seen[1])
        yield Sent(f"{path}/{{id}}/edit", saved, (f"{kind}.replace",))


async def _imports(service: Service, ada: Browser) -> AsyncIterator[Sent]:
    known_to(service)
    yield Sent("/imports/{importer}/run", ada.send("/imports/fake/run"), ("import.run",))
    imports = Imports(service.state.database)
    for key, action in (("one", "discard"), ("two", "apply")):
        await imports.write(imported(imported_item(key), key=key))
        await imports.write(imported(key=key))
        await ada.open(f"/imports/fake/{key}")
        decided = ada.send(f"/imports/fake/{key}/{action}", seen=f"{imports.now}-1")
        yield Sent(f"/imports/{{importer}}/{{part}}/{action}", decided, (f"import.{action}",))


async def _importers(service: Service, ada: Browser) -> AsyncIterator[Sent]:
    made = ada.send("/importers/new", **of_importer())
    yield Sent("/importers/new", made, ("importer.create",))
    service.time.advance(1)
    changed = ada.send("/importers/github-acme/edit", **of_importer(every="1d"))
    yield Sent("/importers/{importer}/edit", changed, ("importer.replace",))
    deleted = ada.send("/importers/github-acme/delete")
    yield Sent("/importers/{importer}/delete", deleted, ("importer.delete",))


async def _connections(service: Service, ada: Browser) -> AsyncIterator[Sent]:
    made = ada.send(f"{CONNECTIONS}/new", **fields())
    yield Sent(f"{CONNECTIONS}/new", made, ("connection.create",))
    # What is changed at the moment at which it was made counts as made.
    service.time.advance(1)
    changed = ada.send(f"{CONNECTIONS}/ci/edit", **fields(at_once="2"))
    yield Sent(f"{CONNECTIONS}/{{name}}/edit", changed, ("connection.replace",))
    deleted = ada.send(f"{CONNECTIONS}/ci/delete")
    yield Sent(f"{CONNECTIONS}/{{name}}/delete", deleted, ("connection.delete",))


async def _webhooks(service: Service, ada: Browser) -> AsyncIterator[Sent]:
    made = ada.send(WEBHOOKS, url="https://events.example.com/factbook")
    yield Sent(WEBHOOKS, made, ("webhook.create",))
    [(id_,)] = await service.state.database.all("SELECT id FROM webhook_endpoints")
    for verb in ("enable", "delete"):
        sent = ada.send(f"{WEBHOOKS}/{id_}/{verb}")
        yield Sent(f"{WEBHOOKS}/{{id}}/{verb}", sent, (f"webhook.{verb}",))


async def _digests(service: Service, ada: Browser) -> AsyncIterator[Sent]:
    fields = {"form": "slack", "day": "monday", "hour": "8", "time_zone": "UTC"}
    made = ada.send(DIGESTS, url="https://events.example.com/factbook", **fields)
    yield Sent(DIGESTS, made, ("digest.create",))
    [(id_,)] = await service.state.database.all("SELECT id FROM digests")
    yield Sent(f"{DIGESTS}/{{id}}", ada.send(f"{DIGESTS}/{id_}", **fields), ("digest.replace",))
    deleted = ada.send(f"{DIGESTS}/{id_}/delete")
    yield Sent(f"{DIGESTS}/{{id}}/delete", deleted, ("digest.delete",))
