"""Processes whose work swallows cancellations, as the pool of PostgreSQL does on Python 3.11.

    python -m tests.stubborn COUNT --port PORT
    python -m tests.stubborn COUNT

Serves, or with no port does what `factbook worker` does. What sends to webhooks swallows so many
cancellations, and then prints `ended`.
"""

import asyncio
import sys
from functools import partial

import uvicorn

from factbook import clock, shutdown
from factbook.app import Application
from factbook.operations import commands
from factbook.settings import Settings
from factbook.settings.table import load_settings
from factbook.storage import Database
from factbook.telemetry import logs
from factbook.webhooks.sender import GuardedPost, WebhookSender

# Seconds within which the process has to end.
SECONDS = 3.0


class StubbornCourier(WebhookSender):
    """Goes on with its work until it was cancelled once more than `swallows`."""

    def __init__(self, database: Database, settings: Settings, swallows: int) -> None:
        super().__init__(database, GuardedPost(settings), lambda: b"", clock.now, "stubborn")
        self._swallows = swallows
        self.working = asyncio.Event()

    async def tick(self) -> int:
        self.working.set()
        _tell("working")
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                if self._swallows == 0:
                    _tell("ended")
                    raise
                self._swallows -= 1


class Stubborn(Application):
    """The application with such a courier."""

    def __init__(self, settings: Settings, swallows: int) -> None:
        super().__init__(settings)
        self._swallows = swallows

    def courier(self, database: Database) -> WebhookSender:
        return StubbornCourier(database, self.settings, self._swallows)


def _tell(word: str) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


def main(count: str, port: str | None = None) -> None:
    settings = load_settings()
    logs.configure_logs(settings)
    app = Stubborn(settings, int(count))
    if port is None:
        asyncio.run(commands.run_collector(app))
    else:
        app.stopping = partial(shutdown.exit_within, SECONDS)
        uvicorn.run(app, port=int(port), loop="uvloop", lifespan="on", log_config=None)


if __name__ == "__main__":
    main(sys.argv[1], *sys.argv[3:4])
