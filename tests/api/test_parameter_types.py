"""Kinds of parameters: none can be made that does not say how it is read and described."""

import pytest

from factbook.api.parameters import Parameter, Schema
from factbook.http.requests import Request


class Described(Parameter[str], frozen=True, kw_only=True):
    """A kind that describes its values and does not read them."""

    @property
    def schema(self) -> Schema:
        """Any text."""
        return {"type": "string"}


class Read(Described, frozen=True, kw_only=True):
    """A kind that does both."""

    def of(self, request: Request) -> str:
        """The path of the request."""
        return request.path


def test_a_parameter_that_does_not_say_how_it_is_read_cannot_be_made() -> None:
    with pytest.raises(TypeError, match="abstract"):
        Described(name="q", description="words")  # type: ignore[abstract]


def test_a_parameter_that_says_both_can_be_made() -> None:
    assert Read(name="q", description="words").schema == {"type": "string"}
