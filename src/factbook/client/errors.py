"""Errors between a client and a server, in one tree.

ClientError
├── ConnectionFailed      the server was not reached, or the connection broke
├── ApiError              the server refused: status, name, message, details
├── ProtocolError         the tool-call endpoint refused: a JSON-RPC error with its code
├── ToolCallError         a tool says that it cannot answer, and what to do next
└── UnexpectedAnswer      the answer is none that a Factbook server gives
"""

from typing import Any


class ClientError(Exception):
    """Something kept the client from its answer."""


class ConnectionFailed(ClientError):
    """The server was not reached, or the connection broke before the answer was complete."""


class ApiError(ClientError):
    """The server refused.

    `details` holds the further members of its error object, such as `problems` of a push that is
    not valid, `[{path, message}]`, and `conflicts`, `[{entityRef, owner}]`.
    """

    def __init__(self, status: int, name: str, message: str, details: dict[str, Any]) -> None:
        super().__init__(message)
        self.status = status
        self.name = name
        self.message = message
        self.details = details


class ProtocolError(ClientError):
    """A JSON-RPC error of the tool-call endpoint, such as an unknown tool."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class ToolCallError(ClientError):
    """A tool cannot answer; the text says why and what to do next."""


class UnexpectedAnswer(ClientError):
    """The answer is none that a Factbook server gives; perhaps the address is another's."""
