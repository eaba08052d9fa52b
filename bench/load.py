"""The load generator: a process of its own that sends prebuilt requests over raw connections.

Either every connection sends its next request as soon as it has its answer, or requests are due at
a steady rate; then a request's time counts from when it was due, so a server that stalls is not
spared. Anything but a complete answer with status 200 that holds what is expected is a failure.

As a process it reads a `Plan` from its input, prepares, answers `ready`, waits for `go`, and
answers with a `Result`. Any further input, or its end, stops it early.
"""

import asyncio
import random
import resource
import subprocess
import sys
import time
from collections import Counter, deque
from contextlib import suppress
from types import TracebackType
from typing import Self, cast

import msgspec
import uvloop

from bench.answers import Answer

# That this process has open beside its connections.
_OTHER_FILES = 64


class Call(msgspec.Struct, frozen=True, array_like=True):
    """One request."""

    method: str
    path: str
    body: str = ""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What to send: calls drawn at random, for some seconds, at a rate or as fast as possible.

    `abandon`: what was due but found no connection until the end is not sent any more.
    """

    port: int
    calls: list[Call]
    seconds: float
    headers: dict[str, str] = {}
    expect: str = ""
    connections: int = 16
    rate: float | None = None
    abandon: bool = False
    warmup: float = 0.5
    seed: int = 1


class Result(msgspec.Struct, frozen=True):
    """What came of it; times are milliseconds, `busy` the generator's own share of its core.

    `statuses` counts the answers by status; `good_p99` is of those with 200 alone, and from when
    they were sent.
    """

    requests: int
    failures: int
    seconds: float
    busy: float
    p50: float
    p99: float
    most: float
    statuses: dict[int, int] = {}
    good_p99: float = 0.0

    @property
    def per_second(self) -> float:
        return self.requests / self.seconds


class Load:
    """A generator that is ready to begin."""

    def __init__(self, plan: Plan) -> None:
        self._limit = plan.seconds + 60
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.load"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._say(msgspec.json.encode(plan))
        self._hear()

    def go(self) -> None:
        """Begin."""
        self._say(b"go")

    def stop(self) -> None:
        """End early."""
        self._say(b"stop")

    def result(self) -> Result:
        """Wait for the end."""
        return msgspec.json.decode(self._hear(), type=Result)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        type_: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._process.stdin
        assert self._process.stdout
        if error is not None:
            self._process.kill()
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(self._limit)

    def _say(self, line: bytes) -> None:
        assert self._process.stdin
        self._process.stdin.write(line + b"\n")
        self._process.stdin.flush()

    def _hear(self) -> bytes:
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("The load generator ended without an answer.")
        return line


class _Connection(asyncio.Protocol):
    """Sends one request at a time."""

    def __init__(self, generator: "_Generator") -> None:
        self._generator = generator
        self._transport: asyncio.Transport
        self._answer = Answer()
        self._since = 0.0
        self._sent = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is none by its classes

    def send(self, request: bytes, since: float) -> None:
        self._since, self._sent = since, time.perf_counter()
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        answer = self._answer
        if answer.feed(data):
            status = answer.status
            good = status == 200 and self._generator.expected in answer.content
            answer.clear()
            self._generator.answered(self, self._since, self._sent, status, good)

    def connection_lost(self, error: Exception | None) -> None:
        self._generator.lost()


class _Generator:
    def __init__(self, plan: Plan) -> None:
        self.expected = plan.expect.encode()
        self._plan = plan
        self._requests = [_request(call, plan.headers) for call in plan.calls]
        self._random = random.Random(plan.seed).random
        self._loop = asyncio.get_running_loop()
        # In turns, so that the server hangs up on none for being idle.
        self._idle: deque[_Connection] = deque()
        self._due: deque[float] = deque()
        self._waiting = 0
        self._running = False
        self._done = asyncio.Event()
        self._times: list[float] = []
        self._good: list[float] = []
        self._statuses: Counter[int] = Counter()
        self._failures = 0

    async def connect(self) -> None:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft < self._plan.connections + _OTHER_FILES:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        for _ in range(self._plan.connections):
            address = ("127.0.0.1", self._plan.port)
            _, connection = await self._loop.create_connection(lambda: _Connection(self), *address)
            self._idle.append(connection)

    async def run(self, seconds: float, rate: float | None) -> Result:
        """Send for some seconds; every request is answered before the end."""
        self._times, self._good, self._failures, self._running = [], [], 0, True
        self._statuses.clear()
        self._done.clear()
        cpu, began = time.process_time(), time.perf_counter()
        self._loop.call_later(seconds, self.stop)
        if rate is None:
            while self._idle:
                self._send(self._idle.popleft(), time.perf_counter())
        else:
            self._tick(began, 1 / rate)
        await self._done.wait()
        return self._result(time.perf_counter() - began, time.process_time() - cpu)

    def stop(self) -> None:
        self._running = False
        if self._plan.abandon:
            self._due.clear()
        if not self._waiting:
            self._done.set()

    def answered(
        self, connection: _Connection, since: float, sent: float, status: int, good: bool
    ) -> None:
        now = time.perf_counter()
        self._times.append(now - since)
        self._statuses[status] += 1
        if good:
            self._good.append(now - sent)
        else:
            self._failures += 1
        self._waiting -= 1
        if self._plan.rate is None and self._running:
            self._send(connection, now)
        elif self._due:
            self._send(connection, self._due.popleft())
        else:
            self._idle.append(connection)
            if not (self._running or self._waiting):
                self._done.set()

    def lost(self) -> None:
        if not self._done.is_set():
            self._failures += 1
            self._running = False
            self._done.set()

    def _send(self, connection: _Connection, since: float) -> None:
        self._waiting += 1
        requests = self._requests
        connection.send(requests[int(self._random() * len(requests))], since)

    def _tick(self, due: float, interval: float) -> None:
        """Send what is due, or keep it until a connection is free."""
        if not self._running:
            return
        if self._idle:
            self._send(self._idle.popleft(), due)
        else:
            self._due.append(due)
        delay = max(0.0, due + interval - time.perf_counter())
        self._loop.call_later(delay, self._tick, due + interval, interval)

    def _result(self, seconds: float, cpu: float) -> Result:
        times, good = sorted(self._times) or [0.0], sorted(self._good) or [0.0]
        return Result(
            requests=len(self._times),
            failures=self._failures,
            seconds=seconds,
            busy=cpu / seconds,
            p50=_percentile(times, 0.5),
            p99=_percentile(times, 0.99),
            most=_percentile(times, 1.0),
            statuses=dict(self._statuses),
            good_p99=_percentile(good, 0.99),
        )


def _percentile(times: list[float], part: float) -> float:
    """Milliseconds below which this part of the sorted times is."""
    return 1000 * times[min(int(len(times) * part), len(times) - 1)]


def _request(call: Call, headers: dict[str, str]) -> bytes:
    body = call.body.encode()
    named = {"host": "127.0.0.1"} | headers
    if body:
        named["content-length"] = str(len(body))
    lines = [f"{call.method} {call.path} HTTP/1.1", *(f"{k}: {v}" for k, v in named.items())]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


async def _main() -> None:
    generator_plan = msgspec.json.decode(sys.stdin.readline(), type=Plan)
    generator = _Generator(generator_plan)
    await generator.connect()
    if generator_plan.rate is None:
        await generator.run(generator_plan.warmup, None)
    print("ready", flush=True)
    sys.stdin.readline()
    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), generator.stop)
    result = await generator.run(generator_plan.seconds, generator_plan.rate)
    print(msgspec.json.encode(result).decode(), flush=True)


if __name__ == "__main__":
    uvloop.run(_main())
