"""Which `resource` parameters name this service."""

import pytest

from factbook.auth.oauth import protocol


def test_a_resource_is_compared_as_an_address(subtests: pytest.Subtests) -> None:
    for resource, is_ours in (
        ("https://facts.example.com/mcp", True),
        ("https://facts.example.com/mcp?toolsets=facts", True),
        ("https://facts.example.com/mcp/", True),
        ("HTTPS://Facts.Example.com:443/mcp", True),
        ("https://facts.example.com:444/mcp", False),
        ("https://facts.example.com/MCP", False),
        ("https://facts.example.com/mcp//", False),
        ("https://facts.example.com/x/../mcp", False),
        ("https://facts.example.com/mcp#a", False),
        ("https://facts.example.com\n/mcp", False),
        ("https://me@facts.example.com/mcp", False),
        ("https://facts.example.com.evil.example/mcp", False),
        ("http://facts.example.com/mcp", False),
        ("https://facts.example.com", False),
        ("https://[facts.example.com/mcp", False),
        ("", False),
    ):
        for server in ("https://facts.example.com", "https://facts.example.com:443"):
            with subtests.test(resource=resource, server=server):
                assert protocol.names_resource(resource, server) is is_ours
