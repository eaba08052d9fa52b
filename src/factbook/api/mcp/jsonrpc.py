"""JSON-RPC 2.0 over HTTP: messages, answers around ready-made JSON, and an exchange."""

from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import UNSET, Struct, UnsetType

from factbook.api.authentication import authorize
from factbook.auth.token_reach import NAMESPACES, TOOLS
from factbook.auth.tokens import Grant
from factbook.errors import in_words
from factbook.http.context import ToolContext, ToolServer
from factbook.http.requests import Reply, Request
from factbook.tools import Tool

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603

Id = int | str


class RpcMessage(Struct):
    """A request, or a notification when it has no id; `params` stays bytes until it is read."""

    jsonrpc: Literal["2.0"]
    method: str
    id: Id | UnsetType = UNSET
    params: msgspec.Raw | UnsetType = UNSET


class RpcError(Exception):
    """A JSON-RPC error; `id` is None when the request's is not known."""

    def __init__(
        self,
        code: int,
        message: str,
        *,
        status: int,
        id: Id | None = None,
        data: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = status
        self.id = id
        self.data = data

    def reply(self) -> Reply:
        """The error as a reply."""
        error: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.data is not None:
            error["data"] = self.data
        body = {"jsonrpc": "2.0", "id": self.id, "error": error}
        return Reply(msgspec.json.encode(body), self.status)


_message = msgspec.json.Decoder(RpcMessage)
_members = msgspec.json.Decoder(dict[str, msgspec.Raw])
_batch = msgspec.json.Decoder(list[msgspec.Raw])
_MOST = 20
_NOTHING = msgspec.Raw(b"{}")
_NULL = b"null"


def parse(body: bytes | bytearray) -> RpcMessage:
    """The one message of a body; raises ProtocolError, with status 400, for anything else."""
    try:
        if not body.isascii():
            body.decode()  # what stays Raw is not looked into
        return _message.decode(body)
    except msgspec.ValidationError as error:
        text = (
            "A batch is for revision 2025-03-26 alone."
            if body.lstrip()[:1] == b"["
            else f"{in_words(error)}."
        )
        raise RpcError(INVALID_REQUEST, f"Not a JSON-RPC 2.0 request: {text}", status=400) from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise RpcError(PARSE_ERROR, f"Not valid JSON: {error}.", status=400) from None


def parse_batch(body: bytes | bytearray) -> list[bytes]:
    """The messages of a batch, each unread; raises RpcError unless there are 1 to 20."""
    try:
        messages = _batch.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise RpcError(PARSE_ERROR, f"Not valid JSON: {error}.", status=400) from None
    if not 0 < len(messages) <= _MOST:
        text = f"A batch has 1 to {_MOST} messages."
        raise RpcError(INVALID_REQUEST, text, status=400)
    return [bytes(message) for message in messages]


def refused(body: bytes, text: str) -> RpcError:
    """The error for a message of a batch that isn't answered."""
    try:
        id_ = parse(body).id
    except RpcError as error:
        return error
    return RpcError(INVALID_REQUEST, text, status=200, id=None if id_ is UNSET else id_)


def given_params(message: RpcMessage) -> msgspec.Raw:
    """The params of a request without members that are null, which clients send for none."""
    if message.params is UNSET or _NULL not in (params := bytes(message.params)):
        return _NOTHING if message.params is UNSET else message.params
    if params == _NULL:
        return _NOTHING
    try:
        members = _members.decode(params)
    except msgspec.ValidationError:
        return message.params  # no object, as whoever reads it says
    kept = {name: value for name, value in members.items() if bytes(value) != _NULL}
    return msgspec.Raw(msgspec.json.encode(kept))


def result(id_: Id, value: str) -> str:
    """An answer around a result that is JSON text already."""
    shown = id_ if type(id_) is int else msgspec.json.encode(id_).decode()
    return f'{{"jsonrpc":"2.0","id":{shown},"result":{value}}}'


class Exchange(NamedTuple):
    """A request with an id, the server that it is for, and whether its era is the modern one."""

    request: Request
    grant: Grant
    state: ToolContext
    server: ToolServer
    method: str
    id: Id
    params: msgspec.Raw
    modern: bool

    def authorize(self, tool: Tool) -> None:
        """Raise NotAllowedError unless the token may call this tool."""
        authorize(self.grant, tool.permissions)
        narrowing = self.grant.narrowing
        if narrowing is not None and not self.reaches(tool):
            raise narrowing.refusal(TOOLS, NAMESPACES)

    @property
    def keeps_session(self) -> bool:
        """True if a missing permission is reported inside the protocol, not as HTTP 403.

        A host ends its session at HTTP 403. A client of OAuth needs one to ask for more.
        """
        return self.server.choice.for_hosts and self.grant.grantable is None

    def lists(self, tool: Tool) -> bool:
        """True if the caller is shown the tool: not what a token made by hand can never call."""
        can_call = self.grant.permissions.issuperset(tool.permissions)
        return self.reaches(tool) and (can_call or not self.keeps_session)

    def reaches(self, tool: Tool) -> bool:
        """True if the tool is within what the token is narrowed to.

        Which namespaces a tool writes to, it does not say.
        """
        narrowing = self.grant.narrowing
        if narrowing is None:
            return True
        writes_anywhere = tool.writes and narrowing.namespaces is not None
        return narrowing.allows(TOOLS, tool.name) and not writes_anywhere

    def error(
        self,
        code: int,
        message: str,
        *,
        status: int = 400,
        data: dict[str, Any] | None = None,
    ) -> RpcError:
        """An error for this request; `status` is that of the modern era, the legacy one has 200."""
        return RpcError(code, message, status=status if self.modern else 200, id=self.id, data=data)
