"""One request of the protocol on its way through the endpoint."""

from typing import Any, NamedTuple

import msgspec

from factbook.api.mcp.jsonrpc import Id, RpcError
from factbook.auth.tokens import Grant
from factbook.http.context import ToolContext, ToolServer
from factbook.http.requests import Request


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
