"""Parsers of what other systems and files say: providers, Git, settings, what was kept."""

import asyncio
import functools
from pathlib import Path
from typing import Any, cast

import httpx2
import msgspec
from starlette.responses import Response

from factbook.auth import encryption
from factbook.auth.oidc.identity import ProviderOptions as OpenIDOptions
from factbook.client import ClientError, answers
from factbook.datasources.custom.sources import SourceConnection
from factbook.errors import ConfigurationError, SignInError
from factbook.integrations import VENDORS, code_host, find_vendor, prometheus
from factbook.integrations.git import Reading
from factbook.integrations.git import make_git_facts as facts_of_paths
from factbook.integrations.prometheus import api
from factbook.outbound import cache
from factbook.outbound.client import HttpClient
from factbook.outbound.git import Git, GitResult, Limits, make_git_reply
from factbook.outbound.outcomes import Answer, HostReply, Missing, Outcome
from factbook.settings import Settings, option_tables
from factbook.settings.table import load_settings, settings_environment
from factbook.webhooks import sender
from tests.fuzz.folders import folder
from tests.fuzz.promises import check_told, json, lines, text, tried
from tests.fuzz.target import Target
from tests.integrations.asking import Memory
from tests.web.openid_provider import DISCOVERY, OpenIDProvider, forged, sign_in, signed

_KEY = b"a key of tests, long enough to be one"
_MARK = "do-not-tell"


def settings(data: bytes) -> None:
    """Settings are read the same from a file and from the variables that they are written to."""
    file = folder() / "factbook.toml"
    file.write_bytes(data)
    found = _loaded({}, file)
    if found is not None and _has_plain_lists(found):
        assert (
            load_settings(environ=settings_environment(found), path=folder() / "none.toml") == found
        )
    name, value = lines(data, 2)
    _loaded({name.replace("\0", "") or "x": value.replace("\0", "")}, folder() / "none.toml")


def _has_plain_lists(found: Settings) -> bool:
    """Whether lists hold what a variable can: texts without commas, and without outer blanks."""
    lists = [one for one in msgspec.structs.astuple(found) if isinstance(one, list)]
    return all(text and text == text.strip() and "," not in text for one in lists for text in one)


def _loaded(environ: dict[str, str], file: Path) -> Settings | None:
    return tried(load_settings, environ=environ, path=file)


def options(data: bytes) -> None:
    """The table of an integration is read, or refused without a word of what is in it."""
    given = json(data)
    if not isinstance(given, dict):
        return
    table = {str(key): value for key, value in given.items()}
    types: list[Any] = [
        *(find_vendor(id_).options for id_ in VENDORS),
        SourceConnection,
        OpenIDOptions,
    ]
    for type_ in types:
        for values in (table, table | {"token": f"{_MARK}\n", "client_secret": [_MARK]}):
            try:
                option_tables.read_option_table("here", "default", values, type_)
            except ConfigurationError as error:
                check_told(error, _MARK)
    for id_ in VENDORS:
        tried(find_vendor(id_).configured, "default", table)


def provider(data: bytes) -> None:
    """A provider of identities that says anything signs in somebody or nobody."""
    given = json(data)
    bent: dict[str, Any] = given if isinstance(given, dict) else {"raw": text(data)}
    made = OpenIDProvider()
    for member in ("document", "header", "claims", "tokens", "user_info"):
        if isinstance(bent.get(member), dict):
            setattr(made, member, bent[member])
    if isinstance(bent.get("published"), list):
        made.published = bent["published"]
    made.forge = functools.partial(_token, made, bent.get("token"))
    if isinstance(bent.get("raw"), str):
        faulty = Response(bent["raw"], media_type="application/json")
        made.faults = {str(bent.get("path", DISCOVERY)): faulty}
    try:
        found = asyncio.run(sign_in(made))
    except SignInError as error:
        check_told(error)
    else:
        assert found.subject
        assert msgspec.json.encode(found)


def _token(made: OpenIDProvider, token: object, header: Any, claims: Any) -> str:
    """The token that an input gives, else one with these claims, signed if that can be done."""
    if isinstance(token, str):
        return token
    try:
        return signed(header, claims, made.keys[0])
    except Exception:  # noqa: BLE001 - whatever the library says of an odd header
        return forged(header, claims, lambda body: body)


def git(data: bytes) -> None:
    """What Git writes about itself says what became of it."""
    code, errors = lines(data, 2)
    for ended in (GitResult(1, b"", errors), GitResult(int(code != "0"), data, errors)):
        reply = make_git_reply(ended, limits="100 MiB", seconds=10)
        assert reply.failure or 100 <= reply.status < 1_000


def repository(data: bytes) -> None:
    """A repository has the paths that Git lists, or a reason why they are not known."""
    head, _, tree = data.partition(b"\n\n")
    reading = Reading(
        cast(Git, _GitSays(head, tree)), cast(HttpClient, _GitHost(head)), Memory(), "acme/app"
    )
    paths = asyncio.run(reading.paths(0))
    assert msgspec.json.encode(facts_of_paths(paths).values)
    commit = asyncio.run(reading.commit())
    if not isinstance(commit, Missing):
        found = asyncio.run(reading.contents(commit, "catalog-info.yaml"))
        assert isinstance(found, bytes | Missing)


class _GitSays:
    """What the program git writes about a repository."""

    limits = Limits()

    def __init__(self, head: bytes, tree: bytes) -> None:
        self._head, self._tree = head, tree

    async def heads(self, url: str) -> Answer:
        return Answer(Outcome.OK, 200, body=self._head)

    async def clone(self, url: str) -> Answer:
        return Answer(Outcome.OK, 200)

    async def tree(self, commit: str) -> HostReply:
        return HostReply(200, body=self._tree)

    async def entry(self, commit: str, file: str) -> HostReply:
        return HostReply(200, body=self._tree)

    async def blob(self, id_: str) -> Answer:
        return Answer(Outcome.OK, 200, body=self._tree)


class _GitHost:
    """A host of repositories, when it is asked over HTTP."""

    base_url = "https://git.example.com"

    def __init__(self, body: bytes) -> None:
        self._body = body

    async def get(self, target: str, **options: Any) -> Answer:
        headers = {"content-type": "application/x-git-upload-pack-advertisement"}
        return Answer(Outcome.OK, 200, headers, self._body)


def kept(data: bytes) -> None:
    """What an earlier release or a fault has left behind counts as nothing."""
    memory = Memory()
    memory.kept = dict.fromkeys(["tree:1", "answer"], data)
    found = asyncio.run(code_host.recall_paths(memory, 1, text(data)))
    assert found is None or isinstance(found, list)
    recalled = asyncio.run(cache.recall_reply(memory, "answer"))
    if recalled is not None:
        assert recalled.confirmed(HostReply(304, {})).status == 200


def sealed(data: bytes) -> None:
    """What was sealed opens beside its text; anything else does not, and says nothing."""
    beside, content = lines(data, 2)
    made = encryption.seal_secret(_KEY, "webhooks", beside, content.encode())
    assert encryption.open_secret(_KEY, "webhooks", beside, made) == content.encode()
    for one in (data, made[:-1] + bytes([made[-1] ^ 1])):
        try:
            encryption.open_secret(_KEY, "webhooks", beside, one)
        except encryption.NotOpenedError:
            continue
        raise AssertionError("what nobody sealed was opened")
    sent = sender.sign_message(_KEY, "id", 1, content.encode())
    assert all(value.isascii() and value.isprintable() for value in sent.values())


def alerts(data: bytes) -> None:
    """The routes of Alertmanager are understood, or count as unknown."""
    given = text(data)
    found = api.read_alert_routes(given)
    if not isinstance(found, Missing):
        assert found.leads_on({"service": "checkout", "severity": "critical"}) in {True, False}
    quoted = prometheus.quote_text(given)
    assert "\n" not in quoted
    assert quoted.replace("\\\\", "").replace('\\"', "").count('"') == 2


def answer_to_client(data: bytes) -> None:
    """The Python client reads any answer, or raises an error of its own."""
    request = httpx2.Request("GET", "https://factbook.example.com/api")
    for status in (200, 302, 400, 503):
        answer = httpx2.Response(status, content=data, request=request)
        try:
            answers.receive_answer(functools.partial(answers.decode_answer, dict[str, Any]), answer)
        except ClientError as error:
            check_told(error)


TARGETS = (
    Target("settings", settings, ("settings.table.load_settings",), share=20),
    Target(
        "options",
        options,
        ("settings.option_tables.read_options", "settings.option_tables.read_option_table"),
        share=10,
    ),
    Target("openid", provider, ("auth.oidc.provider.decode_provider_reply",), share=6, examples=10),
    Target("git", git, (), share=40),
    Target("git-tree", repository, (), share=20),
    Target("kept", kept, (), share=10),
    Target(
        "sealed", sealed, ("auth.encryption.open_secret", "webhooks.store.open_target"), share=10
    ),
    Target("alertmanager", alerts, ("integrations.prometheus.api.read_alert_routes",), share=30),
    Target("client", answer_to_client, ("client.answers.decode_answer",), share=20),
)
