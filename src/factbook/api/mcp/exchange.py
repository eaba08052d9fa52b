"""One request of the protocol on its way through the endpoint."""

from typing import Any, NamedTuple

import msgspec

from factbook.api.authentication import authorize
from factbook.api.mcp.jsonrpc import Id, RpcError
from factbook.auth.token_reach import NAMESPACES, TOOLS
from factbook.auth.tokens import Grant
from factbook.http.context import ToolContext, ToolServer
from factbook.http.requests import Request
from factbook.tools import Tool


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
