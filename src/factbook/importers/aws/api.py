"""Calls to AWS Organizations: signed, repeated when throttled, and listed to their end."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

import msgspec
import stamina

from factbook.clock import Clock
from factbook.importers.aws.signatures import AwsKeys, AwsRequest, Scope, signed
from factbook.outbound import HttpClient
from factbook.outbound.outcomes import REPEATED, UNUSABLE, Answer, Missing, Outcome, read_as

T = TypeVar("T")

_SERVICE: Final = "AWSOrganizationsV20161128"
_MOST_PAGES: Final = 10_000
_ATTEMPTS: Final = 6
_LONGEST_PAUSE: Final = 10.0

_THROTTLED: Final = frozenset(
    {"TooManyRequestsException", "ThrottlingException", "Throttling", "RequestLimitExceeded"}
)
_DENIED: Final = frozenset(
    {"AccessDeniedException", "AccessDenied", "AccessDeniedForDependencyException"}
)
_REFUSED: Final = frozenset(
    {
        "ExpiredTokenException",
        "IncompleteSignature",
        "IncompleteSignatureException",
        "InvalidClientTokenId",
        "InvalidSignatureException",
        "MissingAuthenticationTokenException",
        "NotAuthorized",
        "OptInRequired",
        "RequestExpired",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
    }
)
_NO_ORGANIZATION: Final = "AWSOrganizationsNotInUseException"


class _ThrottledError(Exception):
    """The host asked to wait."""


@dataclass
class AwsListing(Generic[T]):
    """Items of every page, and the reason if there are pages that were not read."""

    items: list[T] = field(default_factory=list)
    missing: Missing | None = None

    def take(self, page: list[Any] | Missing, type_: type[T]) -> None:
        """Add the items of a page; one of another form is missing."""
        if isinstance(page, Missing):
            self.missing = page
            return
        for one in page:
            item = read_as(one, type_)
            if isinstance(item, Missing):
                self.missing = item
            else:
                self.items.append(item)


class OrganizationsApi:
    """AWS Organizations, asked with one pair of keys."""

    def __init__(self, client: HttpClient, keys: AwsKeys, region: str, clock: Clock) -> None:
        self._client = client
        self._keys = keys
        self._scope = Scope("organizations", region)
        self._clock = clock

    async def listing(
        self,
        action: str,
        member: str,
        type_: type[T],
        show: Callable[[int], None] = lambda count: None,
        **arguments: Any,
    ) -> AwsListing[T]:
        """The items of all pages; `member` is the field of an answer that has them."""
        found, given, seen = AwsListing[T](), dict(arguments), set[str]()
        for _ in range(_MOST_PAGES):
            page = await self.call(action, given)
            if isinstance(page, Missing):
                found.missing = page
                return found
            found.take(read_as(page.get(member), list[Any]), type_)
            show(len(found.items))
            token = page.get("NextToken")
            if token is None or found.missing:
                return found
            if not isinstance(token, str) or token in seen:
                break
            seen.add(token)
            given["NextToken"] = token
        found.missing = REPEATED
        return found

    async def call(self, action: str, arguments: Mapping[str, Any]) -> dict[str, Any] | Missing:
        """The answer to one call, or the reason that there is none."""
        answer = await self._repeated(action, arguments)
        if not answer.ok:
            return _missing(action, answer)
        if not isinstance(answer.data, dict):
            return UNUSABLE
        return answer.data

    async def _repeated(self, action: str, arguments: Mapping[str, Any]) -> Answer:
        try:
            async for attempt in stamina.retry_context(
                on=_ThrottledError, attempts=_ATTEMPTS, timeout=None, wait_max=_LONGEST_PAUSE
            ):
                with attempt:
                    answer = await self._once(action, arguments)
                    if _code(answer) in _THROTTLED:
                        raise _ThrottledError
        except _ThrottledError:
            pass
        return answer

    async def _once(self, action: str, arguments: Mapping[str, Any]) -> Answer:
        headers = {
            "content-type": "application/x-amz-json-1.1",
            "x-amz-target": f"{_SERVICE}.{action}",
        }
        content = msgspec.json.encode(arguments)
        request = AwsRequest("POST", f"{self._client.base_url}/", "", headers, content)
        proven = signed(request, self._keys, self._scope, self._clock())
        return await self._client.post("/", arguments, headers=proven)


def _missing(action: str, answer: Answer) -> Missing:
    """The reason that AWS gives in its own words, or by the status of HTTP."""
    code, host = _code(answer), answer.detail.partition(":")[0]
    if code in _THROTTLED:
        return Missing(Outcome.RATE_LIMITED, f"{host}: asks to call less often")
    if code in _DENIED:
        return Missing(Outcome.DENIED, f"needs organizations:{action}")
    if code in _REFUSED:
        return Missing(Outcome.REFUSED, "the keys are not accepted: wrong, expired or revoked")
    if code == _NO_ORGANIZATION:
        return Missing(Outcome.NOT_FOUND, "the account is in no organization")
    return answer.missing


def _code(answer: Answer) -> str:
    """The name of an error: `TooManyRequestsException`."""
    if answer.ok or not isinstance(answer.data, dict):
        return ""
    found = answer.data.get("__type") or answer.data.get("code")
    return found.rpartition("#")[2].partition(":")[0] if isinstance(found, str) else ""
