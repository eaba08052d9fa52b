"""Refusal of a client's request, with the code that RFC 6749 has for the reason."""

from typing import Final

from factbook.errors import InputError

INVALID_REQUEST: Final = "invalid_request"


class OAuthError(InputError):
    """The request of a client is not one of OAuth."""

    name = "OAuthError"

    def __init__(self, message: str | None = None, *, code: str = INVALID_REQUEST) -> None:
        self.code = code
        super().__init__(message)

    def headers(self) -> dict[str, str]:
        """Header that keeps the answer out of caches (RFC 6749, section 5.1)."""
        return {"cache-control": "no-store"}
