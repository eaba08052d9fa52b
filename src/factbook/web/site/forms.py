"""Submitted forms."""

from collections.abc import Mapping
from urllib.parse import parse_qsl

from factbook.errors import InputError, UnsupportedMediaTypeError
from factbook.http.requests import Request

_LARGEST = 512 * 1024
_MOST_FIELDS = 1000
_TYPE = b"application/x-www-form-urlencoded"

CSRF = "csrf"


class Form:
    """Fields of a form as sent."""

    def __init__(self, fields: list[tuple[str, str]]) -> None:
        self._fields = fields

    def one(self, name: str, default: str = "") -> str:
        """Last value of a field, stripped."""
        return self.raw(name, default).strip()

    def raw(self, name: str, default: str = "") -> str:
        """Last value of a field as typed: blanks of a password count."""
        return dict(self._fields).get(name, default)

    def all(self, name: str) -> list[str]:
        """Every value of a field that may be sent several times, such as checkboxes."""
        return [value for key, value in self._fields if key == name]

    def values(self) -> Mapping[str, str]:
        """Last value of every field except the CSRF token."""
        return {name: value for name, value in self._fields if name != CSRF}


async def read(request: Request) -> Form:
    """Form in the body; raises InputError, UnsupportedMediaTypeError, PayloadTooLargeError."""
    type_ = request.headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if type_ != _TYPE:
        raise UnsupportedMediaTypeError("A form has to be sent the way a browser sends it.")
    body = await request.body(_LARGEST, "a form")
    try:
        text = bytes(body).decode("ascii")
        fields = parse_qsl(
            text, keep_blank_values=True, max_num_fields=_MOST_FIELDS, errors="strict"
        )
    except (UnicodeDecodeError, ValueError):
        raise InputError("The form cannot be read.") from None
    # Browsers end the lines of a text with two characters, whatever the system.
    return Form([(name, value.replace("\r\n", "\n")) for name, value in fields])
