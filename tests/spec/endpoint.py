"""The tool-call endpoint: protocol, envelope, and which case gets which status."""

from .requirement import DEPRECATIONS, Requirement

REQUIREMENTS: dict[str, Requirement] = {
    # The endpoint and its request
    "endpoint.path": Requirement(
        "seed §1; seed §4.1; seed §9", "Tools are called by POST at the seed's path, under `v1`."
    ),
    "endpoint.request-headers": Requirement(
        "seed §4.1", "The three headers that the seed's clients send are all it takes."
    ),
    "endpoint.json-rpc-2": Requirement(
        "seed §1; seed §4.1; seed §9", "Requests and answers are JSON-RPC `2.0`, same `id`."
    ),
    "endpoint.tools-call": Requirement(
        "seed §1; seed §4.1", "`tools/call` runs the tool in `params.name` with its arguments."
    ),
    "endpoint.empty-arguments": Requirement(
        "seed §4.1", "A tool without arguments takes `{}`, or nothing at all."
    ),
    "endpoint.integer-ids": Requirement("seed §4.1", "An integer request id is echoed as it is."),
    "endpoint.bare-call": Requirement(
        "decisions §4.1", "A lone `tools/call` works with neither handshake nor session."
    ),
    "endpoint.stateless": Requirement(
        "decisions §4.1", "No session id is issued, and no call depends on an earlier one."
    ),
    "endpoint.accepts-plain-json": Requirement(
        "decisions §4.1", "`Accept: application/json` without event-stream is served."
    ),
    "endpoint.legacy-revisions": Requirement(
        "decisions §4.1", "2025-03-26, 2025-06-18 and 2025-11-25 clients shake hands and call."
    ),
    "endpoint.modern-revision": Requirement(
        "decisions §4.1", "2026-07-28 clients discover, list and call with metadata per request."
    ),
    "endpoint.one-path-for-all-revisions": Requirement(
        "decisions §4.1", "Header or `_meta` decides the era; one address serves both."
    ),
    "endpoint.revisions-kept-while-spoken": Requirement(
        "decisions §7", "Every revision that a client of the suite speaks is supported."
    ),
    # The address of all toolsets
    "endpoint.all-toolsets": Requirement(
        "decisions §4.1", "`/mcp` serves the tools of every server, in every revision."
    ),
    "endpoint.toolsets-are-chosen": Requirement(
        "decisions §4.1", "`?toolsets=` chooses; a name that there is not is 400 and told."
    ),
    "endpoint.compact-answers": Requirement(
        "decisions §4.1", "With `?read=compact` an answer is text alone, and lists no schema of it."
    ),
    "endpoint.strict-answers": Requirement(
        "decisions §4.6",
        "With `?read=seed` the nine tools answer with exactly the members of the seed.",
    ),
    "endpoint.tools-name-permissions": Requirement(
        "decisions §4.1", "A call at `/mcp` needs the permissions of its tool, and is told them."
    ),
    "endpoint.hosts-convert-tools": Requirement(
        "decisions §4.1", "Every tool converts in the libraries of hosts, with all its arguments."
    ),
    "endpoint.oauth-at-mcp": Requirement(
        "decisions §4.1", "Clients sign people in with OAuth at `/mcp`, and find it by path."
    ),
    "endpoint.oauth-nowhere-else": Requirement(
        "decisions §4.1", "No other endpoint answers discovery of an authorization server."
    ),
    "endpoint.oauth-ends-what-leaked": Requirement(
        "decisions §4.1", "A code or refresh token that comes twice ends all tokens of its consent."
    ),
    "endpoint.resources-are-read": Requirement(
        "decisions §4.1", "`/mcp` lists entities and scorecards as resources, and reads them."
    ),
    "endpoint.names-are-completed": Requirement(
        "decisions §4.1", "Kinds, namespaces, names and scorecards are completed from a beginning."
    ),
    # Checks for agents
    "checks.agents-read-them": Requirement(
        "decisions §4.1", "Six tools on an endpoint of their own read checks and scorecards."
    ),
    "checks.agents-are-told-unknowns": Requirement(
        "decisions §4.1", "A result that is unknown is told as such, with its reason."
    ),
    "checks.tools-name-permissions": Requirement(
        "decisions §4.1", "Each tool about checks needs its own permissions, values one more."
    ),
    "checks.agents-write-by-a-setting": Requirement(
        "decisions §4.1", "Tools that write are there by `agent_writes` alone, on a path of theirs."
    ),
    # Listing
    "endpoint.lists-nine-tools": Requirement(
        "seed §1; seed §4.1", "`tools/list` names the seed's nine tools under the seed's names."
    ),
    "endpoint.no-root-composition": Requirement(
        "decisions §4.4", "No schema has `anyOf`, `oneOf` or `allOf` at its root."
    ),
    "endpoint.descriptions-warn-of-size": Requirement(
        "decisions §4.6", "Descriptions say that agents cut results above some 25,000 tokens."
    ),
    "endpoint.v1-only-grows": Requirement(
        "decisions §7; seed §9", "No seed path, argument or result field of v1 goes or changes."
    ),
    "endpoint.deprecation-is-announced": Requirement(
        "decisions §7; seed §9",
        "What is to go says so in `Deprecation` and `Sunset`, six months before.",
        later=DEPRECATIONS,
    ),
    # Results
    "result.envelope": Requirement(
        "decisions §4.2; seed §4.1", "A result has `content`, `structuredContent` and `isError`."
    ),
    "result.both-copies-agree": Requirement(
        "decisions §4.2", "The text is compact JSON of the same value as the structured copy."
    ),
    "result.matches-output-schema": Requirement(
        "decisions §4.2", "Every good result satisfies its tool's `outputSchema`."
    ),
    "result.error-has-text-alone": Requirement(
        "decisions §4.2", "A result with `isError` true has no `structuredContent`."
    ),
    "result.additions-leave-seed-fields-alone": Requirement(
        "decisions §4.6", "Extra fields alter no seed field's name, type or presence."
    ),
    # Mistakes that the model can repair
    "tool-error.bad-argument": Requirement(
        "decisions §4.3; seed §7", "A missing, extra or wrongly typed argument is an `isError`."
    ),
    "tool-error.unknown-data-source": Requirement(
        "decisions §4.3; decisions §5.4; seed §7", "An unknown data source lists the known ids."
    ),
    "tool-error.unknown-entity": Requirement(
        "decisions §4.3; decisions §5.4; seed §7", "An unknown entity lists the nearest names."
    ),
    "tool-error.bad-reference": Requirement(
        "decisions §4.3", "A malformed entity reference is an `isError` that shows the form."
    ),
    "tool-error.says-what-to-do-next": Requirement(
        "decisions §4.3", "Each such text ends in what the caller can do next."
    ),
    "tool-error.upstream-fault": Requirement(
        "decisions §4.3", "A vendor's failure is an `isError`, not a crash."
    ),
    # Mistakes of protocol
    "protocol.tool-answers-are-200": Requirement(
        "decisions §4.3", "Whatever a tool answers, good or `isError`, has HTTP status 200."
    ),
    "protocol.notification-is-202": Requirement(
        "decisions §4.3", "A notification gets 202 and an empty body."
    ),
    "protocol.other-methods-are-405": Requirement(
        "decisions §4.3", "GET, PUT and DELETE with a token are 405 with `Allow: POST`."
    ),
    "protocol.content-type-is-415": Requirement(
        "decisions §4.3", "A body that is not declared JSON is 415 with -32600."
    ),
    "protocol.accept-without-json-is-406": Requirement(
        "decisions §4.3", "An `Accept` that rules JSON out is 406 with -32600."
    ),
    "protocol.body-over-1-mib-is-413": Requirement(
        "decisions §7; decisions §4.3", "A tool call over 1 MiB is 413 with -32600."
    ),
    "protocol.bad-json-is-400": Requirement(
        "decisions §4.3; seed §7", "A body that does not parse is 400 with -32700 and id null."
    ),
    "protocol.invalid-request-is-400": Requirement(
        "decisions §4.3; seed §7",
        "A batch, no method, a wrong `jsonrpc`, a null or broken id: 400 with -32600.",
    ),
    "protocol.unknown-method": Requirement(
        "decisions §4.3; seed §7", "A method nobody knows is -32601: 200 legacy, 404 modern."
    ),
    "protocol.unknown-tool-or-bad-params": Requirement(
        "decisions §4.3; seed §7",
        "An unknown tool, malformed params or a bad cursor is -32602: 200 legacy, 400 modern.",
    ),
    "protocol.incomplete-meta-is-400": Requirement(
        "decisions §4.3", "A modern request with half its `_meta` is 400 with -32602."
    ),
    "protocol.header-mismatch-is-400": Requirement(
        "decisions §4.3", "A modern header that contradicts the body is 400 with -32020."
    ),
    "protocol.unknown-version-is-400": Requirement(
        "decisions §4.3", "An unknown revision is 400 with -32022 and the supported ones."
    ),
    "protocol.bug-is-32603": Requirement(
        "decisions §4.3", "A fault of ours is -32603 without detail: 200 legacy, 500 modern."
    ),
    "protocol.rate-limit-is-429": Requirement(
        "decisions §4.3", "Tool calls over the token's rate are 429, with the wait in a header."
    ),
}
