r"""Regular expressions from users, run by RE2, whose time grows linearly with the text.

RE2 lacks look-around, atomic groups, possessive repeats and back references, and its `\d`, `\w`,
`\s` and `\b` know ASCII only. `^` and `$` match at the start and end of each line.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from factbook.errors import InputError

if TYPE_CHECKING:
    import re2

LONGEST: Final = 1_000
# Steps of one search: the size of the program times the length of the text. RE2 takes 0.1 to 25
# nanoseconds for a step, so a search takes 10 milliseconds at worst.
MOST_STEPS: Final = 500_000
LONGEST_TEXT: Final = 5_000
# Bytes of RE2's cache for a pattern; also limits the size of the pattern's program.
_MEMORY: Final = 64 * 1024
# Documents of data sources are longer, but few patterns search them, in separate processes: a
# search takes four seconds at worst, and usually milliseconds.
_MOST_EXTRACTION_STEPS: Final = 200_000_000
_EXTRACTION_MEMORY: Final = 1024 * 1024

_SET: Final = re.compile(r"\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\]", re.DOTALL)
_TOKEN: Final = re.compile(
    r"\\[pPN]\{[^{}]*\}|\\x\{[^{}]*\}|\\u[0-9a-fA-F]{4}|\\U[0-9a-fA-F]{8}|\\."
    rf"|{_SET.pattern}"
    r"|\(\?(?:P[=>]|<[=!]|P?<|[a-zA-Z-]+[:)]|.)"
    r"|\{[^{}]*\}[+]?|[*+?][+]?|.",
    re.DOTALL,
)
_REPEAT: Final = re.compile(r"\{(\d*)(?:,(\d*))?\}\+?")
_FUZZY: Final = re.compile(r"\{[^{}]*[ide]\s*(?:<=?|\}|:)[^{}]*\}?")
_MOST_REPEATS: Final = 1_000
_SETS_FLAGS: Final = re.compile(r"\(\?[a-zA-Z-]+\)")
_CLASS: Final = re.compile(r"\\([dDwWsSbB])|\[:\^?(\w+):\]|\\.", re.DOTALL)

_UNICODE_INSTEAD: Final = {
    "d": r"\p{Nd}",
    "D": r"\P{Nd}",
    "w": r"[\p{L}\p{M}\p{N}_]",
    "W": r"[^\p{L}\p{M}\p{N}_]",
    "s": r"[\s\v\p{Z}]",
    "S": r"[^\s\v\p{Z}]",
}
_ESCAPE_INSTEAD: Final = {
    "Z": r"write \z",
    "h": r"write [ \t]",
    "R": r"write (?:\r\n|\n|\r)",
    "X": "write . for one character",
    "e": r"write \x1b",
    "m": r"write \b",
    "M": r"write \b",
    "G": "leave it out",
    "K": "leave it out",
    "g": "compare two facts, or write out the alternatives",
}


class UserPattern(NamedTuple):
    """A compiled pattern, the size of its program, and the longest text it may search, in bytes."""

    expression: "re2._Regexp[bytes]"
    size: int
    longest: int

    def occurs(self, text: bytes) -> bool:
        """Return true if the pattern occurs in the text, which is UTF-8."""
        return self.expression.search(text) is not None

    def is_whole(self, text: str) -> bool:
        """Return true if the pattern matches the whole text."""
        fits = len(text) <= self.longest
        return fits and self.expression.fullmatch(text.encode(errors="replace")) is not None


@lru_cache(maxsize=2048)
def compile_pattern(text: str) -> UserPattern:
    """Compile a pattern to search short texts; raises InputError with the mistake."""
    expression = _compiled(text, _MEMORY, captures=False)
    size = expression.programsize
    return UserPattern(expression, size, min(LONGEST_TEXT, MOST_STEPS // size))


def compile_extraction(text: str) -> UserPattern:
    """Compile a pattern that extracts matches from documents; raises InputError."""
    expression = _compiled(text, _EXTRACTION_MEMORY, captures=True)
    size = expression.programsize
    return UserPattern(expression, size, _MOST_EXTRACTION_STEPS // size)


def compile_whole(text: str) -> UserPattern:
    """Compile a pattern that has to match a whole single-line text; raises InputError."""
    expression = _compiled(text, _MEMORY, captures=False, lines=False)
    size = expression.programsize
    return UserPattern(expression, size, min(LONGEST_TEXT, MOST_STEPS // size))


def explain_differences(text: str) -> Iterator[str]:
    r"""Iterate over sentences on what RE2 reads differently than earlier releases did.

    Earlier releases matched `\d`, `\w`, `\s` and `\b` in all of Unicode and applied flags to the
    whole pattern.
    """
    names = dict[str, None]()
    for token in _tokens(text):
        for found in _CLASS.finditer(token) if token[0] in "\\[" else ():
            if found[1] or found[2]:
                names[f"\\{found[1]}" if found[1] else f"[:{found[2]}:]"] = None
    for name in names:
        instead = _UNICODE_INSTEAD.get(name[1:])
        hint = f"; for other scripts write {instead}" if instead else ""
        yield f"{name} knows ASCII only{hint}"
    flags = _SETS_FLAGS.search(text, 1)
    if flags and not _SETS_FLAGS.match(text):
        yield f"{flags[0]} holds from where it stands; write it first to have it hold everywhere"
    if re.search(r"\(\?[a-z]*i", text):
        yield "(?i) no longer takes i for the dotted and dotless i of Turkish"


def _compiled(
    text: str, memory: int, *, captures: bool, lines: bool = True
) -> "re2._Regexp[bytes]":
    if len(text) > LONGEST:
        raise InputError(f"is longer than {LONGEST} characters")
    for token in _tokens(text):
        if reason := _refusal(token):
            raise InputError(reason)
    # Slow to load, and a service without patterns doesn't need it.
    import re2  # noqa: PLC0415

    options = re2.Options()
    options.log_errors = False
    options.max_mem = memory
    options.never_capture = not captures
    try:
        return re2.compile(f"{'(?m)' if lines else ''}{text}".encode(), options)
    except UnicodeEncodeError:
        raise InputError("has a character that is no text") from None
    except re2.error as error:
        [cause] = error.args
        words = cause.decode(errors="replace") if isinstance(cause, bytes) else str(cause)
        if "too large" in words:
            raise InputError("is too large; repeat less, or use smaller sets") from None
        raise InputError(f"is not a regular expression: {words.replace('(?m)', '')}") from None


def _tokens(text: str) -> Iterator[str]:
    return (found[0] for found in _TOKEN.finditer(text))


def _refusal(part: str) -> str | None:
    """Explain why RE2 refuses a part of a pattern, and what to write instead."""
    if part[0] == "\\":
        return _escape_refusal(part)
    if part[0] == "[" and (found := re.search(r"\\(?:[uU][0-9a-fA-F]{4,8}|[bNhR])", part)):
        if found[0] == r"\b":
            return r"has \b in a set, which RE2 doesn't take; write \x08"
        return _escape_refusal(found[0])
    if part.startswith("(?"):
        return _group_refusal(part)
    if part[0] == "{":
        return _repeat_refusal(part)
    if len(part) == 2 and part[1] == "+":
        return f"has {part}, a possessive repeat that RE2 doesn't take; write {part[0]}"
    return None


def _escape_refusal(part: str) -> str | None:
    name = part[1:2]
    if name in "uU" and len(part) > 2:
        instead = f"write \\x{{{part[2:].lstrip('0') or '0'}}}"
    elif name.isdigit() and name != "0":
        instead = "compare two facts, or write out the alternatives"
    elif name == "N":
        instead = r"write the character itself, or \x{…} with its number"
    elif name in "pP" and len(part) > 3 and not re.fullmatch(r"\{\^?[A-Z][a-z]?\}", part[2:]):
        return _property_refusal(part)
    else:
        found = _ESCAPE_INSTEAD.get(name)
        if found is None:
            return None
        instead = found
    return f"has {part}, which RE2 doesn't take; {instead}"


def _property_refusal(part: str) -> str | None:
    import re2  # noqa: PLC0415

    options = re2.Options()
    options.log_errors = False
    try:
        re2.compile(part, options)
    except re2.error:
        return (
            f"has {part}, which RE2 doesn't take; write a category such as \\p{{L}}, or a script "
            "such as \\p{Greek}"
        )
    return None


def _group_refusal(part: str) -> str | None:
    if part in ("(?=", "(?!", "(?<=", "(?<!"):
        return (
            f"has {part}…), which looks around the match and RE2 doesn't take; write a second "
            "condition, under `not` if the text must not occur"
        )
    if part == "(?>":
        return "has (?>…), an atomic group that RE2 doesn't take; write (?:…)"
    if part == "(?#":
        return "has a comment, (?#…), which RE2 doesn't take; leave it out"
    if part in ("(?P=", "(?P>", "(?&", "(?R", "(?(", "(?|") or part[2:3].isdigit():
        return f"has {part}…), which RE2 doesn't take; write out the alternatives"
    flags = part[2:].rstrip(":)")
    if flags.strip("imsU-") and re.fullmatch("[a-zA-Z-]+", flags):
        return f"has {part}, and RE2 takes the flags i, m and s; leave out the others"
    return None


def _repeat_refusal(part: str) -> str | None:
    found = _REPEAT.fullmatch(part)
    if found is None:
        if _FUZZY.fullmatch(part):
            return f"has {part}, which matches approximately and RE2 doesn't take"
        return None
    if part[-1] == "+":
        return f"has {part}, a possessive repeat that RE2 doesn't take; write {part[:-1]}"
    if not found[1] and found[2]:
        return f"has {part}, which RE2 reads as text; write {{0,{found[2]}}}"
    if any(one and int(one) > _MOST_REPEATS for one in found.groups()):
        return f"repeats more than {_MOST_REPEATS:,} times; repeat less"
    return None
