"""Pages of a large catalog, as a signed-in administrator opens them one after another.

Figures are CPU time of the server and its database; nothing of it is the browser's.
"""

import re

from bench import page_content, page_paths
from bench.databases import DIALECTS
from bench.findings import Findings
from bench.person import Person, signed_in
from bench.run import Run
from bench.service import Factbook

_TIMES = 9  # each page in one round
# What a browser loads by itself, from anywhere but this server.
_ELSEWHERE = re.compile(rb'<(?:link\b[^>]*\bhref|[a-z]+\b[^>]*\bsrc(?:set)?)="(?:https?:)?//')


def pages(run: Run) -> Findings:
    """The CPU of the slowest page, and the weight of the heaviest, on both databases."""
    findings = Findings()
    for dialect in DIALECTS:
        service = run.large(dialect)
        person = signed_in(run, service)
        run.say(f"sources, checks and exemptions on {dialect}")
        page_content.fill(run, service, person)
        measure(run, dialect, service, person, findings)
    return findings


def measure(run: Run, dialect: str, service: Factbook, person: Person, findings: Findings) -> None:
    """Open every page in turns."""
    person.close()  # a server hangs up on who asks nothing for long
    paths = page_paths.paths()
    for page in paths.values():  # the templates are read, and the database has seen them
        person.open(page)
    for number in run.rounds:
        _round(dialect, service, person, paths, findings)
        run.say(f"round {number + 1}: {dialect}, {len(paths)} pages")


def _round(
    dialect: str, service: Factbook, person: Person, paths: dict[str, str], findings: Findings
) -> None:
    times: dict[str, float] = {}
    weights: dict[str, float] = {}
    elsewhere = 0
    for name, path in paths.items():
        before = service.server.cpu_seconds()
        opened = [person.open(path) for _ in range(_TIMES)]
        times[name] = 1000 * (service.server.cpu_seconds() - before) / _TIMES
        weights[name] = person.weight(opened[-1]) / 1000
        elsewhere += len(_ELSEWHERE.findall(opened[-1].body))
    findings.add(f"{dialect}-slowest", max(times.values()), **times)
    findings.add(f"{dialect}-heaviest", max(weights.values()), **weights)
    findings.add(f"{dialect}-elsewhere", elsewhere)
