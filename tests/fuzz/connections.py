"""Whole connections: where the service sees requests end, and where h11 does.

An input is what a client sends. A byte from 0x80 stands for a word of HTTP, for the end of a
segment, or for something that happens to the connection; so a change of one byte makes another
connection that is nearly right. Where else segments end is made up from the input. Where an
input does not begin as a request could, all is made up, so that many are right but for one thing.
"""

import itertools
import random
import re
import zlib
from typing import Final

import h11

from factbook.telemetry import logs
from tests.fuzz.target import Target
from tests.wire import Event, Recorder, Seen, converse

_HAPPENINGS: Final[tuple[Event | None, ...]] = (None,) * 5 + ("reset", "end", "stop")
_WORDS: Final = (
    *(b"GET ", b"POST ", b"PUT ", b"DELETE ", b"HEAD ", b"OPTIONS ", b"CONNECT ", b"PRI "),
    *(b"/read", b"/early", b"/once", b"/late", b"/closes", b"/fails", b"*", b"http://a/b"),
    *(b" HTTP/1.1\r\n", b" HTTP/1.1\r\nHost: a\r\n", b" HTTP/1.0\r\n", b" HTTP/2.0\r\n"),
    *(b"GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n", b"GET /more HTTP/1.1\r\nHost: a\r\nX: "),
    *(b"\r\n", b"\r\n\r\n", b"\n", b"\r", b"\n\n", b" ", b"\t", b": ", b"\x0b", b"\x00", b"\xff"),
    *(b"Host: a\r\n", b"X-Long: ", b"Cookie: a=b\r\n", b"Trailer: x\r\n", b"TE: trailers\r\n"),
    *(b"Connection: Upgrade\r\n", b"Connection: close\r\n", b"Connection: keep-alive\r\n"),
    *(b"Connection: HTTP2-Settings\r\n", b"Connection: close, upgrade\r\n", b"Connection: "),
    *(b"Upgrade: h2c\r\n", b"Upgrade: websocket\r\n", b"Upgrade: \r\n", b"Upgrade"),
    *(b"HTTP2-Settings: AAMAAABk\r\n", b"Expect: 100-continue\r\n", b"Expect: other\r\n"),
    *(b"Content-Length: 0\r\n", b"Content-Length: 5\r\n", b"Content-Length: 35\r\n"),
    *(b"Content-Length: ", b"content-length:5\r\n", b"Content-Length: 5, 5\r\n", b"Content"),
    *(b"Transfer-Encoding: chunked\r\n", b"Transfer-Encoding: gzip, chunked\r\n"),
    *(b"Transfer-Encoding: identity\r\n", b"Transfer-Encoding:\tChunked \r\n", b"Transfer"),
    *(b"0\r\n\r\n", b"0\r\n", b"5\r\nhello\r\n", b"23\r\n", b"5;a=b\r\n", b'1;a="b"\r\nx\r\n'),
    *(b"hello", b"x" * 35, b"x" * 300, b"00000005\r\n", b"ffffffffffffffff\r\n", b"-1\r\n"),
)
_LONGEST: Final = 1_000
_BEGUN: Final = re.compile(rb"[A-Z\r\n\x80-\x8f]")
_HAPPENING: Final = re.compile(rb"([\x80-\x87])")
_WORD: Final = re.compile(rb"[\x88-\xff]")
# Of a line that begins a request, what RFC 9112 lets a reader take for one space.
_SPACES: Final = re.compile(rb"\A([A-Z]+) +([^ \r\n]+) +(HTTP/)")

_HIDDEN: Final = b"GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"
_VERSIONS: Final = (b" HTTP/1.1\r\nHost: a\r\n",) * 7 + (b" HTTP/1.0\r\n",)
_HEADERS: Final = (
    *(b"Connection: Upgrade\r\nUpgrade: h2c\r\n", b"Upgrade: x\r\nConnection: a,upgrade\r\n"),
    *(b"Connection: Upgrade\r\n", b"Upgrade: websocket\r\n", b"Connection: keep-alive\r\n"),
    *(b"X: a\r\n", b"Expect: 100-continue\r\n", b"Content-Length: 5\r\n", b"Host: b\r\n"),
)


def connection(data: bytes) -> None:
    """The application sees what h11 sees, from the first request on, until the service hangs up."""
    number = zlib.crc32(data)
    chance = random.Random(number)
    data = data[:_LONGEST]
    events = _events(data if _BEGUN.match(data) else _made(chance), chance)
    sent = b"".join(event for event in events if isinstance(event, bytes))
    recorder = Recorder()
    with logs.silence_logs():
        converse(events, recorder, turns=number % 4)
    expected = requests(sent) if recorder.seen else []
    assert len(recorder.seen) <= len(expected), (recorder.seen, expected)
    for found, request in zip(recorder.seen, expected, strict=False):
        _check(found, request)


def _check(found: Seen, expected: Seen) -> None:
    """The same request, or the beginning of it."""
    assert (found.method, found.target) == (expected.method, _path(expected.target))
    if found.complete:
        assert found == Seen(expected.method, found.target, expected.body, expected.complete)
    assert expected.body.startswith(found.body), (found, expected)


def _path(target: bytes) -> bytes:
    """A target as the application gets it: without scheme and host, and without a fragment."""
    if b"://" in target and not target.startswith((b"/", b"*")):
        _, _, rest = target.partition(b"://")
        target = rest[len(rest.partition(b"/")[0].partition(b"?")[0]) :]
    return target.partition(b"#")[0].removesuffix(b"?")


def requests(data: bytes) -> list[Seen]:
    """The requests that h11 reads: each with a reader of its own, and blank lines left out."""
    found: list[Seen] = []
    while data := _SPACES.sub(rb"\1 \2 \3", data.lstrip(b"\r\n")):
        reader = h11.Connection(h11.SERVER, max_incomplete_event_size=len(data) + 1)
        reader.receive_data(data)
        try:
            head = reader.next_event()
            if not isinstance(head, h11.Request):
                break
            found.append(Seen(head.method.decode(), head.target))
            while isinstance(event := reader.next_event(), h11.Data):
                found[-1].body += event.data
        except h11.RemoteProtocolError:
            break
        found[-1].complete = isinstance(event, h11.EndOfMessage)
        if not found[-1].complete or reader.their_state is h11.MUST_CLOSE:
            break
        data = reader.trailing_data[0]
    return found


def _made(chance: random.Random) -> bytes:
    """Up to four requests, most of them right; something may happen, or a piece be missing."""
    made = b"".join(_request(chance) for _ in range(chance.randint(1, 4)))
    at = chance.randint(0, len(made))
    match chance.randrange(6):
        case 0:
            return made[:at] + bytes((chance.randrange(0x80, 0x100),)) + made[at:]
        case 1:
            return made[:at] + made[at + chance.choice((1, 1, 2, 5, 40)) :]
        case _:
            return made


def _request(chance: random.Random) -> bytes:
    body = chance.choice((b"", b"hello", _HIDDEN, _HIDDEN + b" " * 9))
    framing, body = chance.choice(_FRAMED)(body, chance)
    headers = [*chance.sample(_HEADERS, chance.randrange(4)), framing]
    chance.shuffle(headers)
    line = chance.choice(_WORDS[:6]) + chance.choice(_WORDS[8:13]) + chance.choice(_VERSIONS)
    return line + b"".join(headers) + b"\r\n" + body


def _with_length(body: bytes, chance: random.Random) -> tuple[bytes, bytes]:
    return b"Content-Length: %d\r\n" % len(body), body


def _with_another_length(body: bytes, chance: random.Random) -> tuple[bytes, bytes]:
    return b"Content-Length: %d\r\n" % chance.randrange(50), body


def _without_length(body: bytes, chance: random.Random) -> tuple[bytes, bytes]:
    return b"", chance.choice((b"", body))


def _in_chunks(body: bytes, chance: random.Random) -> tuple[bytes, bytes]:
    half = chance.randint(0, len(body))
    chunks = b"".join(
        b"%x%s\r\n%s\r\n" % (len(part), chance.choice((b"", b"", b";a=b")), part)
        for part in (body[:half], body[half:])
        if part
    )
    trailer = chance.choice((b"", b"", *_HEADERS))
    return b"Transfer-Encoding: chunked\r\n", chunks + b"0\r\n" + trailer + b"\r\n"


def _events(data: bytes, chance: random.Random) -> list[Event]:
    """What happens, in order: at most one end, which nothing follows."""
    events: list[Event] = []
    for number, part in enumerate(_HAPPENING.split(data)):
        if number % 2 == 0:
            events.append(_WORD.sub(_word, part))
        elif happens := _HAPPENINGS[part[0] - 0x80]:
            events.append(happens)
            if happens != "stop":
                break
    return _cut(events, chance)


def _word(found: re.Match[bytes]) -> bytes:
    return _WORDS[(found[0][0] - 0x80) % len(_WORDS)]


def _cut(events: list[Event], chance: random.Random) -> list[Event]:
    """The same events with some of the segments in parts."""
    if chance.random() < 0.4:
        return [event for event in events if event]
    found: list[Event] = []
    for event in events:
        if isinstance(event, bytes):
            places = sorted(chance.randint(0, len(event)) for _ in range(chance.randrange(4)))
            bounds = [0, *places, len(event)]
            found += [event[a:b] for a, b in itertools.pairwise(bounds) if a < b]
        else:
            found.append(event)
    return found


_FRAMED: Final = (*(_with_length, _in_chunks) * 4, _without_length, _with_another_length)

TARGETS = (Target("connection", connection, (), share=100, examples=200),)
