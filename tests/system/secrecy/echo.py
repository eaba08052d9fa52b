"""A host that answers with everything that it was sent: the worst that one can do to a secret."""

import itertools
import json
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

# Not found is a wrong address there, which is asked again for some minutes.
_PROMETHEUS = ("/api/v1/rules", "/api/v1/label/", "/api/v1/query")


class Echo:
    """Repeats what it was sent in the body, a header and the address of a redirect.

    The status changes from answer to answer, among those that end a question at once, until it
    `fails`. `proofs` holds what was sent.
    """

    def __init__(self) -> None:
        self.proofs: set[str] = set()
        self.fails = False
        self._denied = itertools.cycle([401, 403, 404])
        self._failed = itertools.cycle([200, 500, 302, 200, 400, 422, 429])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        body = await request.body()
        sent = {**request.headers, "query": request.url.query, "body": body.decode("latin-1")}
        self.proofs.update(sent.values())
        await self.answer(request, " ".join(sent.values()), sent)(scope, receive, send)

    def answer(self, request: Request, text: str, sent: dict[str, Any]) -> Response:
        """What is said about a request."""
        status = next(self._failed if self.fails else self._denied)
        if status == 404 and request.url.path.startswith(_PROMETHEUS):
            status = 403
        content = {"message": text, "error": text, "errors": [{"message": text, "title": text}]}
        headers = {"location": f"/{quote(text[:500])}", "x-request-id": quote(text[:500])}
        if request.url.path.endswith("/info/refs"):
            headers["www-authenticate"] = f'Basic realm="{quote(text[:500])}"'
        return Response(
            json.dumps({**content, "headers": sent}), status, headers, "application/json"
        )


class EchoProvider(Echo):
    """An OpenID Connect provider that takes no code, and says why in the words of the client."""

    def __init__(self) -> None:
        super().__init__()
        self.issuer = ""

    def answer(self, request: Request, text: str, sent: dict[str, Any]) -> Response:
        """The discovery document, or a refusal."""
        if request.url.path == "/.well-known/openid-configuration":
            return JSONResponse(
                {
                    "issuer": self.issuer,
                    "authorization_endpoint": f"{self.issuer}/authorize",
                    "token_endpoint": f"{self.issuer}/token",
                    "jwks_uri": f"{self.issuer}/keys",
                    "response_types_supported": ["code"],
                    "subject_types_supported": ["public"],
                    "id_token_signing_alg_values_supported": ["ES256"],
                    "token_endpoint_auth_methods_supported": ["client_secret_basic"],
                }
            )
        return JSONResponse({"error": "invalid_grant", "error_description": text}, 400)
