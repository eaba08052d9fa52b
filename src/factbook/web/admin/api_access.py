"""Administration → Account → API access: tokens and their use; for administrators all tokens."""

import re
import secrets
import shlex
from collections.abc import Sequence
from typing import Any, NamedTuple
from urllib.parse import urlencode

from factbook.auth import permissions, token_rules, tokens
from factbook.auth.permissions import (
    CATALOG_READ,
    FACT_WRITE,
    PERMISSIONS,
    PRESETS,
    SET_WRITE,
    SOURCE_READ,
    TITLES,
    TOKEN_MANAGE,
    Preset,
)
from factbook.auth.token_rules import TokenRequest
from factbook.auth.tokens import (
    DIMENSIONS,
    NAMESPACES,
    SETS,
    SOURCES,
    TOOLS,
    Narrowing,
    StoredToken,
    TokenUsage,
)
from factbook.clock import DAY
from factbook.errors import ConflictError, FactbookError, InputError, NotAllowedError, NotFoundError
from factbook.http import audit, client_configs
from factbook.http.requests import Reply
from factbook.web.site.endpoint import PageRoute
from factbook.web.site.page_context import PageContext


class Use(NamedTuple):
    """A text to copy, and its instructions."""

    title: str
    about: str
    text: str


def uses(server: str, word: str, value: str, permissions: frozenset[str]) -> list[Use]:
    """Uses for these permissions; `word` is the path word of the push interface."""
    if not client_configs.is_address(server):  # a host that no line for a shell should hold
        server = "http://localhost:8000"
    found = [_environment(server, value)]
    if CATALOG_READ in permissions:
        found.append(_entities(server, value))
    if {CATALOG_READ, SOURCE_READ} <= permissions:
        url = server + client_configs.PATH
        found += [_question(url, value), *_agents(url, value)]
    if SET_WRITE in permissions:
        found.append(_set(f"{server}/api/catalog/{word}-entities/sets/services", value))
    if FACT_WRITE in permissions:
        found.append(_facts(f"{server}/api/tech-insights/v1/facts/load-test", value))
    return found


def _agents(url: str, value: str) -> list[Use]:
    return [
        Use(one.title, f"{one.title} reads {one.file}. {one.use}", one.render(url, value))
        for one in client_configs.AGENTS.values()
    ]


def _environment(server: str, value: str) -> Use:
    lines = (
        f"export FACTBOOK_SERVER={shlex.quote(server)}",
        f"export {client_configs.VARIABLE}={shlex.quote(value)}",
    )
    about = "For the command factbook, and for anything that uses these variables."
    return Use("Environment variables", about, "\n".join(lines))


def _question(url: str, value: str) -> Use:
    body = (
        '{"jsonrpc": "2.0", "method": "tools/call", "id": 1,\n'
        '       "params": {"name": "get-data-source-discovery", "arguments": {}}}'
    )
    accept = '  -H "Accept: application/json, text/event-stream" \\\n'
    about = "Asks which data sources there are."
    return Use("Ask with curl", about, _curl(url, value, body, more=accept))


def _entities(server: str, value: str) -> Use:
    about = "Asks for one entity, to see whether the token works."
    return Use("Try the token", about, _curl(f"{server}/api/catalog/entities?limit=1", value))


def _set(url: str, value: str) -> Use:
    body = (
        '{"items": [{"apiVersion": "backstage.io/v1alpha1", "kind": "Component",\n'
        '                  "metadata": {"name": "shop"},\n'
        '                  "spec": {"type": "service", "lifecycle": "production",\n'
        '                           "owner": "team-shop"}}]}'
    )
    about = "A push replaces the whole set: send everything that belongs in it."
    return Use("Push a set with curl", about, _curl(url, value, body, method="PUT"))


def _facts(url: str, value: str) -> Use:
    body = '{"items": [{"entity": "component:shop", "facts": {"p95": 79.0, "passed": true}}]}'
    about = "The data source load-test has to be defined first, with these facts."
    return Use("Push facts with curl", about, _curl(url, value, body))


def _curl(
    url: str, value: str, body: str | None = None, *, method: str | None = None, more: str = ""
) -> str:
    verb = f"-X {method} " if method else ""
    lines = (
        f"curl -sS {verb}{shlex.quote(url)} \\\n"
        f"  -H {shlex.quote(f'Authorization: Bearer {value}')}"
    )
    if body is None:
        return lines
    return f"{lines} \\\n  -H 'Content-Type: application/json' \\\n{more}  -d '{body}'"


PATH = "/administration/account/api-access"
_PAGE = 50
_SOON = 14 * DAY
_CURSOR = re.compile(r"([0-9]{1,15})/([0-9a-f-]{36})")
_EXPIRIES = (
    ("30d", "30 days"),
    ("90d", "90 days"),
    ("365d", "1 year"),
    ("never", "Never"),
    ("other", "Another time"),
)

_NARROWINGS = (
    (SETS, "Sets", "Of the push interface: it reads and writes these alone."),
    (NAMESPACES, "Namespaces", "It writes their entities and facts alone, and reads all."),
    (SOURCES, "Data sources", "By their ids: it reads, runs and pushes to these alone."),
    (TOOLS, "Tools", "By their names: it calls these alone."),
)


class TokenRow(NamedTuple):
    """A token as its row shows it; `state` is one of sound, soon and expired."""

    token: StoredToken
    titles: list[str]
    state: str
    usage: TokenUsage


async def show(visit: PageContext, status: int = 200, problem: str = "") -> Reply:
    """Page of the tokens of the person signed in, or of everybody."""
    everybody = visit.query("all") == "1"
    if everybody:
        visit.require(TOKEN_MANAGE)
    owner = visit.query("owner") or None if everybody else visit.person.ref
    after = _place(visit.query("after"))
    found = await tokens.list_token_page(
        visit.state.database, owner=owner, after=after, limit=_PAGE + 1
    )
    shown, here = found[:_PAGE], _address(everybody, visit.query("owner"))
    usage = await visit.state.usage.of([token.id for token in shown])
    return visit.page(
        "api-access.html",
        status,
        tokens=[_shown(token, usage[token.id], visit.now) for token in shown],
        everybody=everybody,
        owner=visit.query("owner") if everybody else "",
        first=here if after else None,
        more=_address(everybody, visit.query("owner"), shown[-1]) if len(found) > _PAGE else None,
        problem=problem,
        presets=presets(visit.person.permissions),
        choices=[each for each in PERMISSIONS if each.name in visit.person.permissions],
        expiries=_EXPIRIES,
        narrowings=_NARROWINGS,
        request=secrets.token_urlsafe(16),
        filled=_filled(visit),
    )


async def make(visit: PageContext) -> Reply:
    """Create a token, and show its value in this answer alone."""
    try:
        wish = _wish(visit)
        token, value = await _made(visit, wish)
    except (InputError, NotAllowedError, ConflictError) as error:
        return await show(visit, error.status, problem=_words(error))
    settings = visit.state.settings
    server = visit.server
    return visit.page(
        "api-access-made.html",
        201,
        shown=_shown(token, TokenUsage(), visit.now),
        value=value,
        uses=uses(server, settings.push_word, value, token.permissions),
    )


async def revoke(visit: PageContext) -> Reply:
    """Revoke a token of one's own, or as an administrator anybody's."""
    id_, now = visit.sent.one("token"), visit.now
    owner = None if visit.may(TOKEN_MANAGE) else visit.person.ref
    write = visit.writing(audit.token_entry("token.revoke"))
    try:
        token = await write(
            lambda transaction: token_rules.revoke_owned_token(transaction, id_, owner, now)
        )
    except NotFoundError as error:
        return await show(visit, error.status, problem=error.message)
    back = f"{PATH}?all=1" if visit.sent.one("all") and visit.may(TOKEN_MANAGE) else PATH
    return visit.redirect(back, f'The token "{token.name}" is revoked.')


def presets(held: frozenset[str]) -> list[Preset]:
    """Presets within these permissions."""
    full = Preset("all", "Full access", "Everything that your own account may do.", held)
    return [each for each in (*PRESETS, full) if each.permissions <= held]


def _wish(visit: PageContext) -> TokenRequest:
    """Token request from the form; raises InputError."""
    form = visit.sent
    chosen = {each.name: each.permissions for each in presets(visit.person.permissions)}
    wanted = chosen.get(form.one("preset"))
    if wanted is None:
        if not (named := form.all("permission")):
            raise InputError("Choose what the token may do: one permission at least.")
        wanted = permissions.check_permissions(named)
    expires = form.one("expires", tokens.DEFAULT_LIFETIME)
    lifetime = tokens.convert_lifetime(form.one("other") if expires == "other" else expires)
    name = token_rules.check_token_name(form.one("name"))
    return TokenRequest(name, wanted, lifetime, _narrowing(visit))


def _narrowing(visit: PageContext) -> Narrowing | None:
    """Limits of the token that the form asks for; raises InputError."""
    sent = {name: visit.sent.one(name).split(",") for name in DIMENSIONS}
    named = {name: [part.strip() for part in parts if part.strip()] for name, parts in sent.items()}
    return tokens.check_narrowing({name: parts for name, parts in named.items() if parts})


async def _made(visit: PageContext, wish: TokenRequest) -> tuple[StoredToken, str]:
    """The token of the form, made once however often it is sent, and its value."""
    owner, now, key = visit.person.ref, visit.now, visit.state.token_key
    held, value = visit.person.permissions, tokens.generate_token()
    id_ = token_rules.derive_token_id(visit.sent.one("request"), owner, key)
    token = await visit.writing(audit.token_entry("token.create"), 201)(
        lambda transaction: token_rules.make_token(
            transaction,
            wish,
            digest=tokens.hash_token(value, key),
            owner=owner,
            held=held,
            created_by=owner,
            now=now,
            id=id_,
        )
    )
    return token, value


def _words(error: FactbookError) -> str:
    if isinstance(error, ConflictError):
        return (
            "This form was sent before: the token was created then, and its value shown once. "
            "If you lost the value, revoke the token and generate another."
        )
    if isinstance(error, NotAllowedError) and error.missing:
        named = " and ".join(f'"{TITLES[name]}"' for name in error.missing)
        return f"A token cannot do more than your account, which may not {named}."
    return error.message


def _filled(visit: PageContext) -> dict[str, Any]:
    """Values of the form as sent, or the initial ones."""
    form = visit.form
    if form is None or not form.one("request"):
        filled = {"name": "", "preset": "ask", "expires": tokens.DEFAULT_LIFETIME, "other": ""}
        return {**filled, **dict.fromkeys(DIMENSIONS, ""), "permissions": []}
    fields = ("name", "preset", "expires", "other", *DIMENSIONS)
    filled = {name: form.one(name) for name in fields}
    return {**filled, "permissions": form.all("permission")}


def _shown(token: StoredToken, usage: TokenUsage, now: int) -> TokenRow:
    titles = [TITLES[name] for name in TITLES if name in token.permissions]
    state = "sound"
    if token.expires_at is not None and token.expires_at <= now + _SOON:
        state = "expired" if token.expires_at <= now else "soon"
    return TokenRow(token, titles, state, usage)


def _address(everybody: bool, owner: str, last: StoredToken | None = None) -> str:
    query = {"all": "1", "owner": owner} if everybody else {}
    if last is not None:
        query["after"] = f"{last.created_at}/{last.id}"
    given = {name: value for name, value in query.items() if value}
    return f"{PATH}?{urlencode(given)}" if given else PATH


def _place(text: str) -> tuple[int, str] | None:
    if not text:
        return None
    match = _CURSOR.fullmatch(text)
    if match is None:
        raise InputError("There is no such page of the list.")
    return int(match[1]), match[2]


API_ACCESS: Sequence[PageRoute] = (
    PageRoute("GET", PATH, show),
    PageRoute("POST", f"{PATH}/tokens", make),
    PageRoute("POST", f"{PATH}/revoke", revoke),
)
