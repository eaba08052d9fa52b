"""Questions to a large catalog: queries, full text, facets, and all of it in one stream."""

import http.client
from typing import NamedTuple

from bench import driver
from bench.databases import DIALECTS
from bench.findings import Findings
from bench.load import Call
from bench.peer_process import peer
from bench.processes import MIB, Server
from bench.run import Run
from bench.service import CATALOG, Answer, Client, Factbook

_QUERY = f"{CATALOG}/by-query?filter=kind=component&limit=20"
_TEXT = "&fullTextFilterFields=metadata.name,metadata.title&fullTextFilterTerm="
# Of names that thousands, ten, one and no entity has.
_TERMS = ("api", "gateway", "payments", "-00042", "7777", "billing-worker-0", "nowhere")
_FACETS = "/api/catalog/entity-facets?facet=kind&facet=spec.type"
_WRITER_READY = b"GET /ready HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n"


def queries(run: Run) -> Findings:
    """CPU of a page of components with their total, of looking for a text, and of two facets."""
    asked = {
        "page": [Call("GET", _QUERY)],
        "text": [Call("GET", f"{_QUERY}{_TEXT}{term}") for term in _TERMS],
        "facets": [Call("GET", _FACETS)],
    }
    findings = Findings()
    for number in run.rounds:
        for dialect in DIALECTS:
            service = run.large(dialect)
            for name, calls in asked.items():
                cost = service.cost(calls, run.options.seconds, seed=number)
                run.say(f"round {number + 1}: {name}, {dialect}: {cost}")
                findings.add(f"{dialect}-{name}", cost.cpu, per_second=cost.per_second)
                if (dialect, name) == ("postgresql", "page"):
                    _compare(run, findings, cost.cpu, number)
    return findings


def _compare(run: Run, findings: Findings, ours: float, number: int) -> None:
    """The cost of a page beside that of the driver's read of its rows."""
    database, bare = run.large("postgresql").database, driver.first_components(21)
    floor = bare.cost(database, run.options.seconds, run.cores.server, seed=number)
    findings.add("driver", ours / floor, ours_ms=ours, driver_ms=floor)


class _Streamed(NamedTuple):
    answer: Answer
    cpu: float


def streams(run: Run) -> Findings:
    """The time of streaming every entity beside that of writing the same bytes, and its memory."""
    findings = Findings()
    whole = _whole(run.large("sqlite"))
    with (
        peer(run, "writer", whole, _WRITER_READY) as writer,
        peer(run, "stored", whole, _WRITER_READY) as stored,
    ):
        for number in range(run.options.rounds):
            memory = _streamed(Client(writer.port, ""), writer, "/")
            file = _streamed(Client(stored.port, ""), stored, "/")
            for dialect in DIALECTS:
                ours, extra = _of_ours(run, dialect)
                lengths = {one.answer.length for one in (memory, file, ours)}
                assert lengths == {len(whole)}, lengths
                seconds = ours.answer.seconds
                findings.add(
                    f"{dialect}-memory-writer",
                    seconds / memory.answer.seconds,
                    ours_s=seconds,
                    writer_s=memory.answer.seconds,
                    answer_MB=len(whole) / MIB,
                )
                findings.add(
                    f"{dialect}-file-writer",
                    seconds / file.answer.seconds,
                    ours_s=seconds,
                    writer_s=file.answer.seconds,
                    ours_cpu_s=ours.cpu,
                    writer_cpu_s=file.cpu,
                )
                findings.add(f"{dialect}-peak", extra / MIB, answer_MB=len(whole) / MIB)
                run.say(f"round {number + 1}: stream, {dialect}: {seconds:.2f} s")
    return findings


def _of_ours(run: Run, dialect: str) -> tuple[_Streamed, int]:
    """One stream, and by how many bytes the memory of the process grew at most."""
    large = run.large(dialect)
    # A process of its own: what an earlier answer left allocated would hide a peak.
    with run.serving(large.database, large.token) as service:
        service.client.drain(_QUERY)
        before = service.server.forget_peak()
        found = _streamed(service.client, service.server, CATALOG)
        return found, service.server.peak() - before


def _streamed(client: Client, server: Server, path: str) -> _Streamed:
    before = server.cpu_seconds()
    answer = client.drain(path)
    return _Streamed(answer, server.cpu_seconds() - before)


def _whole(service: Factbook) -> bytes:
    connection = http.client.HTTPConnection("127.0.0.1", service.server.port)
    connection.request("GET", CATALOG, headers=service.client.headers)
    return connection.getresponse().read()
