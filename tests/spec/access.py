"""Tokens, permissions, people, and how refusals look."""

from .requirement import Requirement

REQUIREMENTS: dict[str, Requirement] = {
    # Presenting a token
    "auth.bearer-token-on-both-interfaces": Requirement(
        "seed §5; seed §4.1; seed §4.3", "Tool calls and pushes both take an API token as bearer."
    ),
    "auth.scheme-word-in-any-case": Requirement(
        "seed §5; decisions §6.3", "`Bearer`, `bearer` and any other case are the same scheme."
    ),
    "auth.missing-token-is-401": Requirement(
        "decisions §6.3; decisions §4.3; seed §7", "No token: 401 with a `WWW-Authenticate` header."
    ),
    "auth.bad-token-is-401": Requirement(
        "decisions §4.3; seed §7", "An unknown, expired or revoked token: 401 `invalid_token`."
    ),
    "auth.missing-permission-is-403": Requirement(
        "decisions §6.3; decisions §4.3; seed §7",
        "A token that lacks a needed permission: 403 naming what lacks.",
    ),
    "auth.test-token-by-listing-entities": Requirement(
        "seed §4.2", "Listing entities with a token tells whether the token is good."
    ),
    # What a token is
    "token.form": Requirement(
        "decisions §6.1", "A token is `fbk_`, 40 random base62 characters and a checksum."
    ),
    "token.wrong-checksum-is-refused": Requirement(
        "decisions §6.1", "A token whose checksum does not fit is refused."
    ),
    "token.usage-is-shown": Requirement(
        "decisions §6.1", "Calls of tools, and the size of their results, are shown by token."
    ),
    "token.value-shown-once": Requirement(
        "seed §5; decisions §6.1", "The value appears when the token is made and never again."
    ),
    "token.stored-as-keyed-hash": Requirement(
        "decisions §6.1", "The database holds a keyed hash of a token and never its value."
    ),
    "token.has-a-name": Requirement(
        "seed §5; decisions §6.1", "Whoever makes a token names it, and lists show the name."
    ),
    "token.has-an-owner": Requirement(
        "decisions §6.1", "A token belongs to a user, held as an entity reference."
    ),
    "token.has-permissions": Requirement(
        "decisions §6.1", "A token carries the permissions chosen for it and no others."
    ),
    "token.least-privilege": Requirement(
        "decisions §6.1", "A new token only reads, unless more is asked for."
    ),
    "token.narrowed-is-kept-within": Requirement(
        "decisions §6.1",
        "A token that is narrowed to sets, namespaces, sources or tools does nothing elsewhere.",
    ),
    "token.narrowed-never-widens": Requirement(
        "decisions §6.1",
        "No token that a narrowed one makes reaches further, by however many steps.",
    ),
    "token.expires-after-90-days": Requirement(
        "decisions §6.1; seed §5", "A token lives 90 days when nobody chooses an expiry."
    ),
    "token.expiry-can-be-chosen": Requirement(
        "decisions §6.1", "Its maker can give a token another expiry, and it ends then."
    ),
    "token.remembers-last-use": Requirement(
        "decisions §6.1", "A token shows when it was last used."
    ),
    "token.last-use-written-once-a-minute": Requirement(
        "decisions §6.1", "Many calls within a minute write the last use a single time."
    ),
    "token.revocation-acts-on-next-request": Requirement(
        "decisions §6.1; seed §5", "After a revocation the very next request is refused."
    ),
    "token.constant-time-comparison": Requirement(
        "decisions §6.1", "Hashes are compared in a time that does not tell how much agrees."
    ),
    "token.key-from-setting": Requirement(
        "decisions §6.1", "The hash key can be given as a setting."
    ),
    "token.key-file-is-private": Requirement(
        "decisions §6.1", "Without a set key, one is generated in a file of mode 0600."
    ),
    "token.key-mandatory-on-postgresql": Requirement(
        "decisions §6.1", "On PostgreSQL the service does not start without the key setting."
    ),
    "token.management-interface": Requirement(
        "decisions §6.1", "`/api/access/v1/tokens` lists, makes and revokes tokens."
    ),
    "token.never-exceeds-its-creator": Requirement(
        "decisions §6.1", "A token cannot be given a permission that its creator does not hold."
    ),
    "token.dies-with-the-account": Requirement(
        "decisions §6.1", "When an account goes, its tokens stop working."
    ),
    "token.made-in-the-account-page": Requirement(
        "seed §5", "Administration has an API access section where a token is made."
    ),
    # Permissions
    "permissions.the-nine-names": Requirement(
        "decisions §6.2",
        "The nine listed permissions exist, `scim.write`, those of checks, of operations and of "
        "owners; any other name is refused.",
    ),
    "roles.by-groups": Requirement(
        "decisions §6.2",
        "Groups of the identity provider give roles, which end with the membership at once.",
    ),
    "people.roles-need-a-proven-account": Requirement(
        "decisions §6.2",
        "A role of a SCIM user's group needs an account with the user's subject, or one that an "
        "administrator has confirmed. Names that people choose prove nothing.",
    ),
    "roles.groups-write-what-they-own": Requirement(
        "decisions §6.2",
        "Members of a group who are editors write what the group owns, and nothing of others.",
    ),
    "people.only-trusted-sets-give-rights": Requirement(
        "decisions §6.2",
        "However a membership arrives, it gives rights only if a trusted set states it.",
    ),
    "people.one-setting-restores-every-right": Requirement(
        "decisions §6.2",
        "People whom an upgrade leaves without rights stay, are listed by the doctor, the status "
        "and the log, and have their rights again by one setting.",
    ),
    "exemptions.only-the-checks-owner-decides": Requirement(
        "decisions §6.2",
        "A scorecard's exemption rules count for a check only if its owner owns the check, or if "
        "they were published with the permission for scorecards; who may decide always may.",
    ),
    "connections.used-by-owners-they-are-shared-with": Requirement(
        "decisions §6.2",
        "A source of a group asks only connections that are shared with it; without, it says so.",
    ),
    "roles.nobody-gives-more-than-they-have": Requirement(
        "decisions §6.2",
        "No chain of invitations, roles and tokens gives anybody more than who began it has.",
    ),
    "roles.each-does-what-its-permissions-allow": Requirement(
        "decisions §6.2",
        "At every route, page and tool a person of a role may do what the table of roles says.",
    ),
    "permissions.titles-of-the-seed": Requirement(
        "decisions §6.2; seed §5",
        "Two permissions carry the titles under which the seed knows them.",
    ),
    "permissions.entity-read-guards-the-catalog": Requirement(
        "decisions §3; decisions §6.2; seed §5", "Reading entities takes `catalog.entity.read`."
    ),
    "permissions.set-write-guards-the-push": Requirement(
        "decisions §6.2; seed §5", "Writing sets and entities takes `catalog.entity-set.write`."
    ),
    "permissions.token-manage-guards-tokens": Requirement(
        "decisions §6.2", "Managing tokens takes `access.token.manage`."
    ),
    "permissions.tools-need-entity-read": Requirement(
        "seed §4.1; seed §5; decisions §6.3", "Every tool is refused without the entity read right."
    ),
    "permissions.tools-need-data-source-read": Requirement(
        "seed §4.1; seed §5; decisions §6.3", "Every tool is refused without data source read."
    ),
    "permissions.source-write-guards-definitions": Requirement(
        "decisions §6.2",
        "Defining a source takes `tech-insights.data-source.write`.",
    ),
    "permissions.source-run-guards-runs": Requirement(
        "decisions §6.2",
        "Starting a collection takes `tech-insights.source.run`.",
    ),
    "permissions.fact-write-guards-fact-push": Requirement(
        "decisions §6.2", "Pushing facts takes `tech-insights.fact.write`."
    ),
    "permissions.writing-shows-nothing-stored": Requirement(
        "decisions §6.2",
        "A token that writes and may not read is shown what it sent, and counts of the rest.",
    ),
    "permissions.events-read-guards-the-feed": Requirement(
        "decisions §6.2", "Reading the event feed takes `events.read`."
    ),
    "permissions.audit-read-guards-the-audit": Requirement(
        "decisions §6.2", "Reading the audit record takes `audit.read`."
    ),
    # How refusals look
    "errors.rest-shape": Requirement(
        "decisions §6.4; seed §7", "REST errors carry `error`, `request` and `response` objects."
    ),
    "errors.no-stack-trace": Requirement(
        "decisions §6.4", "An internal fault answers without a stack trace or a library's text."
    ),
    "errors.no-secret": Requirement(
        "decisions §6.4", "No token, key or password appears in an error."
    ),
    "errors.no-header-value": Requirement(
        "decisions §6.4", "No error repeats the value of a request header."
    ),
    # People
    "people.local-account": Requirement(
        "decisions §6.5", "People sign in with a password, hashed with Argon2id."
    ),
    "people.openid-connect": Requirement(
        "decisions §6.5", "People sign in through an OpenID Connect provider."
    ),
    "people.first-administrator-by-one-time-link": Requirement(
        "decisions §6.5",
        "The first start prints a link that makes the first administrator, once.",
    ),
    "people.no-default-password": Requirement(
        "decisions §6.5", "No account exists with a password known beforehand."
    ),
    "people.nobody-is-locked-out-by-guesses": Requirement(
        "decisions §6.5",
        "Guesses at a name keep out neither a browser that has signed in before nor the command.",
    ),
    # The network around the service
    "network.forwarded-headers-ignored-by-default": Requirement(
        "decisions §6.6", "Forwarded headers count for nothing when no proxy is configured."
    ),
    "network.trusted-proxies": Requirement(
        "decisions §6.6", "`trusted_proxies` says whose forwarded client address is believed."
    ),
    "network.public-url": Requirement(
        "decisions §6.6", "`public_url` decides the scheme and host of the URLs the service writes."
    ),
    "network.allowed-hosts": Requirement(
        "decisions §6.6; decisions §4.3", "A foreign Host gets 421 naming the setting to change."
    ),
    "network.allowed-origins": Requirement(
        "decisions §6.6; decisions §4.3", "A foreign Origin gets 403 naming the setting to change."
    ),
    "network.outgoing-address-guard": Requirement(
        "decisions §5.8",
        "Sources and git connect outwards through one address guard.",
    ),
    "network.outgoing-guard-covers-openid-connect": Requirement(
        "decisions §5.8", "The address guard holds for OpenID Connect too."
    ),
    "network.outgoing-guard-covers-webhooks": Requirement(
        "decisions §5.8", "The address guard holds for webhooks too."
    ),
}
