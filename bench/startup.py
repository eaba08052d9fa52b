"""The start of a server on a migrated database that holds a catalog.

The time until it answers, and the memory that it holds some idle seconds later.
"""

import time

from bench.findings import Findings
from bench.processes import MIB
from bench.run import Run

_IDLE_SECONDS = 3.0


def starts(run: Run) -> Findings:
    """Seconds until /readyz answers 200, and the resident memory some seconds later."""
    findings = Findings()
    with run.databases.fresh("sqlite") as database:
        with run.serving(database) as service:
            token = service.token
            service.push("bench", run.body)
        for number in run.rounds:
            began = time.perf_counter()
            with run.serving(database, token) as service:
                seconds = time.perf_counter() - began
                time.sleep(_IDLE_SECONDS)
                memory = service.server.memory() / MIB
            findings.add("time", seconds)
            findings.add("memory", memory)
            run.say(f"round {number + 1}: start: {seconds:.2f} s, {memory:.0f} MB")
    return findings
