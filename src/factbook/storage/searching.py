"""How long a search may take, so that no question keeps the database from the others."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from factbook.errors import UnavailableError

# Seconds. What people ask for takes milliseconds, at a million entities too.
LONGEST_SEARCH = 30.0


@asynccontextmanager
async def in_time(seconds: float) -> AsyncIterator[None]:
    """Cancel what is done inside after so long; raises UnavailableError then."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError as error:
        raise UnavailableError(
            f"The answer was not found within {seconds:.0f} seconds. Ask for less at a time.",
            retry_after=None,
        ) from error
