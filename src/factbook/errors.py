"""Every error that Factbook raises on purpose, in one tree.

    FactbookError                     500
    ├── ConfigurationError            500   the settings do not fit together
    ├── InputError                    400
    │   └── InvalidItemsError         400   lists every problem with its JSON path
    ├── AuthenticationError           401
    ├── NotAllowedError               403
    ├── SignInError                   403   a provider did not establish a person's identity
    ├── NotFoundError                 404
    ├── MethodNotAllowedError         405
    ├── NotAcceptableError            406
    ├── TooSlowError                  408   a body arrives too slowly
    ├── ConflictError                 409
    ├── GoneError                     410   the requested data is no longer kept
    ├── PreconditionFailedError       412
    ├── PayloadTooLargeError          413
    ├── UnsupportedMediaTypeError     415
    ├── MisdirectedRequestError       421
    ├── TooManyRequestsError          429
    ├── UnsupportedError              501
    ├── UnavailableError              503
    │   ├── OverloadedError       503   more requests than the service can answer
    │   └── OutdatedError         503   the database is ahead of this release
    └── ToolError                     a tool's own refusal to answer, read by the model

Each class knows its HTTP status and the name that REST clients see; its docstring is the message
when none is given. `details` are further members of the rendered error object.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar, Final, Self

# Names that are compared with an unknown name, and names that an error message lists.
_COMPARED: Final = 1_000
_LISTED: Final = 20
_NEAR: Final = 3
_ALIKE: Final = 0.5
# Least similarity of further suggestions, as a share of the best one's.
_BEST: Final = 0.85

_TYPES: Final = {
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}
# Error messages of a decoder: the invalid value or member, and the path to it.
_ENUM: Final = re.compile(r"Invalid enum value '?(.*?)'?(?: - at `(\$[^`]*)`)?", re.DOTALL)
_MEMBER: Final = re.compile(
    r"Object contains unknown field `(.*?)`(?: - at `(\$[^`]*)`)?", re.DOTALL
)
_STEP: Final = re.compile(r"\.(\w+)|\[(?:\d+|\.\.\.)\]")
_TYPE: Final = re.compile(r"(Expected|got) `([a-z]+(?: \| [a-z]+)*)`")

# A message, and the path of the mistake in the request.
Problem = dict[str, str]


def in_words(error: Exception, type_: Any = None) -> str:
    """Format a decoder's message with types in words: `int | null` is a whole number or null.

    If `type_` is the decoded type, the message for an unknown member or value suggests known ones.
    """

    def named(found: re.Match[str]) -> str:
        types = [_TYPES.get(one, one) for one in found[2].split(" | ")]
        return f"{found[1]} {' or '.join(types)}"

    text = _TYPE.sub(named, str(error))
    if type_ is None:
        return text
    if found := _ENUM.fullmatch(text):
        return f"{text}: {one_of(found[1], _known_at(type_, found[2] or '', members=False))}"
    if found := _MEMBER.fullmatch(text):
        return f"{text}{meant(found[1], _known_at(type_, found[2] or '', members=True))}"
    return text


def _known_at(type_: Any, way: str, *, members: bool) -> list[str]:
    """List the values, or the members, that a type allows at a path such as `$.rules[0].state`."""
    from msgspec import inspect  # noqa: PLC0415 - rarely needed

    places = [*_alternatives(inspect.type_info(type_))]
    for step in _STEP.finditer(way):
        if name := step[1]:
            fields = [field for place in places for field in getattr(place, "fields", ())]
            types = [field.type for field in fields if field.encode_name == name]
        else:  # an index: the items of a list, or the values of an object
            keys = ("item_type", "value_type")
            types = [getattr(place, key) for place in places for key in keys if hasattr(place, key)]
        places = [alternative for each in types for alternative in _alternatives(each)]
    if members:
        return [field.encode_name for place in places for field in getattr(place, "fields", ())]
    return [str(value) for place in places for value in getattr(place, "values", ())]


def _alternatives(info: Any) -> Iterator[Any]:
    """Iterate over the types of a union, without their descriptions."""
    waiting = [info]
    while waiting:
        one = waiting.pop()
        parts = getattr(one, "types", None) or ([one.type] if hasattr(one, "extra") else None)
        if parts is None:
            yield one
        waiting += parts or ()


def problem(path: str, message: str) -> Problem:
    """Make a problem of a document, in the form InvalidItemsError lists."""
    return {"path": path, "message": message}


class FactbookError(Exception):
    """The service encountered an unexpected error."""

    status: ClassVar[int] = 500
    name: ClassVar[str] = "InternalError"

    def __init__(self, message: str | None = None, **details: Any) -> None:
        self.message = message or (type(self).__doc__ or "").strip()
        self.details = details
        self.withheld: FactbookError | None = None
        super().__init__(self.message)

    def unless_read(self, withheld: "FactbookError") -> Self:
        """This error, replaced by `withheld` for callers who may not read stored data."""
        self.withheld = withheld
        return self

    def headers(self) -> dict[str, str]:
        """Response headers that belong to this error."""
        return {}

    @property
    def problem_list(self) -> list[Problem]:
        """Problems with their paths; by default one problem, about the whole document."""
        return [problem("", self.message)]


class ConfigurationError(FactbookError):
    """The configuration is invalid."""

    name = "ConfigurationError"


class InputError(FactbookError):
    """The request is invalid."""

    status = 400
    name = "InputError"


class InvalidItemsError(InputError):
    """Some items are invalid; nothing was written."""

    def __init__(self, problems: list[Problem]) -> None:
        first = "; ".join(f"{p['path']}: {p['message']}" for p in problems[:3])
        more = f"; and {len(problems) - 3} more" if len(problems) > 3 else ""
        count = f"{len(problems)} problem{'s' if len(problems) > 1 else ''}"
        super().__init__(f"{count}, nothing was written: {first}{more}", problems=problems)

    @property
    def problem_list(self) -> list[Problem]:
        found: list[Problem] = self.details["problems"]
        return found

    def after(self, problems: list[Problem]) -> "InvalidItemsError":
        """Copy of this error with more problems before its own."""
        error = InvalidItemsError([*problems, *self.problem_list])
        if isinstance(self.withheld, InvalidItemsError):
            error.withheld = self.withheld.after(problems)
        return error


class Problems:
    """Collector of the problems of a document."""

    def __init__(self) -> None:
        self.found: list[Problem] = []

    def report(self, path: str, message: str) -> None:
        """Add a problem."""
        self.found.append(problem(path, message))

    def check(self) -> None:
        """Raise InvalidItemsError if there is a problem."""
        if self.found:
            raise InvalidItemsError(self.found)


class AuthenticationError(FactbookError):
    """Missing credentials."""

    status = 401
    name = "AuthenticationError"

    def __init__(self, message: str | None = None, *, token_sent: bool = False) -> None:
        self.token_sent = token_sent
        super().__init__(message)

    def headers(self) -> dict[str, str]:
        """Challenge of RFC 6750."""
        suffix = ', error="invalid_token"' if self.token_sent else ""
        return {"www-authenticate": f'Bearer realm="factbook"{suffix}'}


class NotAllowedError(FactbookError):
    """The token lacks a required permission."""

    status = 403
    name = "NotAllowedError"

    def __init__(self, message: str | None = None, *, missing: tuple[str, ...] = ()) -> None:
        self.missing = missing
        super().__init__(message)

    def headers(self) -> dict[str, str]:
        """Challenge of RFC 6750, with the missing permissions as its scope."""
        if not self.missing:
            return {}
        scope = " ".join(self.missing)
        challenge = f'Bearer realm="factbook", error="insufficient_scope", scope="{scope}"'
        return {"www-authenticate": challenge}


class SignInError(FactbookError):
    """The provider did not sign you in."""

    status = 403
    name = "SignInError"


class NotFoundError(FactbookError):
    """There is nothing at this address."""

    status = 404
    name = "NotFoundError"


def near(name: str, known: Iterable[str], most: int = _NEAR) -> list[str]:
    """Find the known names most similar to `name`, ignoring case, and those nearly as similar."""
    # Rarely needed, and slow to import.
    from difflib import SequenceMatcher, get_close_matches  # noqa: PLC0415

    name = name[:_COMPARED].lower()
    lowered = {one.lower(): one for one in [*known][:_COMPARED]}
    found = get_close_matches(name, lowered, most, _ALIKE)
    ratios = [SequenceMatcher(None, one, name).ratio() for one in found]
    return [
        lowered[one] for one, ratio in zip(found, ratios, strict=True) if ratio > _BEST * ratios[0]
    ]


def suggestion(name: str, known: Iterable[str], close: Sequence[str] | None = None) -> str:
    """Write sentences for an error message: the known names similar to `name`, and the first names.

    `close` has the similar names, where comparing the texts wouldn't find them.
    """
    names = list(known)
    close = near(name, names) if close is None else close
    meant = f" Did you mean {', '.join(close)}?" if close else ""
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return f"{meant} There are: {', '.join(names[:_LISTED])}{more}." if names else meant


def one_of(value: object, known: Iterable[str], close: Sequence[str] | None = None) -> str:
    """Write the problem with a value that isn't one of a few, to follow its path."""
    names = list(known)
    return f"has to be one of {', '.join(names)}{meant(value, names, close)}"


def meant(value: object, known: Iterable[str], close: Sequence[str] | None = None) -> str:
    """Format the known names similar to a value, in parentheses; empty if there are none."""
    if close is None:
        close = near(value, known) if isinstance(value, str) else []
    return f" (did you mean {', '.join(close)}?)" if close else ""


def not_a_member(name: object, noun: str, known: Iterable[str]) -> str:
    """Write the problem with an unknown member, to follow its path."""
    return f"is not a member of a {noun}{meant(name, known)}"


def no_such(noun: str, name: str, known: Iterable[str]) -> NotFoundError:
    """Make the error for an unknown name; only callers who may read see the known names."""
    plain = f'There is no {noun} "{name}".'
    found = NotFoundError(f"{plain}{suggestion(name, known)}")
    found.unless_read(NotFoundError(plain))
    return found


class MethodNotAllowedError(FactbookError):
    """This address does not take that method."""

    status = 405
    name = "MethodNotAllowedError"

    def __init__(self, message: str | None = None, *, allow: str) -> None:
        self.allow = allow
        super().__init__(message)

    def headers(self) -> dict[str, str]:
        """The allowed methods."""
        return {"allow": self.allow}


class NotAcceptableError(FactbookError):
    """The answer is JSON, which the Accept header rules out."""

    status = 406
    name = "NotAcceptableError"


class TooSlowError(FactbookError):
    """The request body arrives too slowly; nothing was written."""

    status = 408
    name = "RequestTimeoutError"


class ConflictError(FactbookError):
    """The request conflicts with stored data; nothing was written."""

    status = 409
    name = "ConflictError"


class GoneError(FactbookError):
    """This data is no longer kept."""

    status = 410
    name = "GoneError"


class PreconditionFailedError(FactbookError):
    """The set has changed since the revision named by If-Match; nothing was written."""

    status = 412
    name = "PreconditionFailedError"


class PayloadTooLargeError(FactbookError):
    """The request is larger than a limit of this server."""

    status = 413
    name = "PayloadTooLargeError"


class UnsupportedMediaTypeError(FactbookError):
    """The Content-Type has to be application/json."""

    status = 415
    name = "UnsupportedMediaTypeError"


class MisdirectedRequestError(FactbookError):
    """The Host header names a host that this server does not answer for."""

    status = 421
    name = "MisdirectedRequestError"


class TooManyRequestsError(FactbookError):
    """Too many requests; try again later."""

    status = 429
    name = "TooManyRequestsError"

    def __init__(self, message: str | None = None, *, retry_after: int) -> None:
        self.retry_after = retry_after
        super().__init__(message)

    def headers(self) -> dict[str, str]:
        """Seconds to wait before trying again."""
        return {"retry-after": str(self.retry_after)}


class UnsupportedError(FactbookError):
    """This service does not support that."""

    status = 501
    name = "NotImplementedError"


class UnavailableError(FactbookError):
    """The service cannot answer right now; try again."""

    status = 503
    name = "ServiceUnavailableError"

    def __init__(self, message: str | None = None, *, retry_after: int | None = 5) -> None:
        self.retry_after = retry_after
        super().__init__(message)

    def headers(self) -> dict[str, str]:
        """Seconds to wait before trying again, if waiting helps."""
        return {} if self.retry_after is None else {"retry-after": str(self.retry_after)}

    @property
    def cause(self) -> str:
        """Underlying cause for the log; clients don't see it."""
        cause = self.__cause__ or self
        return f"{type(cause).__name__}: {' '.join(str(cause).split())}"


class OverloadedError(UnavailableError):
    """The service is overloaded; nothing was done. Try again in a second."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message, retry_after=1)


class OutdatedError(UnavailableError):
    """A newer release has changed the database; this one cannot use it. Install the newer one."""


class ToolError(FactbookError):
    """The tool cannot answer; the text says why and what to do next."""

    status = 200
    name = "ToolError"
