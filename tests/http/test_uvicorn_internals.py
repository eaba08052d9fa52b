"""What the service's connections rely on inside uvicorn, read again with each release.

`HttpConnection` extends a class that uvicorn does not promise to keep. When one of these tests
fails, read what changed in `uvicorn/protocols/http`, compare it with `http/uvicorn_protocol.py`,
run the tests of this folder and of `tests/fuzz`, and then write down the new fingerprint.
Decision: docs/decisions/http.md#our-connection-class.
"""

import ast
import inspect
from hashlib import blake2s

import pytest
from uvicorn.protocols.http import flow_control, httptools_impl

from factbook.http.uvicorn_protocol import HttpConnection

# Of uvicorn 0.54.0, without comments and layout.
FINGERPRINTS = {
    httptools_impl.HttpToolsProtocol: "1872eafc8897d8dd",
    httptools_impl.RequestResponseCycle: "e4b739f124d1c3a3",
    flow_control.FlowControl: "15d1e0a05957f709",
}
# Methods that are extended or replaced.
REPLACED = {
    "__init__", "connection_made", "connection_lost", "data_received", "on_message_begin",
    "on_headers_complete", "on_body", "on_message_complete", "_start_asgi_task", "shutdown",
}  # fmt: skip
# Callbacks that the parser looks for by their names.
CALLBACKS = {"on_message_begin", "on_url", "on_header", "on_headers_complete", "on_body",
             "on_message_complete"}  # fmt: skip


def fingerprint(class_: type) -> str:
    """Digest of what a class does, whatever its comments and its layout."""
    code = ast.unparse(ast.parse(inspect.getsource(class_)))
    return blake2s(code.encode(), digest_size=8).hexdigest()


@pytest.mark.parametrize("class_", FINGERPRINTS, ids=lambda class_: class_.__name__)
def test_uvicorn_does_what_it_did_when_the_connection_was_written(class_: type) -> None:
    assert fingerprint(class_) == FINGERPRINTS[class_]


def test_nothing_else_of_uvicorn_is_replaced() -> None:
    above = {name for class_ in HttpConnection.__mro__[1:] for name in vars(class_)}
    written = {name for name, what in vars(HttpConnection).items() if inspect.isfunction(what)}
    assert written & above == REPLACED


def test_no_callback_of_the_parser_is_left_out() -> None:
    """A new one might bring bytes that nobody counts."""
    known = {name for name in vars(HttpConnection) | vars(httptools_impl.HttpToolsProtocol)
             if name.startswith("on_") and name != "on_response_complete"}  # fmt: skip
    assert known == CALLBACKS
