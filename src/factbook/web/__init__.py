"""The web interface: pages rendered on the server that work without scripts.

To import them takes as long as all that machines ask for, so this is done when the first is asked
for.
"""

import asyncio
from collections.abc import Callable

from starlette.types import ASGIApp, Receive, Scope, Send


class LazyPages:
    """ASGI application of all pages, made on a thread for the first request."""

    def __init__(self, make: Callable[[], ASGIApp]) -> None:
        self._make = make
        self._making = asyncio.Lock()
        self._made: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await (self._made or await self._first())(scope, receive, send)

    async def _first(self) -> ASGIApp:
        async with self._making:
            if self._made is None:
                self._made = await asyncio.to_thread(self._make)
            return self._made
