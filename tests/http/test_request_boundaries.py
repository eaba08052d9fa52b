"""One request ends where the next begins, for the parser and for the application."""

import pytest

from tests.wire import Recorder, Seen, converse

HOST = b"Host: 127.0.0.1\r\n"
HIDDEN = b"DELETE /hidden HTTP/1.1\r\n" + HOST + b"\r\n"
NEXT = b"GET /next HTTP/1.1\r\n" + HOST + b"\r\n"
SEEN_NEXT = Seen("GET", b"/next", complete=True)

METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
UPGRADES = [
    b"Connection: Upgrade\r\nUpgrade: h2c\r\n",
    b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n",
    b"connection: keep-alive, upgrade\r\nupgrade: websocket\r\nSec-WebSocket-Key: eA==\r\n",
    b"Upgrade: TLS/1.0\r\nConnection: keep-alive\r\nConnection: UPGRADE\r\n",
    b"Connection: Upgrade\r\nUpgrade: a\r\nUpgrade: b\r\n",
]


def head(
    method: str = "POST",
    headers: bytes = b"",
    *,
    target: bytes = b"/read",
    version: bytes = b"1.1",
) -> bytes:
    return (
        method.encode() + b" " + target + b" HTTP/" + version + b"\r\n" + HOST + headers + b"\r\n"
    )


def length(body: bytes) -> bytes:
    return b"Content-Length: %d\r\n" % len(body)


def chunked(body: bytes) -> bytes:
    return b"%x\r\n%s\r\n%x\r\n%s\r\n0\r\n\r\n" % (4, body[:4], len(body) - 4, body[4:])


def segmented(sent: bytes, head_size: int) -> list[list[bytes]]:
    """The same bytes at once, with the rest after the head, and byte by byte."""
    singly = [bytes((byte,)) for byte in sent]
    return [[sent], [sent[:head_size], sent[head_size:]], singly]


def statuses(answered: bytes) -> list[int]:
    return [int(one[:3]) for one in answered.split(b"HTTP/1.1 ")[1:]]


@pytest.mark.spec("security.requests-end-in-one-place")
def test_a_body_behind_a_declined_upgrade_reaches_the_application(
    subtests: pytest.Subtests,
) -> None:
    for upgrade in UPGRADES:
        for method in METHODS:
            with subtests.test(upgrade=upgrade, method=method):
                for framing, body in (
                    (length(HIDDEN), HIDDEN),
                    (b"Transfer-Encoding: chunked\r\n", chunked(HIDDEN)),
                ):
                    first = head(method, upgrade + framing)
                    for segments in segmented(first + body + NEXT, len(first)):
                        recorder = Recorder()
                        answered = converse(segments, recorder)
                        assert recorder.seen == [
                            Seen(method, b"/read", HIDDEN, complete=True),
                            SEEN_NEXT,
                        ]
                        assert statuses(answered) == [200, 200]


def test_an_upgrade_by_http_1_0_is_declined_and_ends_the_connection(
    subtests: pytest.Subtests,
) -> None:
    for upgrade in UPGRADES:
        for method in METHODS:
            with subtests.test(upgrade=upgrade, method=method):
                first = head(method, upgrade + length(HIDDEN), version=b"1.0")
                for segments in segmented(first + HIDDEN + NEXT, len(first)):
                    recorder = Recorder()
                    assert statuses(converse(segments, recorder)) == [200]
                    assert recorder.seen == [Seen(method, b"/read", HIDDEN, complete=True)]


def test_an_upgrade_is_declined_in_each_of_several_requests_that_come_at_once() -> None:
    each = head("PUT", UPGRADES[0] + length(b"hello")) + b"hello" + head("GET", UPGRADES[1])
    recorder = Recorder()
    assert statuses(converse([each * 50 + NEXT], recorder)) == [200] * 101
    put, get = Seen("PUT", b"/read", b"hello", complete=True), Seen("GET", b"/read", complete=True)
    assert recorder.seen == [put, get] * 50 + [SEEN_NEXT]


@pytest.mark.parametrize("upgrade", [b"", UPGRADES[0]])
def test_a_body_that_comes_after_the_answer_is_no_request(upgrade: bytes) -> None:
    first = head("PUT", upgrade + length(HIDDEN), target=b"/early")
    recorder = Recorder()
    assert statuses(converse([first, HIDDEN[:9], HIDDEN[9:], NEXT], recorder)) == [200, 200]
    assert recorder.seen == [Seen("PUT", b"/early"), SEEN_NEXT]


def test_nothing_is_read_behind_a_request_that_may_end_elsewhere_for_others(
    subtests: pytest.Subtests,
) -> None:
    for first, status in [
        (head("CONNECT", target=b"127.0.0.1:80"), 501),
        (head("CONNECT", UPGRADES[0] + length(HIDDEN), target=b"127.0.0.1:80"), 501),
        (head(headers=b"Transfer-Encoding: chunked\r\n", version=b"1.0"), 400),
        (head(headers=b"Transfer-Encoding: gzip, chunked\r\n"), 400),
        (head(headers=b"Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n"), 400),
        (head(version=b"2.0"), 505),
        (head(version=b"0.9"), 505),
        (b"GET /read\r\n\r\n", 505),
        (b"GET /read HTTP/1.1\r\n\r\n", 400),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    ]:
        with subtests.test(first=first):
            for segments in segmented(first + HIDDEN, len(first)):
                recorder = Recorder()
                assert statuses(converse(segments, recorder)) == [status]
                assert recorder.seen == []


def test_a_client_that_may_keep_its_body_to_itself_gets_one_answer(
    subtests: pytest.Subtests,
) -> None:
    """Where the body is not sent, because of the answer, what follows it would be taken for it."""
    for target in [b"/read", b"/early"]:
        for value in [b"100-continue", b"100-Continue", b"other"]:
            with subtests.test(target=target, value=value):
                first = head("PUT", b"Expect: " + value + b"\r\n" + length(b"hello"), target=target)
                answered = converse([first, b"hello" + NEXT, NEXT], recorder := Recorder())
                assert [one.target for one in recorder.seen] == [target]
                assert [status for status in statuses(answered) if status != 100] == [200]
                assert b"connection: close" in answered


def test_an_old_client_is_not_told_to_go_on() -> None:
    first = head("PUT", b"Expect: 100-continue\r\n" + length(b"hello"), version=b"1.0")
    assert statuses(converse([first, b"hello"], Recorder())) == [200]


def test_what_is_behind_the_last_request_is_not_read(subtests: pytest.Subtests) -> None:
    for behind in [HIDDEN, b"\x00\x01", b"x" * 100_000, b"\r\n"]:
        for last in [head("GET", b"Connection: close\r\n"), head("GET", version=b"1.0")]:
            with subtests.test(behind=behind, last=last):
                for segments in ([last + behind], [last, behind]):
                    recorder = Recorder()
                    assert statuses(converse(segments, recorder, turns=0)) == [200]
                    assert recorder.seen == [Seen("GET", b"/read", complete=True)]


def test_a_body_that_stops_making_sense_is_not_complete() -> None:
    first = head(headers=b"Transfer-Encoding: chunked\r\n")
    recorder = Recorder()
    answered = converse([first + b"5\r\nhello\r\n", b"what?\r\n" + HIDDEN], recorder)
    assert recorder.seen == [Seen("POST", b"/read", b"hello", complete=False)]
    assert statuses(answered) == [400]


def test_of_a_connection_that_is_reset_nothing_is_answered_any_more() -> None:
    recorder = Recorder()
    late = head("GET", target=b"/late")
    assert converse([late + NEXT, "reset"], recorder, turns=1) == b""
    assert recorder.seen == [Seen("GET", b"/late", complete=True)]
