"""Table that maps signs in a reply to an outcome and a sentence that names its cause.

The first matching row decides. Sentences are fixed: no text from a host is repeated but for the
names of scopes, which consist of letters, colons, dashes and underscores.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from factbook.outbound.outcomes import HostReply, Outcome

_LIMIT_TEXT: Final = re.compile(
    r"secondary rate limit|abuse detection|rate limit (?:already )?exceeded|too many requests",
    re.IGNORECASE,
)
_FEATURE_TEXT: Final = re.compile(
    r"\bupgrade\b|\b(?:is|are|been|has) disabled\b|\bnot enabled\b|\bmust be enabled\b"
    r"|\bnot (?:available|included) (?:for|in|on|with) (?:your|this) .{0,40}\bplan\b",
    re.IGNORECASE,
)
# Sources: GitHub on SAML, IP allow lists and REST troubleshooting; RFC 6750, section 3.1.
_ALLOW_LIST: Final = re.compile(
    r"\bip allow ?list\b|\bIP address is not permitted\b", re.IGNORECASE
)
_SUSPENDED: Final = re.compile(
    r"\b(?:account|user|installation)\b.{0,40}\b(?:suspended|blocked)\b", re.IGNORECASE
)
_SAML: Final = re.compile(r"\bSAML (?:enforcement|SSO)\b", re.IGNORECASE)
_EXPIRED: Final = re.compile(r"\btoken (?:is |has |was )?(?:expired|revoked)\b", re.IGNORECASE)
_SCOPE_TEXT: Final = re.compile(r"\binsufficient[ _]scopes?\b|\brequired scopes\b", re.IGNORECASE)
_SCOPES: Final = re.compile(r"[a-z][a-z_:-]{1,39}")
_MOST_SCOPES: Final = 5

SAML: Final = (
    "the credential is not authorised for the organisation's single sign-on (SAML); "
    "authorise it there"
)
ALLOW_LIST: Final = "this server's address is not on the organisation's IP allow list"
SUSPENDED: Final = "the account of the credential is suspended"
ENDED: Final = "the credential has expired or was revoked; renew it"
UNKNOWN: Final = "the credential is not accepted: wrong, expired or revoked; renew it"
LEGAL: Final = "blocked for legal reasons"
SCOPES: Final = "the credential lacks a scope"

_GRAPHQL_TYPES: Final[dict[str, Outcome]] = {
    "RATE_LIMITED": Outcome.RATE_LIMITED,
    "RATE_LIMIT": Outcome.RATE_LIMITED,
    "FORBIDDEN": Outcome.DENIED,
    "INSUFFICIENT_SCOPES": Outcome.DENIED,
    "NOT_FOUND": Outcome.NOT_FOUND,
}

_WORDS: Final = frozenset({"message", "documentation_url", "status", "errors", "data"})


class Signs(NamedTuple):
    """Input of the table. `text`: the message of a refusing host; `readable`: the body is JSON."""

    status: int
    headers: Mapping[str, str]
    text: str
    graphql_types: frozenset[str]
    readable: bool


class Sign(NamedTuple):
    """One row: an outcome and its condition. `status` and `sign` describe the condition for people.

    `cause` is the sentence that names the cause, if the sign reveals it.
    """

    status: str
    sign: str
    outcome: Outcome
    fits: Callable[[Signs], bool]
    cause: str = ""


def _status(*expected: int) -> Callable[[Signs], bool]:
    return lambda signs: signs.status in expected


def _says(pattern: re.Pattern[str], *expected: int) -> Callable[[Signs], bool]:
    return lambda signs: signs.status in expected and bool(pattern.search(signs.text))


def _spent(signs: Signs) -> bool:
    names = ("x-ratelimit-remaining", "ratelimit-remaining")
    spent = any(signs.headers.get(name, "").strip() == "0" for name in names)
    return signs.status == 403 and (spent or "retry-after" in signs.headers)


def _lacks_single_sign_on(signs: Signs) -> bool:
    refused = "x-github-sso" in signs.headers or bool(_SAML.search(signs.text))
    return signs.status == 403 and refused


def _lacks_scope(signs: Signs) -> bool:
    if signs.status not in {401, 403}:
        return False
    return bool(_missing_scopes(signs.headers) or _SCOPE_TEXT.search(signs.text))


def _missing_scopes(headers: Mapping[str, str]) -> list[str]:
    """Scopes that the token lacks, any of which would suffice, as GitHub reports them."""
    if "x-oauth-scopes" not in headers:
        return []
    accepted = _SCOPES.findall(headers.get("x-accepted-oauth-scopes", ""))
    held = _SCOPES.findall(headers["x-oauth-scopes"])
    return [] if set(accepted) & set(held) else accepted[:_MOST_SCOPES]


def _limited_graphql(signs: Signs) -> bool:
    return bool(signs.graphql_types & {"RATE_LIMITED", "RATE_LIMIT"})


def _good(signs: Signs) -> bool:
    return 200 <= signs.status < 300


SIGNS: Final[tuple[Sign, ...]] = (
    Sign(
        "none",
        "no answer in time, none that is HTTP, or one that is too large or cut off",
        Outcome.TRANSIENT,
        _status(0),
    ),
    Sign("429", "", Outcome.RATE_LIMITED, _status(429)),
    Sign("403", "no calls remaining, or `Retry-After`", Outcome.RATE_LIMITED, _spent),
    Sign(
        "200, 403",
        "a text about a rate limit, such as GitHub's secondary one",
        Outcome.RATE_LIMITED,
        _says(_LIMIT_TEXT, 200, 403),
    ),
    Sign("any", "a GraphQL error of type `RATE_LIMITED`", Outcome.RATE_LIMITED, _limited_graphql),
    Sign(
        "2xx",
        "a body that is not JSON, where an integration reads JSON",
        Outcome.TRANSIENT,
        lambda signs: _good(signs) and not signs.readable,
    ),
    Sign("2xx", "also what a 304 confirms", Outcome.OK, _good),
    Sign("403", "a scope that the credential lacks", Outcome.DENIED, _lacks_scope, SCOPES),
    Sign(
        "403", "`X-GitHub-SSO`, or a text about SAML", Outcome.REFUSED, _lacks_single_sign_on, SAML
    ),
    Sign(
        "401, 403",
        "a text about an IP allow list",
        Outcome.REFUSED,
        _says(_ALLOW_LIST, 401, 403),
        ALLOW_LIST,
    ),
    Sign(
        "401, 403",
        "a text that the account is suspended",
        Outcome.REFUSED,
        _says(_SUSPENDED, 401, 403),
        SUSPENDED,
    ),
    Sign(
        "401, 403",
        "a text that the token has expired or was revoked",
        Outcome.REFUSED,
        _says(_EXPIRED, 401, 403),
        ENDED,
    ),
    Sign("401", "", Outcome.REFUSED, _status(401), UNKNOWN),
    Sign("402", "", Outcome.FEATURE_OFF, _status(402)),
    Sign(
        "403, 404, 410",
        "a text that the feature is disabled or not part of the plan",
        Outcome.FEATURE_OFF,
        _says(_FEATURE_TEXT, 403, 404, 410),
    ),
    Sign("403", "", Outcome.DENIED, _status(403)),
    Sign("451", "", Outcome.TRANSIENT, _status(451), LEGAL),
    Sign("404, 410", "", Outcome.NOT_FOUND, _status(404, 410)),
    Sign("any other", "", Outcome.TRANSIENT, lambda _: True),
)
"""Every row, in the order in which they are tried."""

REPEATABLE: Final = frozenset({408, 425, 500, 502, 503, 504})
"""Statuses after which another try may bring more."""


class Verdict(NamedTuple):
    """Outcome of a reply, and its cause in a sentence if the reply reveals it, else ""."""

    outcome: Outcome
    cause: str


def verdict(reply: HostReply, data: Any, *, readable: bool = True) -> Verdict:
    """The verdict on a reply whose body decodes to `data`, if it is `readable`."""
    text, types = _text(reply.status, data), _graphql_types(data)
    signs = Signs(reply.status, reply.headers, text, types, readable)
    sign = next(sign for sign in SIGNS if sign.fits(signs))
    if sign.cause == SCOPES and (scopes := _missing_scopes(reply.headers)):
        return Verdict(sign.outcome, f"{SCOPES}, one of: {', '.join(scopes)}")
    return Verdict(sign.outcome, sign.cause)


def verdict_on_graphql_error(error: Mapping[str, Any]) -> Verdict:
    """The verdict on one error of a GraphQL answer: transient unless its type says otherwise."""
    outcome = _GRAPHQL_TYPES.get(_type_of(error), Outcome.TRANSIENT)
    if outcome is not Outcome.DENIED:
        return Verdict(outcome, "")
    extensions, message = error.get("extensions"), error.get("message")
    text = message[:1000] if isinstance(message, str) else ""
    if (isinstance(extensions, dict) and extensions.get("saml_failure")) or _SAML.search(text):
        return Verdict(Outcome.REFUSED, SAML)
    if _ALLOW_LIST.search(text):
        return Verdict(Outcome.REFUSED, ALLOW_LIST)
    return Verdict(outcome, SCOPES if _type_of(error) == "INSUFFICIENT_SCOPES" else "")


def _type_of(error: Any) -> str:
    if not isinstance(error, dict):
        return ""
    extensions = error.get("extensions")
    code = extensions.get("code") if isinstance(extensions, dict) else None
    found = error.get("type") or code
    return found.upper() if isinstance(found, str) else ""


def _graphql_types(data: Any) -> frozenset[str]:
    errors = data.get("errors") if isinstance(data, dict) else None
    return frozenset(map(_type_of, errors)) if isinstance(errors, list) else frozenset()


def _text(status: int, data: Any) -> str:
    """The host's message, from the members where hosts put one.

    In a good answer only if it holds nothing else: a commit has a `message`, too.
    """
    if not isinstance(data, dict):
        return ""
    if status < 400 and (data.get("data") or set(data) - _WORDS):
        return ""
    found = [data.get("message"), data.get("error"), data.get("error_description")]
    errors = data.get("errors")
    if isinstance(errors, list):
        found += [error.get("message") if isinstance(error, dict) else error for error in errors]
    return "\n".join(text[:1000] for text in found if isinstance(text, str))[:10_000]
