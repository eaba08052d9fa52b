"""Introductions of agent hosts to OAuth, from public reports and their own sources."""

from typing import Any, Final, NamedTuple

from factbook.auth.oauth.protocol import BASIC_SCOPES

# For hosts that ask for each scope in the metadata of the authorization server.
LISTED: Final = "listed"
_PUBLIC: Final[dict[str, Any]] = {
    "grant_types": ["authorization_code", "refresh_token"],
    "response_types": ["code"],
    "token_endpoint_auth_method": "none",
}
_CLAUDE_CODE: Final = "https://claude.ai/oauth/claude-code-client-metadata"
_CLAUDE: Final = "https://claude.ai/oauth/mcp-oauth-client-metadata"
_CHATGPT: Final = "https://chatgpt.com/oauth/client.json"
_CODEX: Final = "https://chatgpt.com/oauth/codex/client.json"
_VS_CODE: Final = "https://vscode.dev/oauth/client-metadata.json"
_ZED: Final = "https://zed.dev/oauth/client-metadata.json"


class AgentHost(NamedTuple):
    """A host: its metadata document or registration, and the request that it sends.

    `scope` is sent to both endpoints, and left out if None. `after` follows the resource's address.
    """

    id: str
    source: str
    client: dict[str, Any]
    redirect_uri: str
    scope: str | None = " ".join(BASIC_SCOPES)
    after: str = ""

    @property
    def has_document(self) -> bool:
        """True if its client id is the address of its metadata document."""
        return "client_id" in self.client


HOSTS: Final = (
    AgentHost(
        "cursor",
        "https://github.com/erp-mafia/accounted/pull/2225",
        {
            "client_name": "Cursor",
            "redirect_uris": [
                "cursor://anysphere.cursor-mcp/oauth/callback",
                "https://www.cursor.com/agents/mcp/oauth/callback",
                "http://localhost:8787/callback",
            ],
            **_PUBLIC,
        },
        "http://localhost:8787/callback",
        scope=LISTED,
    ),
    AgentHost(
        "cursor-own-scheme",
        "https://github.com/different-ai/openwork/pull/3059",
        {
            "client_name": "Cursor",
            "redirect_uris": ["cursor://anysphere.cursor-mcp/oauth/callback"],
            **_PUBLIC,
        },
        "cursor://anysphere.cursor-mcp/oauth/callback",
        scope=None,
    ),
    AgentHost(
        "cursor-web",
        "https://github.com/bytebase/bytebase/issues/20510",
        {
            "client_name": "Cursor",
            "redirect_uris": ["https://www.cursor.com/agents/mcp/oauth/callback"],
            **_PUBLIC,
        },
        "https://www.cursor.com/agents/mcp/oauth/callback",
    ),
    AgentHost(
        "vs-code",
        "https://github.com/microsoft/vscode/issues/278512",
        {
            "client_name": "Visual Studio Code",
            "client_uri": "https://code.visualstudio.com",
            "redirect_uris": [
                "https://insiders.vscode.dev/redirect",
                "https://vscode.dev/redirect",
                "http://127.0.0.1/",
                "http://127.0.0.1:33418/",
            ],
            **_PUBLIC,
            "application_type": "native",
        },
        "http://127.0.0.1:59656/",
        scope="openid profile email",
    ),
    AgentHost(
        "vs-code-document",
        "https://github.com/microsoft/vscode/issues/298300",
        {
            "client_id": _VS_CODE,
            "client_name": "Visual Studio Code",
            "client_uri": "https://vscode.dev/product",
            "logo_uri": "https://code.visualstudio.com/assets/branding/code-stable.png",
            "redirect_uris": ["http://127.0.0.1:33418/", "https://vscode.dev/redirect"],
            "grant_types": [
                "authorization_code",
                "refresh_token",
                "urn:ietf:params:oauth:grant-type:device_code",
            ],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
            "application_type": "native",
        },
        "https://vscode.dev/redirect",
    ),
    AgentHost(
        # VS Code shows people the address without the slash, and then sends the slash.
        "vs-code-as-shown",
        "https://github.com/microsoft/vscode/issues/337174",
        {
            "client_name": "Visual Studio Code",
            "redirect_uris": ["http://127.0.0.1:33418", "https://vscode.dev/redirect"],
        },
        "http://127.0.0.1:33418/",
    ),
    AgentHost(
        "chatgpt",
        "https://github.com/django-oauth/django-oauth-toolkit/issues/1857",
        {
            "client_id": _CHATGPT,
            "client_name": "ChatGPT",
            "client_uri": "https://chatgpt.com/",
            "redirect_uris": ["https://chatgpt.com/connector_platform_oauth_redirect"],
            **_PUBLIC,
            "token_endpoint_auth_method": "private_key_jwt",
            "token_endpoint_auth_methods_supported": ["none", "private_key_jwt"],
            "token_endpoint_auth_signing_alg": "RS256",
            "jwks_uri": "https://chatgpt.com/oauth/jwks.json",
        },
        "https://chatgpt.com/connector_platform_oauth_redirect",
    ),
    AgentHost(
        "chatgpt-registration",
        "https://github.com/BasedHardware/omi/issues/8824",
        {
            "client_name": "ChatGPT",
            "redirect_uris": ["https://chatgpt.com/connector/oauth/OUbdUMlL15Ct"],
            **_PUBLIC,
        },
        "https://chatgpt.com/connector/oauth/OUbdUMlL15Ct",
    ),
    AgentHost(
        # The web, desktop and mobile applications share it.
        "claude",
        "https://github.com/brendanlong/lion-reader/pull/1519",
        {
            "client_id": _CLAUDE,
            "client_name": "Claude",
            "client_uri": "https://claude.ai",
            "redirect_uris": ["https://claude.ai/api/mcp/auth_callback"],
            **_PUBLIC,
            "grant_types": [
                "authorization_code",
                "refresh_token",
                "urn:ietf:params:oauth:grant-type:jwt-bearer",
            ],
        },
        "https://claude.ai/api/mcp/auth_callback",
    ),
    AgentHost(
        "claude-registration",
        "https://github.com/anthropics/claude-ai-mcp/issues/1043",
        {
            "client_name": "Claude",
            "redirect_uris": ["https://claude.ai/api/mcp/auth_callback"],
            **_PUBLIC,
            "token_endpoint_auth_method": "client_secret_post",
            "scope": "claudeai",
        },
        "https://claude.ai/api/mcp/auth_callback",
        # https://github.com/anthropics/claude-ai-mcp/issues/124
        scope="claudeai",
    ),
    AgentHost(
        "claude-code",
        "https://github.com/anthropics/claude-code/issues/64705",
        {
            "client_id": _CLAUDE_CODE,
            "client_name": "Claude Code",
            "client_uri": "https://claude.ai",
            "redirect_uris": ["http://localhost/callback", "http://127.0.0.1/callback"],
            **_PUBLIC,
        },
        "http://127.0.0.1:52163/callback",
        scope=f"{' '.join(BASIC_SCOPES)} offline_access",
    ),
    AgentHost(
        "claude-code-registration",
        "https://github.com/elmohq/elmo/pull/684",
        {
            "client_name": "Claude Code (factbook)",
            "redirect_uris": ["http://localhost:3118/callback"],
            **_PUBLIC,
            "application_type": "native",
        },
        "http://localhost:3118/callback",
        # https://github.com/anthropics/claude-code/issues/52871
        after="/",
    ),
    AgentHost(
        "gemini-cli",
        "https://github.com/google-gemini/gemini-cli/blob/main/packages/core/src/mcp/oauth-provider.ts",
        {
            "client_name": "Gemini CLI MCP Client",
            "redirect_uris": ["http://localhost:7777/oauth/callback"],
            **_PUBLIC,
            "scope": "",
        },
        # https://github.com/google-gemini/gemini-cli/issues/14419: the port is a free one.
        "http://localhost:41235/oauth/callback",
        scope=LISTED,
    ),
    AgentHost(
        "antigravity",
        "https://github.com/google-antigravity/antigravity-cli/issues/480",
        {
            "client_name": "Antigravity",
            "redirect_uris": ["https://antigravity.google/oauth-callback"],
            **_PUBLIC,
        },
        "https://antigravity.google/oauth-callback",
        scope=None,
    ),
    AgentHost(
        "codex",
        "https://github.com/anomalyco/opencode/pull/47737",
        {
            "client_id": _CODEX,
            "client_name": "Codex",
            "redirect_uris": ["http://127.0.0.1/callback", "http://localhost/callback"],
            **_PUBLIC,
        },
        "http://127.0.0.1:37819/callback",
    ),
    AgentHost(
        "codex-registration",
        "https://github.com/openai/codex/issues/30460",
        {
            "client_name": "Codex",
            "redirect_uris": ["http://127.0.0.1:63546/callback/6MFBM1In3Ey-"],
            **_PUBLIC,
            "application_type": "native",
        },
        "http://127.0.0.1:63546/callback/6MFBM1In3Ey-",
    ),
    AgentHost(
        "zed",
        "https://github.com/zed-industries/zed/issues/56210",
        {
            "client_id": _ZED,
            "client_name": "Zed",
            "client_uri": "https://zed.dev",
            "redirect_uris": ["http://127.0.0.1/callback"],
            **_PUBLIC,
            "grant_types": ["authorization_code"],
            "scope": "mcp:*",
        },
        "http://127.0.0.1:51234/callback",
        scope="mcp:*",
    ),
    AgentHost(
        "zed-registration",
        "https://github.com/zed-industries/zed/blob/main/crates/context_server/src/oauth.rs",
        {
            "client_name": "Zed",
            "redirect_uris": ["http://127.0.0.1:51234/callback"],
            **_PUBLIC,
            "grant_types": ["authorization_code"],
        },
        "http://127.0.0.1:51234/callback",
    ),
    AgentHost(
        # Its registration isn't public: reports show the scheme alone.
        "windsurf",
        "https://github.com/Mermaid-Chart/issue-tracker/issues/145",
        {
            "client_name": "Windsurf",
            "redirect_uris": ["windsurf://codeium.windsurf/oauth-callback"],
            **_PUBLIC,
        },
        "windsurf://codeium.windsurf/oauth-callback",
        scope=None,
    ),
    AgentHost(
        "others",
        "https://www.rfc-editor.org/rfc/rfc7591#section-2",
        {
            "client_name": "Büro \u201eAssistent\u201c & <b>Co</b>\u202e",
            "client_name#ja": "クライアント",
            "redirect_uris": ["com.example.agent:/callback", "http://[::1]/callback"],
            "software_id": "4NRB1-0XZABZI9E6-5SM3R",
            "software_version": "2.2",
            "software_statement": "eyJ.eyJ.sig",
            "contacts": ["ops@example.com"],
            "logo_uri": None,
            "jwks": {"keys": []},
            "example_extension_parameter": {"a": [1]},
        },
        "http://[::1]:49152/callback",
        scope="",
        after="?toolsets=facts",
    ),
)
