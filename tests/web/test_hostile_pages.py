"""Every page of the table, walked with data and addresses that mean harm."""

import asyncio
import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Any, Literal
from urllib.parse import quote, urlsplit

import pytest
from starlette.routing import compile_path

from factbook.auth import passwords
from factbook.auth.oauth import protocol as oauth
from factbook.auth.oauth.clients import PARAMETERS
from factbook.importers.snapshot import ReadingProblem
from factbook.web.account import ACCOUNT_PATH as ACCOUNT
from factbook.web.routes import PAGES
from tests.api.checking import SCORECARDS, evaluated, put, scorecard
from tests.api.defining import CONNECTIONS, define, item, of_entities, push, pushed
from tests.conftest import StartService
from tests.importers.reading import Imports
from tests.importers.reading import item as imported_item
from tests.importers.reading import part as imported
from tests.service import Service, component
from tests.web.markup import HOSTILE, HOSTILE_NAME, elements, is_harmless
from tests.web.test_importers import fields as of_importer
from tests.web.visiting import PASSWORD, Browser, browser, signed_in, with_password

# What a name may hold: no slash, no colon, nothing that is not printed.
NAME = "\"'&<img src=x onerror=alert(1)>{{7*7}}${7*7}"
MARKS = ("<script>alert", "<img src=x", "{{49}}")
# What alone differs in two answers with the same page.
_SECRETS = re.compile(r' name="(?:csrf|request)" value="[\w-]+"')
# What a database may refuse, and what only the rendering of a page could take for its own. The slow
# test gives each page and each parameter all texts. The system tests put these into all parameters
# of a page at once, and alone into each that changes it.
REFUSED = {"nul": "a\0b", "large": "9" * 400}
RENDERED = {"markup": HOSTILE, "marks": "\u0315\u0316" * 20}
TEXTS = (*REFUSED.values(), *RENDERED.values(), "\0", "-1", "../..", "javascript:x", "%")
_OF_A_PAGE = 4
_PATTERNS = [(page.path, compile_path(page.path)[0]) for page in PAGES if page.method == "GET"]
_PATHS = [page.path for page in PAGES if page.method == "GET" and "{" not in page.path]
# They lead elsewhere, are no pages, are for who is not signed in, or are asked for by a client.
_NOT_WALKED = {"/static/{name}", "/live", "/sign-in", "/sign-in/openid", "/sign-in/openid/callback",
               "/welcome/{secret}", "/connect/check", oauth.AUTHORIZE_PATH}  # fmt: skip
_PARAMETERS = (
    *("q", "kind", "namespace", "owner", "tag", "set", "order", "after", "before", "page", "span"),
    *("type", "client", "run", "name", "entityRef", "dataSourceId", "limit", "show", "id", "actor"),
    *("known", "reason", "value", "min", "below", "system", "lifecycle", "by", "sort", "cursor"),
    *("action", "object", "outcome", "from", "to", "all", "next", "state", "code", "iss", "error"),
    *("team", "level", "columns", "entity", "check", "ownership", "column"),
    *PARAMETERS,
)
_FIELDS = (
    *("name", "display_name", "password", "again", "current", "role", "session", "theme", "text"),
    *("seen", "entity", "do", "next", "base_url", "methods", "at_once", "header-0", "value-0"),
    *("invitation", "token", "preset", "permission", "expires", "other", "request", "take", "over"),
    *("url", "types", "kind", "every", "organizations", "account.host", "integration", "remove"),
    *(*PARAMETERS, "decision", "consent", "confirmed", "new_name", "subject", "user_name"),
)


async def filled(service: Service) -> Browser:
    """A browser of an administrator, where every text that somebody can choose means harm."""
    ada = await signed_in(service)
    harmful = component(NAME, type=HOSTILE, owner=HOSTILE, dependsOn=["component:web", NAME])
    harmful["metadata"] |= {"title": HOSTILE, "tags": [HOSTILE], "labels": {HOSTILE: HOSTILE}}
    harmful["metadata"]["links"] = [{"url": "javascript:alert(1)", "title": HOSTILE}]
    await service.push(NAME, harmful, component("web"))
    await service.push(NAME, component("web", owner=HOSTILE), harmful)
    group = {**component(NAME), "kind": "Group", "spec": {"type": HOSTILE, "children": [NAME]}}
    group["metadata"]["title"] = HOSTILE
    await service.push("groups <b>", group, component("owned", owner=NAME))
    await service.push("emptied <b>", component("gone"))
    await service.push("emptied <b>")
    fact = {"type": "string", "description": HOSTILE, "unit": "<b>"}
    source = pushed(title=HOSTILE_NAME, description=HOSTILE, schema={"tool": fact})
    await define(service, source)
    await push(service, item(tool=HOSTILE))
    await define(service, {**source, "title": f"Draft {HOSTILE_NAME}"}, publish=False)
    await define(service, of_entities(title=HOSTILE_NAME, owner=f"group:default/{NAME}"))
    await _with_checks(service)
    sent: dict[str, Any] = {
        "baseUrl": "https://ci.example.com/<b>",
        "headers": {"x-a": "<script>alert(1)"},
    }
    sent["sharedWith"] = [f"group:default/{NAME}"]
    made = await service.http.put(f"{CONNECTIONS}/ci", json=sent)
    assert made.status_code == 200, made.text
    hook = {"url": "https://events.example.com/<b>{{7*7}}"}
    made = await service.http.post("/api/events/webhooks", json=hook)
    assert made.status_code == 201, made.text
    digest = {"owner": f"group:{HOSTILE_NAME}", "form": "slack", "url": hook["url"]}
    made = await service.http.post("/api/tech-insights/v1/digests", json=digest)
    assert made.status_code == 201, made.text
    imports, problem = Imports(service.state.database), ReadingProblem(HOSTILE, HOSTILE, HOSTILE)
    await imports.write(imported(imported_item(f"{NAME} imported")))
    await imports.write(imported(problems=[problem]))
    await ada.done("/importers/new", **of_importer(files=HOSTILE))
    ada.http.headers["user-agent"] = NAME
    await ada.done(f"{ACCOUNT}/name", display_name=NAME)
    made = await ada.send(f"{ACCOUNT}/api-access/tokens", name=NAME, preset="ask", request="1")
    assert made.status_code == 201
    await ada.send("/administration/people/-/invitations", role="viewer", name="mia")
    await ada.done("/data-sources/owners/runs")
    return ada


async def _with_checks(service: Service) -> None:
    """A check and a scorecard over it, with every text that their authors can choose."""
    fix = {"link": "https://x.example/{{ metadata.name }}", "instructions": HOSTILE}
    rule = {"source": "entity", "fact": "metadata.title", "operator": "equal", "value": HOSTILE}
    texts: dict[str, Any] = {"description": HOSTILE, "owner": f"group:default/{NAME}"}
    messages = {"fail": "{{ metadata.title }}" + HOSTILE}
    known = {"title": HOSTILE_NAME, "rule": rule, "fix": fix, "messages": messages, **texts}
    known["labels"] = [HOSTILE_NAME]
    answer = await put(service, {"id": "covered", **known}, publish=True)
    assert answer.status_code == 200, answer.text
    card = {**scorecard(title=HOSTILE_NAME), **texts, "public": True}
    made = await service.http.put(f"{SCORECARDS}/readiness?publish=true", json=card)
    assert made.status_code == 200, made.text
    await evaluated(service)


def page_of(path: str) -> str | None:
    """The row of the table that answers a path."""
    return next((page for page, pattern in _PATTERNS if pattern.match(path)), None)


async def walked(ada: Browser) -> dict[str, list[str]]:
    """Some pages of each row of the table, found by their links, by row."""
    waiting = ["/", f"{ACCOUNT}/api-access", ACCOUNT]
    waiting += [f"/data-sources/{one}" for one in ("coverage", "owners")]
    waiting += ["/data-sources/new?type=push&id=another", "/data-sources/coverage/failures"]
    waiting += ["/data-sources/owners/runs"]  # linked where there are many
    waiting += [f"/catalog/group/default/{quote(NAME.lower(), safe='')}"]
    waiting += ["/search?q=w", "/search?q=%3Cscript%3Ealert(1)%3C/script%3E"]
    seen, found = set(waiting), dict[str, list[str]]()
    while waiting:
        where = waiting.pop(0)
        row = page_of(urlsplit(where).path)
        if row is None or row in _NOT_WALKED or len(found.get(row, ())) >= _OF_A_PAGE:
            continue
        answer = await ada.open(where)
        if answer.status_code == 303:
            continue
        if answer.status_code == 404:  # who pushes, and what was removed, is in no catalog
            assert where.startswith("/catalog/"), where
            assert is_harmless(answer.text)
            continue
        assert answer.status_code == 200, where
        found.setdefault(row, []).append(answer.text)
        if answer.headers["content-type"].startswith("text/html"):
            for _, attributes in elements(answer.text):
                link = attributes.get("href", "").partition("#")[0]
                if link.startswith("/") and link not in seen:
                    seen.add(link)
                    waiting.append(link)
    return found


@pytest.mark.slow
async def test_no_text_that_somebody_chooses_becomes_markup_on_any_page(service: Service) -> None:
    """WSTG-INPV-01 and 02, CLNT-03: every row of the table, found by its links."""
    found = await walked(await filled(service))
    missed = {page for page, _ in _PATTERNS} - found.keys() - _NOT_WALKED
    assert not missed
    for row, pages in found.items():
        for html in pages:
            if row.endswith((".json", ".yaml", "/export")) or "/values/" in row:
                continue
            assert not [mark for mark in MARKS if mark in html], row
            assert is_harmless(html), row


async def test_what_is_downloaded_is_a_file_that_no_browser_runs(service: Service) -> None:
    """However the entity is called; the header holds what every browser reads alike."""
    ada = await filled(service)
    for ending, type_ in (("json", "application/json"), ("yaml", "application/yaml")):
        for name in (NAME, "web"):
            path = f"/catalog/component/default/{quote(name.lower(), safe='')}/raw.{ending}"
            answer = await ada.open(path)
            assert answer.status_code == 200, path
            assert answer.headers["content-type"].partition(";")[0] == type_
            assert answer.headers["x-content-type-options"] == "nosniff"
            disposition = answer.headers["content-disposition"]
            assert disposition.startswith('attachment; filename="')
            assert disposition.count('"') == 2
            assert set(disposition) & set("<>'&%\\\r\n") == set()


def addresses(text: str) -> Iterator[str]:
    """Every page with this in each part of its path, alone and with all parameters."""
    part = quote(text, safe="")
    query = "&".join(f"{name}={part}" for name in _PARAMETERS)
    for page in PAGES:
        if page.method == "GET":
            path = re.sub(r"\{.+?\}", lambda _: part, page.path)
            yield from (path, f"{path}?{query}")


def single_parameters() -> Iterator[tuple[str, str, str]]:
    """Every page with each parameter: path, name, and a text.

    The text changes with page and parameter, so that each of both gets all texts.
    """
    for row, path in enumerate(_PATHS):
        for column, name in enumerate(_PARAMETERS):
            yield path, name, TEXTS[(row + column) % len(TEXTS)]


class Reader:
    """Opens addresses, and looks at each different page once."""

    def __init__(self, visitor: Browser) -> None:
        self._visitor = visitor
        self.read = set[str]()

    async def open(self, address: str) -> tuple[int, str, str]:
        """Open and check a page; return its status, redirect target and text."""
        answer = await self._visitor.open(address)
        assert answer.status_code < 500, address
        shown = _SECRETS.sub("", answer.text)
        if answer.headers["content-type"].startswith("text/html"):
            assert not [mark for mark in MARKS if mark in shown], address
            assert shown in self.read or is_harmless(shown), address
            self.read.add(shown)
        return answer.status_code, answer.headers.get("location", ""), shown

    async def open_with_each(self, path: str, names: Sequence[str], text: str) -> None:
        """Open a page with a text in every parameter.

        Parameters that change the page are also tried alone, the others only together.
        """
        plain = await self.open(path)
        waiting = [names]
        while waiting:
            some = waiting.pop()
            query = "&".join(f"{name}={quote(text, safe='')}" for name in some)
            if await self.open(f"{path}?{query}") != plain and len(some) > 1:
                middle = len(some) // 2
                waiting += [some[:middle], some[middle:]]


@pytest.mark.slow
async def test_no_address_breaks_a_page_or_becomes_part_of_it(service: Service) -> None:
    """WSTG-INPV-01 and ERRH-01: what no page is made for is refused in words."""
    reader = Reader(await signed_in(service))
    for text in TEXTS:
        for address in addresses(text):
            await reader.open(address)
    for path, name, text in single_parameters():
        await reader.open(f"{path}?{name}={quote(text, safe='')}")
    assert len(reader.read) > len(TEXTS)


async def _open_with_every_parameter(service: Service, text: str) -> int:
    """The number of different pages; each address was answered, and each page is harmless."""
    reader = Reader(await signed_in(service))
    for address in addresses(text):
        await reader.open(address)
    for path in _PATHS:
        await reader.open_with_each(path, _PARAMETERS, text)
    return len(reader.read)


@pytest.mark.system  # for the time that it takes
@pytest.mark.both_databases
@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED)
async def test_no_text_that_a_database_refuses_breaks_a_page(service: Service, text: str) -> None:
    assert await _open_with_every_parameter(service, text) > len(_PATTERNS) // 2


@pytest.mark.system  # for the time that it takes
@pytest.mark.parametrize("text", RENDERED.values(), ids=RENDERED)
async def test_no_text_in_any_parameter_breaks_a_page(service: Service, text: str) -> None:
    assert await _open_with_every_parameter(service, text) > len(_PATTERNS) // 2


@pytest.mark.slow
@pytest.mark.parametrize("text", [HOSTILE, "a\0b", "9" * 400], ids=["markup", "nul", "large"])
async def test_no_form_breaks_a_page_or_becomes_part_of_it(start: StartService, text: str) -> None:
    service = await start(failed_logins=10_000)
    for page in PAGES:
        if page.method != "POST" or page.path == "/sign-out":
            continue
        ada = await _anew(service, page.path)
        for part in ("web", text):
            path = page.path
            while "{" in path:
                where = quote(part, safe="")
                path = path[: path.index("{")] + where + path[path.index("}") + 1 :]
            answer = await ada.send(path, **dict.fromkeys(_FIELDS, text))
            assert answer.status_code < 500, path
            if answer.headers["content-type"].startswith("text/html"):
                assert not [mark for mark in MARKS if mark in answer.text], path
                assert is_harmless(answer.text)
            elif answer.status_code != 303:  # a slash in a name leads to no page
                assert answer.headers["content-type"].startswith("application/json"), path
                assert answer.headers["x-content-type-options"] == "nosniff"


async def _anew(service: Service, path: str) -> Browser:
    """An administrator of its own for a form: some end the session."""
    name = "".join(char if char.isalnum() else "-" for char in path).strip("-")[-50:].strip("-")
    return await signed_in(service, name)


# What takes long


async def test_a_long_password_keeps_nobody_waiting(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python composes characters in quadratic time, and nothing else runs meanwhile."""
    normalize = unicodedata.normalize
    lengths: list[int] = []

    def counted(form: Literal["NFC", "NFD", "NFKC", "NFKD"], text: str) -> str:
        lengths.append(len(text))
        return normalize(form, text)

    monkeypatch.setattr(unicodedata, "normalize", counted)
    visitor = browser(service)
    await visitor.open("/sign-in")
    answer = await visitor.send("/sign-in", name="ada", password="a" + "\u0315\u0316" * 40_000)
    assert answer.status_code == 403
    assert max(lengths) <= passwords.LONGEST_PASSWORD
    stored = passwords.hash_password("x" * passwords.LONGEST_PASSWORD)
    assert passwords.matches_password(stored, "x" * passwords.LONGEST_PASSWORD)
    assert not passwords.matches_password(stored, "x" * (passwords.LONGEST_PASSWORD + 1))


async def test_an_entity_with_very_many_relations_is_drawn_with_the_first_of_each_type(
    service: Service,
) -> None:
    owned = [component(f"c-{number}", owner="group:big") for number in range(1_000)]
    group = {**component("big"), "kind": "Group", "spec": {"type": "team", "children": []}}
    pushed_ = await service.push("big", group, *owned)
    assert pushed_.status_code == 200, pushed_.text
    ada = await signed_in(service)
    html = await ada.text("/catalog/group/default/big")
    assert "and 992 more" in html
    assert ">c-2</a>" in html
    assert ">c-300</a>" not in html


# Cookies that others have set


async def test_odd_cookies_of_other_programs_on_the_host_end_no_session(
    service: Service, subtests: pytest.Subtests
) -> None:
    ada = await signed_in(service)
    own = "; ".join(f"{name}={value}" for name, value in ada.http.cookies.items())
    for other in [
        'prefs={"a":1}',
        "a b=c",
        "=",
        "x",
        'q="',
        "€=€",
        "; ;",
        "$Version=1",
        "expires=Thu, 1 Jan",
    ]:
        with subtests.test(other=other):
            for header in (f"{other}; {own}", f"{own}; {other}"):
                headers = {b"accept": b"text/html", b"cookie": header.encode()}
                answer = await browser(service).http.get("/administration/account", headers=headers)
                assert answer.status_code == 200, header


# Passwords


async def test_the_current_password_is_not_guessed_by_many_at_once(service: Service) -> None:
    """Somebody with a session that is not theirs tries: ten are compared, and those under way."""
    ada = await with_password(service)
    fields = {"password": "another long password", "again": "another long password"}
    sent = (ada.send(f"{ACCOUNT}/password", current=f"guess {n}", **fields) for n in range(25))
    texts = [answer.text for answer in await asyncio.gather(*sent)]
    compared = sum("The current password is wrong" in text for text in texts)
    assert 10 <= compared <= 13
    assert sum("Too many attempts" in text for text in texts) == 25 - compared


async def test_changing_the_password_ends_the_links_to_set_it(service: Service) -> None:
    ada = await with_password(service)
    made = await ada.send("/administration/people/ada/password")
    [link] = set(re.findall(r"/welcome/[\w-]+", made.text))
    visitor = browser(service)
    assert (await visitor.open(link)).status_code == 200
    fields = {"password": "another long password", "again": "another long password"}
    await ada.done(f"{ACCOUNT}/password", current=PASSWORD, **fields)
    assert (await visitor.open(link)).status_code == 404
