"""The formats of texts, as JSON Schema writes them.

These only describe: the rooms below check. They are ECMAScript's regular
expressions with Unicode's classes, which Python's own lack. What Python calls printable is a
letter, mark, number, punctuation, symbol or the one space.
"""

from typing import Any, Final

from msgspec import Meta

_SIGN: Final = r"[\p{L}\p{M}\p{N}\p{P}\p{S}]"
_SIGN_OR_SPACE: Final = r"[\p{L}\p{M}\p{N}\p{P}\p{S} ]"
# What Python cuts off around a text.
_BLANK: Final = r"[\t-\r\x1c- \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"
# The same without the brackets, and NUL, which filters leave out.
_MATCHES_NONE: Final = r"\x00" + _BLANK[1:-1]
_SIGN_OF_KIND: Final = rf"(?![:/]){_SIGN}"
_SIGN_OF_NAMESPACE: Final = rf"(?!/){_SIGN}"


def _allow_outer_blanks(sign: str) -> str:
    """Printable text of these signs and inner spaces, with blanks around it."""
    return rf"\s*(?:{sign})(?:(?:{sign}| )*(?:{sign}))?\s*"


_CONDITION: Final = rf"(?:[{_MATCHES_NONE}]*|[^,=]*[^,={_MATCHES_NONE}][^,=]*(?:=[^,]*)?)"

# What importers write has such a name, and nobody else can give it to a set.
IMPORTED_SET: Final = "import/[^/]+/[^/]+"
SET_ID: Final = rf"(?![\s\S]*/){_SIGN_OR_SPACE}{{1,128}}"
NAME: Final = rf"(?![\s\S]*[/:]){_BLANK}*{_SIGN}(?:{_SIGN_OR_SPACE}{{0,251}}{_SIGN})?{_BLANK}*"
TOKEN_NAME: Final = rf"{_BLANK}*{_SIGN}(?:{_SIGN_OR_SPACE}{{0,198}}{_SIGN})?{_BLANK}*"
REFERENCE: Final = (
    f"{_allow_outer_blanks(_SIGN_OF_KIND)}:"
    f"(?:{_allow_outer_blanks(_SIGN_OF_NAMESPACE)}/{_allow_outer_blanks(_SIGN)}|{_allow_outer_blanks(_SIGN_OF_NAMESPACE)})"
)
_LABEL: Final = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
NAMESPACE: Final = _LABEL
API_VERSION: Final = rf"(?:(?=[^/]{{1,253}}/){_LABEL}(?:\.{_LABEL})*/)?[A-Za-z0-9]{{1,63}}"
KIND: Final = "[A-Za-z][A-Za-z0-9]{0,62}"
FILTER: Final = f"{_CONDITION}(?:,{_CONDITION})*"
FIELDS: Final = r"[^\[]*"
SOURCE_ID: Final = "[A-Za-z0-9][A-Za-z0-9._-]{0,99}"
# What a token is narrowed to: a name, or the beginning of names before a star.
REACHED_SET: Final = rf"{_SIGN_OR_SPACE}{{1,128}}"
REACHED_NAMESPACE: Final = r"[a-z0-9-]{0,63}\*|[a-z0-9-]{1,63}"
REACHED_SOURCE: Final = rf"[A-Za-z0-9._-]{{0,100}}\*|{SOURCE_ID}"
REACHED_TOOL: Final = r"[a-z0-9-]{0,100}\*|[a-z0-9-]{1,100}"
CONNECTION: Final = "[a-z0-9][a-z0-9._-]{0,79}"
HEADER: Final = r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}"
HEADER_VALUE: Final = r"[ -~]{0,8000}"
HISTORY_CURSOR: Final = f"[0-9]{{1,15}}/{SOURCE_ID}"
LIFETIME: Final = "never|(?=0*[1-9])[0-9]{1,5}[dhm]"
# Clients that take a header for JSON leave the quotes of a tag out.
_TAG: Final = r'(?:W/)?(?:"[!#-~]*"|[0-9]+)'
IF_MATCH: Final = rf"\*|{_TAG}(?:[ \t]*,[ \t]*{_TAG})*"
_READING: Final = "[0-9]{1,15}(?:-[0-9]{1,9})?"
PART_TAG: Final = f'(?:W/)?(?:"{_READING}"|{_READING})'


def describe_text(pattern: str | None, format: str | None = None, **more: Any) -> Meta:
    """Describe a text of some pattern and format."""
    return Meta(extra_json_schema=build_text_schema(pattern, format), **more)


def build_text_schema(pattern: str | None, format: str | None = None) -> dict[str, Any]:
    """The JSON Schema of a text that matches the whole pattern, of a format of some name."""
    schema = {"type": "string"}
    if pattern is not None:
        schema["pattern"] = f"^(?:{pattern})$"
    if format is not None:
        schema["format"] = format
    return schema
