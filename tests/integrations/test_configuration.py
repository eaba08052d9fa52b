"""Options of integrations, and lists that are read at the same time."""

import asyncio
from typing import Annotated

import pytest

from factbook.integrations.integration import InstanceOptions, gather_or_cancel
from factbook.settings.option_tables import about


class PluginOptions(InstanceOptions, frozen=True, kw_only=True):
    """As the author of a package might write them."""

    base_url: Annotated[str, about("Address of the interface.")] = "https://ci.example.com"
    bearer: Annotated[str, about("Sent with each call. Secret.")] = "s3cret-1"
    login: Annotated[str, about("The secret that the host knows.")] = "s3cret-2"
    api_token: Annotated[str, about("Sent with each call.")] = "s3cret-3"
    bare: str = "s3cret-4"


def test_options_are_shown_without_what_could_be_a_secret() -> None:
    assert repr(PluginOptions()) == "PluginOptions(base_url='https://ci.example.com')"


async def test_a_reading_that_fails_ends_the_others() -> None:
    ended = asyncio.Event()

    async def fail() -> None:
        await asyncio.sleep(0)
        raise LookupError

    async def read_on() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    with pytest.raises(LookupError):
        await gather_or_cancel(fail(), read_on())
    assert ended.is_set()
