"""Over the whole table of pages: the audit has what a form did, and that it was refused."""

import pytest

from factbook.audit.trail import ACTIONS
from factbook.auth.permissions import ROLES, VIEWER
from factbook.web.pages import OPEN
from factbook.web.routes import PAGES
from tests.api.auditing import Watch
from tests.api.authorizing import CALLBACK
from tests.conftest import StartService
from tests.service import Service, component
from tests.web.audited import ACCOUNT, CLIENT, NEW, NO_WRITES, every_form
from tests.web.openid_provider import OpenIDProvider, at
from tests.web.table import path_of, rows
from tests.web.visiting import browser, signed_in, with_password

WITHOUT_A_PERSON = {"/sign-in", "/welcome/{secret}"}
ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


@pytest.fixture
async def service(start: StartService) -> Service:
    return await start(openid=at(OpenIDProvider()), oauth={"clients": {CLIENT: [CALLBACK]}})


@pytest.mark.slow
@pytest.mark.spec("audit.every-write")
async def test_every_form_that_changes_something_leaves_the_record_of_it(service: Service) -> None:
    watch, seen = Watch(service), set()
    async for path, form, actions in every_form(service):
        await watch.new()
        answer = await form
        assert answer.status_code in {201, 303}, (path, answer.text)
        records = await watch.new()
        found = [(record["action"], record["outcome"]) for record in records]
        # Who signs in, or opens a link, has no role yet.
        by_role = {record["grant"].startswith("role ") for record in records}
        assert by_role <= {path not in WITHOUT_A_PERSON}, path
        assert found == [(action, "done") for action in actions], path
        assert ACTIONS.keys() >= {*actions}
        seen.add(path)
    # Whoever adds a form adds what it leaves: tests/web/audited.py.
    assert seen | NO_WRITES == {page.path for page in PAGES if page.method == "POST"}
    assert not seen & NO_WRITES


@pytest.mark.slow
@ON_SQLITE
@pytest.mark.spec("audit.every-refused-call")
async def test_every_form_that_access_is_refused_leaves_one_record(service: Service) -> None:
    vic = await signed_in(service, "vic", "viewer")
    watch, seen = Watch(service), 0
    for page in rows("POST"):
        service.time.advance(60_000)  # one address fills the audit with so many a minute
        visitor = browser(service)
        assert (await visitor.send(path_of(page))).status_code == 303
        [record] = await watch.new()
        assert (record["status"], record["object"], record["actor"]) == (401, page.path, "")
        answer = await vic.send(path_of(page), csrf="of another site")
        record = await watch.refused(answer)
        assert (record["status"], record["actor"]) == (403, "user:default/vic")
        if not ROLES[VIEWER].issuperset(page.needs or ()):
            record = await watch.refused(await vic.send(path_of(page)))
            assert (record["status"], record["object"]) == (403, page.path)
            seen += 1
    assert seen > 10


@ON_SQLITE
@pytest.mark.spec("audit.every-refused-call")
async def test_a_form_that_is_refused_for_what_it_asks_leaves_one_record(service: Service) -> None:
    ada = await with_password(service)
    await service.push("all", component("web"))
    watch = Watch(service)
    await watch.new()
    for path, form, status in (
        (f"{ACCOUNT}/name", {"display_name": ""}, 400),
        (f"{ACCOUNT}/password", {"current": "guess", "password": NEW, "again": NEW}, 400),
        ("/administration/people/-/invitations", {"role": "owner", "name": "lou"}, 400),
        ("/administration/connections/new", {"name": "ci", "base_url": "nothing"}, 400),
        ("/data-sources/new", {"text": "{", "do": "save"}, 400),
        ("/sets/all/revisions/1/restore", {"seen": "9"}, 412),
    ):
        record = await watch.refused(await ada.send(path, **form))
        assert (record["status"], record["actor"]) == (status, "user:default/ada"), path


@ON_SQLITE
@pytest.mark.spec("audit.every-refused-call")
async def test_signing_in_that_fails_leaves_one_record(service: Service) -> None:
    await with_password(service)
    watch, visitor = Watch(service), browser(service)
    await watch.new()
    await visitor.open("/sign-in")
    answer = await visitor.send("/sign-in", name="ada", password="wrong")
    assert answer.status_code == 403
    [record] = await watch.new()
    assert (record["action"], record["outcome"]) == ("session.start", "refused")
    assert record["object"] == "user:default/ada"


def test_no_form_is_open_but_those_to_sign_in() -> None:
    forms = {page.path for page in PAGES if page.method == "POST" and page.needs is OPEN}
    assert forms == {"/sign-in", "/sign-out", "/welcome/{secret}"}
