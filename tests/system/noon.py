"""`python -m tests.system.noon --port PORT`: what `factbook serve` serves, at noon of the tests.

The figures of fakes are of windows that end then. Time goes on from there.
"""

import sys
import time

import uvicorn

from factbook.app import Application
from factbook.integrations import configure_integrations
from factbook.settings.table import load_settings
from factbook.telemetry import logs
from tests.service import NOON


def main(port: str) -> None:
    began = time.monotonic_ns()

    def clock() -> int:
        return NOON + (time.monotonic_ns() - began) // 1_000_000

    settings = load_settings()
    logs.configure_logs(settings)
    integrations = configure_integrations(settings.integrations, clock=clock)
    app = Application(settings, clock=clock, integrations=integrations)
    uvicorn.run(app, port=int(port), loop="uvloop", lifespan="on", log_config=None)


if __name__ == "__main__":
    main(sys.argv[sys.argv.index("--port") + 1])
