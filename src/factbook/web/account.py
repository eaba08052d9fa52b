"""Administration → Account (name, password, sessions, clients) and API access."""

import asyncio
import re
import secrets
import shlex
from collections.abc import Sequence
from typing import Any, NamedTuple
from urllib.parse import urlencode

from factbook.audit.trail import AuditEntry
from factbook.auth import invitations, passwords, permissions, sessions, token_rules, tokens, users
from factbook.auth.oauth import clients, consents
from factbook.auth.oauth.consents import Consent
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
    StoredToken,
    TokenUsage,
)
from factbook.clock import DAY, SECOND
from factbook.errors import (
    ConflictError,
    FactbookError,
    InputError,
    NotAllowedError,
    NotFoundError,
    TooManyRequestsError,
)
from factbook.http import audit, client_configs
from factbook.http.requests import Reply
from factbook.storage import Transaction
from factbook.web import pages, sign_in
from factbook.web.pages import THEMES, PageContext, PageRoute

ACCOUNT_PATH = "/administration/account"
_YEAR_SECONDS = 365 * DAY // SECOND


class ConsentRow(NamedTuple):
    """A consent with its client host, permission titles, and usage over thirty days."""

    consent: Consent
    host: str
    permissions: list[str]
    usage: TokenUsage


async def show_account(visit: PageContext, status: int = 200, **problems: str) -> Reply:
    """Show the account of the signed-in person."""
    database, ref = visit.state.database, visit.person.ref
    person = await users.find_user(database, ref)
    assert person is not None
    usage = await visit.state.usage.of(await tokens.list_token_ids(database, ref))
    return visit.page(
        "account.html",
        status,
        usage=TokenUsage(
            sum(each.calls for each in usage.values()), sum(each.size for each in usage.values())
        ),
        person=person,
        role=permissions.ROLE_TITLES[person.role],
        permissions=[TITLES[name] for name in TITLES if name in person.permissions],
        sessions=await sessions.list_sessions(database, ref),
        consents=await _list_consent_rows(visit),
        themes=[(theme, theme.capitalize()) for theme in THEMES],
        name_problem=problems.get("name_problem", ""),
        password_problem=problems.get("password_problem", ""),
    )


async def _list_consent_rows(visit: PageContext) -> list[ConsentRow]:
    """Clients that can act on behalf of the person."""
    found = await consents.list_consents(visit.state.database, visit.person.ref, visit.now)
    usage = await visit.state.usage.of([each.id for each in found])
    return [
        ConsentRow(
            each,
            clients.extract_redirect_host(each.redirect_uri),
            [TITLES[name] for name in each.permissions],
            usage[each.id],
        )
        for each in found
    ]


async def rename_person(visit: PageContext) -> Reply:
    """Change the display name."""
    ref, name = visit.person.ref, visit.sent.one("display_name")
    write = visit.writing(AuditEntry("person.change", ref, {"changed": "display name"}))
    try:
        await write(lambda transaction: users.rename_user(transaction, ref, name))
    except InputError as error:
        return await show_account(visit, 400, name_problem=error.message)
    return visit.redirect(ACCOUNT_PATH, "Your name was changed.")


async def change_password(visit: PageContext) -> Reply:
    """Change the password; ends other sessions, and revokes consents and password links."""
    ref = visit.person.ref
    try:
        hashed = await _hash_new_password(visit)
    except (InputError, TooManyRequestsError) as error:
        return await show_account(visit, error.status, password_problem=error.message)
    keep = visit.person.hash

    def work(transaction: Transaction) -> None:
        invitations.withdraw_password_links(transaction, ref)
        users.store_password_hash(transaction, ref, hashed)
        sessions.end_other_sessions(transaction, ref, keep)
        consents.end_consents_of(transaction, ref)

    await visit.writing(AuditEntry("person.change", ref, {"changed": "password"}))(work)
    sign_in.mark_browser(visit, ref, hashed)
    ended = "all other sessions were ended, and every client has to ask again."
    return visit.redirect(ACCOUNT_PATH, f"Your password was changed; {ended}")


async def end_own_session(visit: PageContext) -> Reply:
    """End one session of the person, or all except the current one."""
    ref, id_, keep = visit.person.ref, visit.sent.one("session"), visit.person.hash

    def work(transaction: Transaction) -> None:
        if id_ == "others":
            sessions.end_other_sessions(transaction, ref, keep)
        elif not sessions.end_session_by_id(transaction, ref, id_):
            raise NotFoundError("This session has already ended.")

    await visit.writing(AuditEntry("session.end", ref, {"session": id_[:16]}))(work)
    notice = "All other sessions were ended." if id_ == "others" else "The session was ended."
    return visit.redirect(ACCOUNT_PATH, notice)


async def end_own_consent(visit: PageContext) -> Reply:
    """Revoke the consent that the person gave to an OAuth client."""
    ref, id_ = visit.person.ref, visit.sent.one("consent")

    def about(ended: Consent) -> AuditEntry:
        detail = {"client": ended.client, "name": ended.client_name}
        return AuditEntry("consent.revoke", ended.id, detail)

    ended = await visit.writing(about)(lambda tx: consents.revoke_own_consent(tx, id_, ref))
    return visit.redirect(ACCOUNT_PATH, f"{ended.client_name} no longer has access.")


async def choose_theme(visit: PageContext) -> Reply:
    """Set the page theme: light, dark or system."""
    theme = visit.sent.one("theme")
    if theme not in THEMES:
        raise InputError(f"There is no theme with this name. The themes are {', '.join(THEMES)}.")
    visit.keep_cookie(pages.THEME_COOKIE, theme, _YEAR_SECONDS)
    return visit.redirect(ACCOUNT_PATH)


async def _hash_new_password(visit: PageContext) -> str:
    """Check the current password, and hash the new one.

    Raises InputError, or TooManyRequestsError after too many wrong guesses of the current password.
    """
    ref, form = visit.person.ref, visit.sent
    stored = await users.get_password_hash(visit.state.database, ref)
    async with visit.site.hashing:
        # Inside the semaphore: a burst of guesses can't all pass before the first one fails.
        tried = sign_in.limit_current_password(visit)
        tried.check()
        if not await asyncio.to_thread(passwords.matches_password, stored, form.raw("current")):
            tried.count()
            raise InputError("The current password is wrong.")
    password = form.raw("password")
    passwords.check_password(password, ref)
    if password != form.raw("again"):
        raise InputError("The two new passwords differ.")
    return await visit.site.slow(passwords.hash_password, password)


ACCOUNT: Sequence[PageRoute] = (
    PageRoute("GET", ACCOUNT_PATH, show_account),
    PageRoute("POST", f"{ACCOUNT_PATH}/name", rename_person),
    PageRoute("POST", f"{ACCOUNT_PATH}/password", change_password),
    PageRoute("POST", f"{ACCOUNT_PATH}/sessions", end_own_session),
    PageRoute("POST", f"{ACCOUNT_PATH}/consents", end_own_consent),
    PageRoute("POST", f"{ACCOUNT_PATH}/theme", choose_theme),
)


class Use(NamedTuple):
    """A text to copy, with instructions."""

    title: str
    about: str
    text: str


def list_token_uses(server: str, word: str, value: str, permissions: frozenset[str]) -> list[Use]:
    """List the uses of a token with these permissions; `word` is the push path segment."""
    if not client_configs.is_address(server):  # an unsafe host for a shell command
        server = "http://localhost:8000"
    uses = [_make_environment_use(server, value)]
    if CATALOG_READ in permissions:
        about = "Reads one entity, to check that the token works."
        line = _write_curl(f"{server}/api/catalog/entities?limit=1", value)
        uses.append(Use("Try the token", about, line))
    if {CATALOG_READ, SOURCE_READ} <= permissions:
        url = server + client_configs.PATH
        uses.append(_make_question_use(url, value))
        for agent in client_configs.AGENTS.values():
            about = f"{agent.title} reads {agent.file}. {agent.use}"
            uses.append(Use(agent.title, about, agent.render(url, value)))
    if SET_WRITE in permissions:
        uses.append(_make_set_use(f"{server}/api/catalog/{word}-entities/sets/services", value))
    if FACT_WRITE in permissions:
        url = f"{server}/api/tech-insights/v1/facts/load-test"
        body = '{"items": [{"entity": "component:shop", "facts": {"p95": 79.0, "passed": true}}]}'
        about = "The data source load-test has to be defined first, with these facts."
        uses.append(Use("Push facts with curl", about, _write_curl(url, value, body)))
    return uses


def _make_environment_use(server: str, value: str) -> Use:
    lines = (
        f"export FACTBOOK_SERVER={shlex.quote(server)}",
        f"export {client_configs.VARIABLE}={shlex.quote(value)}",
    )
    about = "For the command factbook, and for anything that uses these variables."
    return Use("Environment variables", about, "\n".join(lines))


def _make_question_use(url: str, value: str) -> Use:
    body = (
        '{"jsonrpc": "2.0", "method": "tools/call", "id": 1,\n'
        '       "params": {"name": "get-data-source-discovery", "arguments": {}}}'
    )
    accept = '  -H "Accept: application/json, text/event-stream" \\\n'
    about = "Lists the data sources."
    return Use("Ask with curl", about, _write_curl(url, value, body, more=accept))


def _make_set_use(url: str, value: str) -> Use:
    body = (
        '{"items": [{"apiVersion": "backstage.io/v1alpha1", "kind": "Component",\n'
        '                  "metadata": {"name": "shop"},\n'
        '                  "spec": {"type": "service", "lifecycle": "production",\n'
        '                           "owner": "team-shop"}}]}'
    )
    about = "A push replaces the whole set: send everything that belongs in it."
    return Use("Push a set with curl", about, _write_curl(url, value, body, method="PUT"))


def _write_curl(
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


API_ACCESS_PATH = "/administration/account/api-access"
_TOKENS_ON_PAGE = 50
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
    (SETS, "Sets", "The token can use only the push interface, and reads and writes only these."),
    (NAMESPACES, "Namespaces", "The token writes only their entities and facts, and reads all."),
    (SOURCES, "Data sources", "Ids; the token reads, runs and pushes to only these."),
    (TOOLS, "Tools", "Names; the token calls only these."),
)


class TokenRow(NamedTuple):
    """A row in the token list; `state` is `sound`, `soon` (expires soon) or `expired`."""

    token: StoredToken
    titles: list[str]
    state: str
    usage: TokenUsage


async def show_api_access(visit: PageContext, status: int = 200, problem: str = "") -> Reply:
    """Show the tokens of the signed-in person, or of everyone."""
    everybody = visit.query("all") == "1"
    if everybody:
        visit.require(TOKEN_MANAGE)
    owner = visit.query("owner") or None if everybody else visit.person.ref
    after = _split_token_cursor(visit.query("after"))
    found = await tokens.list_token_page(
        visit.state.database, owner=owner, after=after, limit=_TOKENS_ON_PAGE + 1
    )
    shown, here = found[:_TOKENS_ON_PAGE], _make_tokens_address(everybody, visit.query("owner"))
    usage = await visit.state.usage.of([token.id for token in shown])
    return visit.page(
        "api-access.html",
        status,
        tokens=[_make_token_row(token, usage[token.id], visit.now) for token in shown],
        everybody=everybody,
        owner=visit.query("owner") if everybody else "",
        first=here if after else None,
        more=_make_tokens_address(everybody, visit.query("owner"), shown[-1])
        if len(found) > _TOKENS_ON_PAGE
        else None,
        problem=problem,
        presets=list_presets(visit.person.permissions),
        choices=[each for each in PERMISSIONS if each.name in visit.person.permissions],
        expiries=_EXPIRIES,
        narrowings=_NARROWINGS,
        request=secrets.token_urlsafe(16),
        filled=_fill_token_form(visit),
    )


async def create_own_token(visit: PageContext) -> Reply:
    """Create a token, and show its value once, in this response."""
    try:
        wish = _make_token_request(visit)
        token, value = await _create_token_once(visit, wish)
    except (InputError, NotAllowedError, ConflictError) as error:
        return await show_api_access(visit, error.status, problem=_explain_token_refusal(error))
    settings = visit.state.settings
    server = visit.server
    return visit.page(
        "api-access-made.html",
        201,
        shown=_make_token_row(token, TokenUsage(), visit.now),
        value=value,
        uses=list_token_uses(server, settings.push_word, value, token.permissions),
    )


async def revoke_listed_token(visit: PageContext) -> Reply:
    """Revoke a token: administrators can revoke any, others only their own."""
    id_, now = visit.sent.one("token"), visit.now
    owner = None if visit.may(TOKEN_MANAGE) else visit.person.ref
    write = visit.writing(audit.make_token_entry("token.revoke"))
    try:
        token = await write(
            lambda transaction: token_rules.revoke_owned_token(transaction, id_, owner, now)
        )
    except NotFoundError as error:
        return await show_api_access(visit, error.status, problem=error.message)
    back = (
        f"{API_ACCESS_PATH}?all=1"
        if visit.sent.one("all") and visit.may(TOKEN_MANAGE)
        else API_ACCESS_PATH
    )
    return visit.redirect(back, f'The token "{token.name}" is revoked.')


def list_presets(held: frozenset[str]) -> list[Preset]:
    """List the presets that need only these permissions."""
    full = Preset("all", "Full access", "Everything that your own account may do.", held)
    return [each for each in (*PRESETS, full) if each.permissions <= held]


def _make_token_request(visit: PageContext) -> TokenRequest:
    """Parse the token form; raises InputError."""
    form = visit.sent
    chosen = {each.name: each.permissions for each in list_presets(visit.person.permissions)}
    wanted = chosen.get(form.one("preset"))
    if wanted is None:
        if not (named := form.all("permission")):
            raise InputError("Choose at least one permission for the token.")
        wanted = permissions.check_permissions(named)
    expires = form.one("expires", tokens.DEFAULT_LIFETIME)
    lifetime = tokens.convert_lifetime(form.one("other") if expires == "other" else expires)
    name = token_rules.check_token_name(form.one("name"))
    limits = {
        dimension: [part.strip() for part in form.one(dimension).split(",") if part.strip()]
        for dimension in DIMENSIONS
    }
    narrowing = tokens.check_narrowing({key: parts for key, parts in limits.items() if parts})
    return TokenRequest(name, wanted, lifetime, narrowing)


async def _create_token_once(visit: PageContext, wish: TokenRequest) -> tuple[StoredToken, str]:
    """Create the token and its value; ConflictError if the form was already submitted."""
    owner, now, key = visit.person.ref, visit.now, visit.state.token_key
    held, value = visit.person.permissions, tokens.generate_token()
    id_ = token_rules.derive_token_id(visit.sent.one("request"), owner, key)
    token = await visit.writing(audit.make_token_entry("token.create"), 201)(
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


def _explain_token_refusal(error: FactbookError) -> str:
    if isinstance(error, ConflictError):
        return (
            "This form was already sent: the token was created then, and its value was shown once. "
            "If you lost the value, revoke the token and generate another."
        )
    if isinstance(error, NotAllowedError) and error.missing:
        named = " and ".join(f'"{TITLES[name]}"' for name in error.missing)
        return f"A token cannot do more than your account, which may not {named}."
    return error.message


def _fill_token_form(visit: PageContext) -> dict[str, Any]:
    """The submitted form values, or the defaults."""
    form = visit.form
    if form is None or not form.one("request"):
        filled = {"name": "", "preset": "ask", "expires": tokens.DEFAULT_LIFETIME, "other": ""}
        return {**filled, **dict.fromkeys(DIMENSIONS, ""), "permissions": []}
    fields = ("name", "preset", "expires", "other", *DIMENSIONS)
    filled = {name: form.one(name) for name in fields}
    return {**filled, "permissions": form.all("permission")}


def _make_token_row(token: StoredToken, usage: TokenUsage, now: int) -> TokenRow:
    titles = [TITLES[name] for name in TITLES if name in token.permissions]
    state = "sound"
    if token.expires_at is not None and token.expires_at <= now + _SOON:
        state = "expired" if token.expires_at <= now else "soon"
    return TokenRow(token, titles, state, usage)


def _make_tokens_address(everybody: bool, owner: str, last: StoredToken | None = None) -> str:
    query = {"all": "1", "owner": owner} if everybody else {}
    if last is not None:
        query["after"] = f"{last.created_at}/{last.id}"
    given = {name: value for name, value in query.items() if value}
    return f"{API_ACCESS_PATH}?{urlencode(given)}" if given else API_ACCESS_PATH


def _split_token_cursor(text: str) -> tuple[int, str] | None:
    if not text:
        return None
    match = _CURSOR.fullmatch(text)
    if match is None:
        raise InputError("The list has no such page.")
    return int(match[1]), match[2]


API_ACCESS: Sequence[PageRoute] = (
    PageRoute("GET", API_ACCESS_PATH, show_api_access),
    PageRoute("POST", f"{API_ACCESS_PATH}/tokens", create_own_token),
    PageRoute("POST", f"{API_ACCESS_PATH}/revoke", revoke_listed_token),
)
