"""Replies, classified answers, and the reasons for missing values.

`REFUSED` means that the host rejects the credential, which says nothing about an entity. `DENIED`
means that the credential may not read this entity, which counts at once.

A table maps signs in a reply to an outcome and a sentence that names its cause; the first matching
row decides. The sentences are fixed and never quote the host, except for names of scopes, which
consist of letters, colons, dashes and underscores.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeVar

import msgspec


class Outcome(Enum):
    """Result of a call to a vendor, or of the search for one value in its answer."""

    OK = "ok"
    REFUSED = "refused"
    DENIED = "denied"
    FEATURE_OFF = "feature-off"
    NOT_FOUND = "not-found"
    NOT_APPLICABLE = "not-applicable"
    NO_ANNOTATION = "no-annotation"
    BAD_ANNOTATION = "bad-annotation"
    RATE_LIMITED = "rate-limited"
    TRANSIENT = "transient"
    TOO_LARGE = "too-large"
    INCOMPLETE = "incomplete"
    BAD_DEFINITION = "bad-definition"


class Meaning(NamedTuple):
    """Consequences of an outcome for a missing value.

    `reason` is a reason from `facts.schema`. `passing`: the vendor said nothing about the value, so
    the last one stays for a while; otherwise the value becomes unknown at once. `retried`: another
    call in the same run may obtain the value.
    """

    reason: str
    passing: bool
    retried: bool = False


MEANINGS: Final[dict[Outcome, Meaning]] = {
    Outcome.REFUSED: Meaning("forbidden", passing=True),
    Outcome.DENIED: Meaning("forbidden", passing=False),
    Outcome.FEATURE_OFF: Meaning("feature-off", passing=False),
    Outcome.NOT_FOUND: Meaning("not-found", passing=False),
    Outcome.NOT_APPLICABLE: Meaning("not-applicable", passing=False),
    Outcome.NO_ANNOTATION: Meaning("no-annotation", passing=False),
    Outcome.BAD_ANNOTATION: Meaning("bad-annotation", passing=False),
    Outcome.RATE_LIMITED: Meaning("rate-limited", passing=True, retried=True),
    Outcome.TRANSIENT: Meaning("upstream-error", passing=True, retried=True),
    Outcome.TOO_LARGE: Meaning("too-large", passing=False),
    # A successful answer lacks a part, and a retry would not change that.
    Outcome.INCOMPLETE: Meaning("upstream-error", passing=True),
    # Also for an answer in an unexpected form.
    Outcome.BAD_DEFINITION: Meaning("bad-definition", passing=True),
}


class Missing(NamedTuple):
    """Reason for a missing value; `detail` is for people and never quotes the vendor."""

    outcome: Outcome
    detail: str = ""

    @property
    def reason(self) -> str:
        """The stored form of the reason: `forbidden`, or `forbidden: needs administration`."""
        word = MEANINGS[self.outcome].reason
        return f"{word}: {self.detail}" if self.detail else word

    @property
    def passing(self) -> bool:
        """True if the last value is kept for a while."""
        return MEANINGS[self.outcome].passing

    @property
    def retried(self) -> bool:
        """True if another call in the same run may obtain the value."""
        return MEANINGS[self.outcome].retried


UNUSABLE: Final = Missing(Outcome.TRANSIENT, "answered in an unknown format")
REPEATED: Final = Missing(Outcome.TRANSIENT, "answered with the same page again")


def report_too_many(most: int, what: str) -> Missing:
    """The reason for a list longer than the limit; `what` is a plural noun."""
    return Missing(Outcome.TOO_LARGE, f"more than {most:,} {what}")


T = TypeVar("T")

EMPTY: Final[Mapping[str, str]] = MappingProxyType({})
_LINK = re.compile(r'<([^<>]*)>\s*((?:;\s*[\w*]+\s*=\s*(?:"[^"]*"|[^",;\s]*)\s*)*)')
_RELATION = re.compile(r';\s*rel\s*=\s*(?:"([^"]*)"|([^",;\s]*))', re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class HostReply:
    """Response to one call; if there is none, `status` is 0 and `failure` gives the reason.

    Header names are in lower case. `repeatable`: another attempt may succeed.
    """

    status: int
    headers: Mapping[str, str] = field(default_factory=lambda: EMPTY, repr=False)
    body: bytes = field(default=b"", repr=False)
    failure: str = ""
    repeatable: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """Result of one request, classified by `outcome`.

    `data` is the decoded JSON body, None if there is none. `detail` describes the failure in a
    sentence without text from the host. `retry_at` is the time when a rate limit allows the next
    call, in milliseconds. `remembered`: the host confirmed that an earlier answer is still valid.
    `status` is 0 if no answer arrived or no call was made.
    """

    outcome: Outcome
    status: int = 0
    headers: Mapping[str, str] = field(default_factory=lambda: EMPTY, repr=False)
    body: bytes = field(default=b"", repr=False)
    data: Any = field(default=None, repr=False)
    detail: str = ""
    retry_at: int | None = None
    remembered: bool = False

    @property
    def ok(self) -> bool:
        """True if the call succeeded."""
        return self.outcome is Outcome.OK

    @property
    def missing(self) -> Missing:
        """The reason for values that are missing because this call failed."""
        return Missing(self.outcome, self.detail)

    @property
    def message(self) -> str:
        """The host's own `message`, for comparison only; never show it."""
        found = self.data.get("message") if isinstance(self.data, dict) else None
        return found if isinstance(found, str) else ""

    def read_as(self, type_: type[T]) -> T | Missing:
        """The data converted to this type, or the reason that they are missing."""
        return read_as(self.data, type_) if self.ok else self.missing

    def link(self, relation: str) -> str | None:
        """The URL in the Link header (RFC 8288) for the relation, e.g. `next`."""
        for address, parameters in _LINK.findall(self.headers.get("link", "")):
            found = _RELATION.search(parameters)
            if found and relation in (found[1] or found[2] or "").lower().split():
                return str(address)
        return None


def read_as(data: Any, type_: type[T]) -> T | Missing:
    """The data converted to this type; UNUSABLE if they don't match."""
    try:
        return msgspec.convert(data, type_)
    except (msgspec.ValidationError, OverflowError, RecursionError):
        return UNUSABLE


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
_SCOPE: Final = re.compile(r"[a-z][a-z_:-]{1,39}")
_MOST_SCOPES: Final = 5

SAML: Final = (
    "the credential is not authorized for the organization's single sign-on (SAML); "
    "authorize it there"
)
ALLOW_LIST: Final = "this server's address is not on the organization's IP allow list"
SUSPENDED_ACCOUNT: Final = "the account of the credential is suspended"
ENDED_CREDENTIAL: Final = "the credential has expired or was revoked; renew it"
UNKNOWN_CREDENTIAL: Final = "the credential is not accepted: wrong, expired or revoked; renew it"
LEGAL: Final = "blocked for legal reasons"
MISSING_SCOPE: Final = "the credential lacks a scope"

_GRAPHQL_OUTCOMES: Final[dict[str, Outcome]] = {
    "RATE_LIMITED": Outcome.RATE_LIMITED,
    "RATE_LIMIT": Outcome.RATE_LIMITED,
    "FORBIDDEN": Outcome.DENIED,
    "INSUFFICIENT_SCOPES": Outcome.DENIED,
    "NOT_FOUND": Outcome.NOT_FOUND,
}

_ERROR_MEMBERS: Final = frozenset({"message", "documentation_url", "status", "errors", "data"})


class Signs(NamedTuple):
    """Signs in a reply. `text` is the host's error message; `readable`: the body is JSON."""

    status: int
    headers: Mapping[str, str]
    text: str
    graphql_types: frozenset[str]
    readable: bool


class Sign(NamedTuple):
    """Row of the table: a condition and its outcome. `status` and `sign` describe it in words.

    `cause` is a sentence that names the cause, if the sign reveals it.
    """

    status: str
    sign: str
    outcome: Outcome
    fits: Callable[[Signs], bool]
    cause: str = ""


def _has_status(*expected: int) -> Callable[[Signs], bool]:
    return lambda signs: signs.status in expected


def _has_text(pattern: re.Pattern[str], *expected: int) -> Callable[[Signs], bool]:
    return lambda signs: signs.status in expected and bool(pattern.search(signs.text))


def _is_spent(signs: Signs) -> bool:
    names = ("x-ratelimit-remaining", "ratelimit-remaining")
    spent = any(signs.headers.get(name, "").strip() == "0" for name in names)
    return signs.status == 403 and (spent or "retry-after" in signs.headers)


def _list_missing_scopes(headers: Mapping[str, str]) -> list[str]:
    """Scopes that the token lacks, as GitHub reports them; any of them would suffice."""
    if "x-oauth-scopes" not in headers:
        return []
    accepted = _SCOPE.findall(headers.get("x-accepted-oauth-scopes", ""))
    held = _SCOPE.findall(headers["x-oauth-scopes"])
    return [] if set(accepted) & set(held) else accepted[:_MOST_SCOPES]


def _is_success(signs: Signs) -> bool:
    return 200 <= signs.status < 300


SIGNS: Final[tuple[Sign, ...]] = (
    Sign(
        "none",
        "no answer in time, none that is HTTP, or one that is too large or cut off",
        Outcome.TRANSIENT,
        _has_status(0),
    ),
    Sign("429", "", Outcome.RATE_LIMITED, _has_status(429)),
    Sign("403", "no calls remaining, or `Retry-After`", Outcome.RATE_LIMITED, _is_spent),
    Sign(
        "200, 403",
        "a text about a rate limit, such as GitHub's secondary one",
        Outcome.RATE_LIMITED,
        _has_text(_LIMIT_TEXT, 200, 403),
    ),
    Sign(
        "any",
        "a GraphQL error of type `RATE_LIMITED`",
        Outcome.RATE_LIMITED,
        lambda signs: bool(signs.graphql_types & {"RATE_LIMITED", "RATE_LIMIT"}),
    ),
    Sign(
        "2xx",
        "a body that is not JSON, where an integration reads JSON",
        Outcome.TRANSIENT,
        lambda signs: _is_success(signs) and not signs.readable,
    ),
    Sign("2xx", "also what a 304 confirms", Outcome.OK, _is_success),
    Sign(
        "403",
        "a scope that the credential lacks",
        Outcome.DENIED,
        lambda signs: (
            signs.status in {401, 403}
            and bool(_list_missing_scopes(signs.headers) or _SCOPE_TEXT.search(signs.text))
        ),
        MISSING_SCOPE,
    ),
    Sign(
        "403",
        "`X-GitHub-SSO`, or a text about SAML",
        Outcome.REFUSED,
        lambda signs: (
            signs.status == 403
            and ("x-github-sso" in signs.headers or bool(_SAML.search(signs.text)))
        ),
        SAML,
    ),
    Sign(
        "401, 403",
        "a text about an IP allow list",
        Outcome.REFUSED,
        _has_text(_ALLOW_LIST, 401, 403),
        ALLOW_LIST,
    ),
    Sign(
        "401, 403",
        "a text that the account is suspended",
        Outcome.REFUSED,
        _has_text(_SUSPENDED, 401, 403),
        SUSPENDED_ACCOUNT,
    ),
    Sign(
        "401, 403",
        "a text that the token has expired or was revoked",
        Outcome.REFUSED,
        _has_text(_EXPIRED, 401, 403),
        ENDED_CREDENTIAL,
    ),
    Sign("401", "", Outcome.REFUSED, _has_status(401), UNKNOWN_CREDENTIAL),
    Sign("402", "", Outcome.FEATURE_OFF, _has_status(402)),
    Sign(
        "403, 404, 410",
        "a text that the feature is disabled or not part of the plan",
        Outcome.FEATURE_OFF,
        _has_text(_FEATURE_TEXT, 403, 404, 410),
    ),
    Sign("403", "", Outcome.DENIED, _has_status(403)),
    Sign("451", "", Outcome.TRANSIENT, _has_status(451), LEGAL),
    Sign("404, 410", "", Outcome.NOT_FOUND, _has_status(404, 410)),
    Sign("any other", "", Outcome.TRANSIENT, lambda _: True),
)
"""Every row, in the order in which they are tried."""

REPEATABLE: Final = frozenset({408, 425, 500, 502, 503, 504})
"""Statuses after which another try may bring more."""


class Verdict(NamedTuple):
    """Outcome of a reply, and a sentence with its cause; empty if the reply doesn't reveal it."""

    outcome: Outcome
    cause: str


def judge_reply(reply: HostReply, data: Any, *, readable: bool = True) -> Verdict:
    """Classify a reply. `data` is its decoded body; `readable` is false if decoding failed."""
    text = _read_host_message(reply.status, data)
    errors = data.get("errors") if isinstance(data, dict) else None
    types = frozenset(map(_read_error_type, errors if isinstance(errors, list) else ()))
    signs = Signs(reply.status, reply.headers, text, types, readable)
    sign = next(sign for sign in SIGNS if sign.fits(signs))
    if sign.cause == MISSING_SCOPE and (scopes := _list_missing_scopes(reply.headers)):
        return Verdict(sign.outcome, f"{MISSING_SCOPE}, one of: {', '.join(scopes)}")
    return Verdict(sign.outcome, sign.cause)


def judge_graphql_error(error: Mapping[str, Any]) -> Verdict:
    """Classify one error of a GraphQL answer: transient unless its type says otherwise."""
    outcome = _GRAPHQL_OUTCOMES.get(_read_error_type(error), Outcome.TRANSIENT)
    if outcome is not Outcome.DENIED:
        return Verdict(outcome, "")
    extensions, message = error.get("extensions"), error.get("message")
    text = message[:1000] if isinstance(message, str) else ""
    if (isinstance(extensions, dict) and extensions.get("saml_failure")) or _SAML.search(text):
        return Verdict(Outcome.REFUSED, SAML)
    if _ALLOW_LIST.search(text):
        return Verdict(Outcome.REFUSED, ALLOW_LIST)
    return Verdict(
        outcome, MISSING_SCOPE if _read_error_type(error) == "INSUFFICIENT_SCOPES" else ""
    )


def _read_error_type(error: Any) -> str:
    if not isinstance(error, dict):
        return ""
    extensions = error.get("extensions")
    code = extensions.get("code") if isinstance(extensions, dict) else None
    found = error.get("type") or code
    return found.upper() if isinstance(found, str) else ""


def _read_host_message(status: int, data: Any) -> str:
    """The host's error message.

    A successful answer has one only if it holds nothing else: a commit has a `message`, too.
    """
    if not isinstance(data, dict):
        return ""
    if status < 400 and (data.get("data") or set(data) - _ERROR_MEMBERS):
        return ""
    found = [data.get("message"), data.get("error"), data.get("error_description")]
    errors = data.get("errors")
    if isinstance(errors, list):
        found += [error.get("message") if isinstance(error, dict) else error for error in errors]
    return "\n".join(text[:1000] for text in found if isinstance(text, str))[:10_000]
