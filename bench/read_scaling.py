"""How the cost of a request grows with the catalog, on PostgreSQL.

Everything is asked of catalogs of several sizes in turns. A figure is the CPU time of the service
and of all of PostgreSQL's processes at the largest, by that at the size which is compared with.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from bench import datasets, questions, write_scaling
from bench.findings import Findings
from bench.load import Load, Plan
from bench.person import signed_in
from bench.questions import Question, Sample
from bench.run import Run
from bench.service import Factbook
from bench.write_scaling import Spent, steps

ASKED = (*questions.READS, *questions.TOOL_CALLS, *questions.PAGES)
GROWING = (
    *((one.key, one.text, one.bounded) for one in ASKED),
    *((key, text, True) for key, text in write_scaling.STEPS.items()),
)
_CONNECTIONS = 4
_WARMUP_SECONDS = 0.3
_WITHOUT_COLLECTING = {"FACTBOOK_COLLECT": "false"}


class Subject(NamedTuple):
    """A service on a catalog of one size, and entities to ask for."""

    entities: int
    service: Factbook
    sample: Sample


def size(run: Run) -> Findings:
    """The growth of every question, push and step of the housekeeping."""
    findings = Findings()
    with ExitStack() as stack:
        subjects = [stack.enter_context(_subject(run, count)) for count in run.options.sizes]
        for number in run.rounds:
            for question in ASKED:
                spent = {one.entities: _asked(run, one, question, number) for one in subjects}
                _add(run, findings, question.key, spent)
            for key, spent in steps(run, subjects, number):
                _add(run, findings, key, spent)
    return findings


@contextmanager
def _subject(run: Run, entities: int) -> Iterator[Subject]:
    with run.databases.kept(f"size_{entities}") as database:
        with run.serving(database, further=_WITHOUT_COLLECTING) as service:
            token = service.token
            datasets.fill(service, entities)
        database.settle()
        datasets.warm(database)
        run.say(f"a catalog of {entities:,} entities")
        with run.serving(database, token, further=_WITHOUT_COLLECTING) as service:
            service.client.headers["cookie"] = signed_in(run, service).cookies
            yield Subject(entities, service, questions.sample(service, entities))


def _asked(run: Run, subject: Subject, question: Question, number: int) -> Spent:
    """The mean cost of a call of the question."""
    server, calls = subject.service.server, question.calls(subject.sample)
    # The first answer after a push counts the kinds anew; that is said in its own place.
    subject.service.client.call(calls[0].method, calls[0].path, calls[0].body.encode())
    plan = Plan(
        port=server.port,
        calls=calls,
        seconds=run.options.seconds,
        headers=subject.service.client.headers,
        connections=_CONNECTIONS,
        warmup=_WARMUP_SECONDS,
        seed=number,
    )
    with Load(plan) as load:
        before = Spent.until_now(server)
        load.go()
        result = load.result()
        spent = Spent.until_now(server) - before
    if result.failures:
        raise RuntimeError(f"{question.key}: {result.failures} of {result.requests} failed.")
    return spent / result.requests


def _add(run: Run, findings: Findings, key: str, spent: Mapping[int, Spent]) -> None:
    """One round's ratio, with what it is made of."""
    if not spent:
        return
    smallest, largest = run.options.compared, max(spent)
    context = {
        f"{count}_{name}_ms": value
        for count, one in spent.items()
        for name, value in (("service", one.service), ("database", one.database))
    }
    findings.add(key, spent[largest].total / spent[smallest].total, **context)
    figures = ", ".join(f"{count:,}: {one}" for count, one in spent.items())
    run.say(f"{key}: {findings[key].values[-1]:.2f} x; {figures}")
