"""Every setting with its type, meaning, default and bounds; and how settings are loaded."""

import os
import re
import tomllib
from collections.abc import Mapping
from functools import cache
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Any, Final, Literal, get_origin, get_type_hints

import msgspec
from msgspec import Meta

from factbook import text_files
from factbook.errors import ConfigurationError, in_words

MIB = 1024 * 1024
_LEAST_VALUES = {
    "postgres_connections": 1,
    "replica_lag": 0,
    "sqlite_busy_timeout": 0,
    "port": 0,
    "workers": 1,
    "token_burst": 1,
    "failed_logins": 1,
    "max_requests": 1,
    "max_body_bytes": 0,
    "max_set_items": 1,
    "max_json_depth": 1,
    "max_entity_relations": 1,
    "max_entity_labels": 1,
    "max_entity_annotations": 1,
    "max_entity_tags": 1,
    "max_entity_links": 1,
    "max_entity_values": 1,
    "revisions_kept": 0,
    "revision_days": 0,
    "removed_days": 0,
    "audit_days": 0,
    "event_days": 1,
    "check_days": 1,
    "exemption_days": 1,
}
_LAST_PORT = 65535
_DATABASE_SCHEMES = ("sqlite:///", "postgresql://", "postgres://")
# Settings that are tables, and the depth of their options, which can also be set as variables.
TABLE_DEPTHS: Final = {
    "integrations": 3,
    "importers": 3,
    "connections": 2,
    "openid": 1,
    "group_roles": 1,
    "oauth": 1,
}
_VARIABLE_PREFIX: Final = "FACTBOOK_"
# Variables that are no settings: commands that talk to a server read them.
_CLIENT_VARIABLES: Final = frozenset({"CONFIG", "SERVER", "TOKEN"})
# Variables that Kubernetes sets in containers for a service named "factbook" or "factbook-…".
_SERVICE_LINK: Final = re.compile(
    r"(?:\w+_)?(?:SERVICE_HOST|SERVICE_PORT(?:_\w+)?|PORT(?:_\d+_(?:TCP|UDP)(?:_\w+)?)?)"
)
# Least similarity at which an unknown name counts as a misspelling of a known one.
_LEAST_LIKENESS: Final = 0.85


def _describe(*sentences: str) -> Meta:
    return Meta(description="".join(sentences))


# Push body size allowed per item of a set; entities have a thousand bytes on average.
_BYTES_PER_ITEM = 1_280
_LEAST_BODY = 16 * MIB


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Every setting with its type, meaning and default."""

    database_url: Annotated[
        str, _describe("Where everything is stored: `sqlite:///PATH` or `postgresql://…`.")
    ] = "sqlite:///factbook.db"
    postgres_connections: Annotated[
        int, _describe("Connections to PostgreSQL that a process keeps open.")
    ] = 8
    replica_url: Annotated[
        str | None,
        _describe(
            "A standby of the PostgreSQL in `database_url`, for searches, lists, totals and "
            "exports: `postgresql://…`."
        ),
    ] = None
    replica_lag: Annotated[
        float,
        _describe(
            "Seconds for which a read waits until the replica shows the latest commit; after that "
            "the primary serves it."
        ),
    ] = 0.1
    sqlite_busy_timeout: Annotated[
        float, _describe("Seconds for which a write to SQLite waits while another process writes.")
    ] = 60.0
    host: Annotated[str, _describe("Address that `serve` binds to.")] = "127.0.0.1"
    port: Annotated[int, _describe("Port that `serve` listens on; 0 lets the system choose.")] = (
        8000
    )
    workers: Annotated[int, _describe("Number of server processes.")] = 1
    collect: Annotated[
        bool,
        _describe(
            "Let one of the server processes collect facts and import. `factbook worker` does so "
            "in any case."
        ),
    ] = True

    public_url: Annotated[
        str | None,
        _describe(
            "Address that clients use, e.g. `https://factbook.example.com`, when behind a proxy. "
            "Requests for its host are accepted."
        ),
    ] = None
    trusted_proxies: Annotated[
        list[str],
        _describe("Addresses or networks of proxies whose `X-Forwarded-For` header is trusted."),
    ] = []
    allowed_hosts: Annotated[
        list[str],
        _describe(
            "Host names to answer for, besides that of `public_url`. Empty: loopback names, and, "
            "unless bound to loopback, every address."
        ),
    ] = []
    allowed_origins: Annotated[
        list[str],
        _describe(
            "Browser origins that may call, and read answers by CORS, besides the host's own."
        ),
    ] = []

    push_word: Annotated[
        str, _describe("Path word of the push interface: `/api/catalog/<word>-entities`.")
    ] = "factbook"
    push_aliases: Annotated[
        list[str],
        _describe("Further path words, for clients written for another catalog's push interface."),
    ] = []
    annotation_domain: Annotated[
        str,
        _describe("Prefix of the annotation that names an entity's set: `<domain>/entity-set`."),
    ] = "factbook"
    entity_names: Annotated[
        Literal["lenient", "strict"],
        _describe(
            "`strict` restores the catalog API's rule for `metadata.name` of pushed entities."
        ),
    ] = "lenient"

    token_key: Annotated[
        str | None,
        _describe(
            "Secret that token hashes are keyed with, at least 32 characters. Required on "
            "PostgreSQL; "
            "on SQLite, a key file is created beside the database if it is not set."
        ),
    ] = None
    token_rate: Annotated[
        float, _describe("Requests a second that one token may make, sustained.")
    ] = 200.0
    token_burst: Annotated[int, _describe("Requests that one token may make at once.")] = 2_000
    failed_logins: Annotated[
        int, _describe("Failed authentications a minute that one address may make.")
    ] = 20

    max_requests: Annotated[
        int,
        _describe(
            "Reads that a process answers at the same time, and as many writes. Further ones wait "
            "for two seconds and then get 503."
        ),
    ] = 200
    max_body_bytes: Annotated[
        int,
        _describe(
            "Largest body of a push, in bytes. 0: 1,280 for each of `max_set_items`, but at least "
            "16 MiB."
        ),
    ] = 0
    max_set_items: Annotated[int, _describe("Most entities in one set.")] = 100_000
    max_json_depth: Annotated[int, _describe("Deepest nesting of JSON in a push.")] = 64
    max_entity_relations: Annotated[
        int, _describe("Most references in the `spec` of one entity.")
    ] = 10_000
    max_entity_labels: Annotated[int, _describe("Most labels of one entity.")] = 1_000
    max_entity_annotations: Annotated[
        int, _describe("Most annotations of one entity, besides those that the service adds.")
    ] = 1_000
    max_entity_tags: Annotated[int, _describe("Most tags of one entity.")] = 1_000
    max_entity_links: Annotated[int, _describe("Most links of one entity.")] = 1_000
    max_entity_values: Annotated[
        int, _describe("Most values in the JSON of one entity, each of which can be searched.")
    ] = 25_000
    people_sets: Annotated[
        list[str] | None,
        _describe(
            "Sets that are trusted about people: memberships that they state give the rights of "
            "groups, besides those of SCIM, LDIF, and a code host's own teams and members. Ids, or "
            "the beginning of ids before `*`; `/` for entities outside any set. Unset: none, and "
            "whoever lacks a right for it is listed as a warning."
        ),
    ] = None
    allowed_kinds: Annotated[
        dict[str, list[str]],
        _describe(
            'Table `[allowed_kinds]`, e.g. `"shop-*" = ["Component", "API"]`: the only kinds '
            "of entities that a set may hold, by its id or the beginning of ids before `*`. "
            "`import/github/*` limits an importer. A set that several rows name may hold the kinds "
            "of each."
        ),
    ] = {}
    revisions_kept: Annotated[int, _describe("Revisions of a set that are kept.")] = 50
    revision_days: Annotated[int, _describe("Days for which revisions of a set are kept.")] = 30
    removed_days: Annotated[
        int, _describe("Days for which a removed entity keeps its id and facts.")
    ] = 7
    audit_days: Annotated[
        int, _describe("Days for which audit records are kept; 0 keeps them forever.")
    ] = 365
    event_days: Annotated[
        int, _describe("Days for which events are kept: how long a reader of the feed may be away.")
    ] = 30
    check_days: Annotated[
        int, _describe("Days for which changes of checks and their daily counts are kept.")
    ] = 365
    exemption_days: Annotated[
        int,
        _describe(
            "Most days of an exemption from a check of which no scorecard says otherwise, by "
            "`maxDays` or `permanent`."
        ),
    ] = 365
    exemption_self_approval: Annotated[
        bool, _describe("Lets people approve the exemptions that they asked for themselves.")
    ] = False

    agent_writes: Annotated[
        bool,
        _describe(
            "Offers agents the tools that write: requests for exemptions, at "
            "`/api/mcp/v1/tech-insights-checks-manage` and as the toolset `checks-manage`."
        ),
    ] = False

    key_figures: Annotated[
        list[str],
        _describe(
            "Facts that the page of an entity shows first, up to eight: names of facts, or "
            "`SOURCE:FACT`. Empty: what fits the data sources that know the entity."
        ),
    ] = []

    integrations: Annotated[
        dict[str, dict[str, dict[str, Any]]],
        _describe(
            "Tables `[integrations.VENDOR.NAME]`, e.g. `[integrations.github.default]`, each with "
            "the options of its vendor. A single option is also the variable "
            "`FACTBOOK_INTEGRATIONS__VENDOR__NAME__OPTION`, which keeps secrets out of files."
        ),
    ] = {}
    importers: Annotated[
        dict[str, dict[str, dict[str, Any]]],
        _describe(
            "Tables `[importers.KIND.NAME]`, e.g. `[importers.github.default]`, each with the "
            "options of its kind. A single option is also the variable "
            "`FACTBOOK_IMPORTERS__KIND__NAME__OPTION`."
        ),
    ] = {}
    connections: Annotated[
        dict[str, dict[str, Any]],
        _describe(
            "Tables `[connections.NAME]`, which custom sources of type http call: `base_url`, "
            "`headers` (secret), `methods`, `at_once`, `shared_with`. A single option is also the "
            "variable `FACTBOOK_CONNECTIONS__NAME__OPTION`, `headers` as JSON."
        ),
    ] = {}
    openid: Annotated[
        dict[str, Any],
        _describe(
            "Table `[openid]` of the provider through which people sign in; see its options below. "
            "A single option is also the variable `FACTBOOK_OPENID__OPTION`. Empty: no provider."
        ),
    ] = {}
    group_roles: Annotated[
        dict[str, Any], _describe("Table `[group_roles]` of groups that have a role; see below.")
    ] = {}
    oauth: Annotated[
        dict[str, Any],
        _describe(
            "Table `[oauth]` of how agents sign in at `/mcp`; see its options below. A single "
            "option is also the variable `FACTBOOK_OAUTH__OPTION`. Empty: at this service itself."
        ),
    ] = {}
    outgoing_networks: Annotated[
        list[str],
        _describe(
            "Networks, e.g. `10.0.0.0/8`, that may be called besides public addresses, and the "
            "only ones without encryption. A proxy's address has to be in one too, unless it "
            "is public."
        ),
    ] = []
    outgoing_proxy: Annotated[
        str | None, _describe("Proxy for outgoing calls, e.g. `http://proxy.example.com:3128`.")
    ] = None
    outgoing_direct: Annotated[
        list[str],
        _describe("Host names that are called without the proxy, including their subdomains."),
    ] = []
    outgoing_ca_file: Annotated[
        str | None,
        _describe("PEM file of certificate authorities to trust in addition to the system's."),
    ] = None

    log_level: Annotated[
        Literal["debug", "info", "warning", "error"], _describe("Lowest level of events to log.")
    ] = "info"
    log_format: Annotated[Literal["json", "console"], _describe("Format of the log lines.")] = (
        "json"
    )
    traces: Annotated[
        bool,
        _describe(
            "Send traces over OTLP, as configured by OpenTelemetry's own variables (`OTEL_…`). "
            "Needs `factbook[traces]`."
        ),
    ] = False
    access_log: Annotated[
        bool,
        _describe(
            "Log a line `request` for each request, at the level info: method, route, status, "
            "time, address and caller, with the names of query parameters and not their values."
        ),
    ] = False

    def __repr__(self) -> str:
        """Representation without values, as some are secrets."""
        return "Settings(…)"

    def __post_init__(self) -> None:
        for name, least in _LEAST_VALUES.items():
            value = getattr(self, name)
            if value < least:
                raise ConfigurationError(f"{name} has to be at least {least}, not {value}.")
        check_database_url(self.database_url)
        if not self.max_body_bytes:
            most = max(_BYTES_PER_ITEM * self.max_set_items, _LEAST_BODY)
            msgspec.structs.force_setattr(self, "max_body_bytes", most)
        if self.port > _LAST_PORT:
            raise ConfigurationError(f"port has to be at most {_LAST_PORT}, not {self.port}.")
        if not self.token_rate > 0:
            raise ConfigurationError(f"token_rate has to be more than 0, not {self.token_rate}.")
        if self.token_key is not None and len(self.token_key) < 32:
            raise ConfigurationError("token_key has to have at least 32 characters.")
        if self.public_url and not self.public_url.startswith(("https://", "http://")):
            raise ConfigurationError("public_url has to begin with https:// or http://.")
        if self.outgoing_proxy and not self.outgoing_proxy.startswith(("https://", "http://")):
            raise ConfigurationError("outgoing_proxy has to begin with https:// or http://.")
        for network in self.outgoing_networks:
            try:
                ip_network(network)
            except ValueError as error:
                raise ConfigurationError(f"outgoing_networks: {error}.") from None
        for name, patterns in (
            ("people_sets", self.people_sets or ()),
            ("allowed_kinds", self.allowed_kinds),
        ):
            for pattern in patterns:
                if not pattern or "*" in pattern[:-1]:
                    raise ConfigurationError(
                        f"{name}: {pattern!r} is neither the id of a set nor the beginning of ids "
                        "before a *."
                    )


def check_database_url(url: str) -> None:
    """Raise ConfigurationError for an unsupported database, without quoting possible secrets."""
    if not url.startswith(_DATABASE_SCHEMES):
        raise ConfigurationError(
            "database_url has to start with sqlite:///, before the path of a file, or with "
            f"postgresql://, before USER@HOST/NAME, not with {url.partition(':')[0] or 'nothing'}."
        )


def load_settings(
    flags: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] = os.environ,
    path: Path = Path("factbook.toml"),
) -> Settings:
    """Load the settings in force.

    `FACTBOOK_CONFIG` names another file. Flags that are None count as not given. Raises
    ConfigurationError for an unknown name or a value of the wrong type, naming its origin.
    """
    values: dict[str, Any] = {}
    config = Path(environ.get("FACTBOOK_CONFIG", path))
    if config.exists():
        values |= _read_settings_file(config)
    elif "FACTBOOK_CONFIG" in environ:
        raise ConfigurationError(f"FACTBOOK_CONFIG names {config}, which does not exist.")
    values |= _read_environment(environ, values)
    values |= {name: value for name, value in (flags or {}).items() if value is not None}
    return Settings(**values)


def find_unknown_variables(environ: Mapping[str, str] = os.environ) -> dict[str, str | None]:
    """Find FACTBOOK_ variables that are no setting, each with the variable probably meant."""
    names = [name.upper() for name in Settings.__struct_fields__]
    tables = [name.upper() for name in TABLE_DEPTHS]
    found: dict[str, str | None] = {}
    for variable in sorted(environ):
        name = variable.removeprefix(_VARIABLE_PREFIX)
        table, between, options = name.partition("__")
        known = table in tables if between else name in names or name in _CLIENT_VARIABLES
        if name == variable or known or _SERVICE_LINK.fullmatch(name):
            continue
        import difflib  # noqa: PLC0415 - rarely needed, and every start would pay for it

        near = difflib.get_close_matches(table, tables if between else names, 1, _LEAST_LIKENESS)
        found[variable] = f"{_VARIABLE_PREFIX}{near[0]}{between}{options}" if near else None
    return found


def refuse_misspelled_variables(environ: Mapping[str, str] = os.environ) -> list[str]:
    """Return the FACTBOOK_ variables that are no setting.

    Raises ConfigurationError for variables that look misspelled, as a settings file does.
    """
    unknown = find_unknown_variables(environ)
    if misspelled := [f"{name} ({meant}?)" for name, meant in unknown.items() if meant]:
        raise ConfigurationError(
            "The environment has variables that are no settings but look like some. Correct or "
            f"remove them: {', '.join(misspelled)}."
        )
    return list(unknown)


def settings_environment(settings: Settings) -> dict[str, str]:
    """Format the settings as environment variables from which `load_settings` restores them."""
    variables: dict[str, str] = {}
    for name in Settings.__struct_fields__:
        value = getattr(settings, name)
        if isinstance(value, list):
            value = ",".join(value)
        elif isinstance(value, dict):
            value = msgspec.json.encode(value).decode()
        if value is not None:
            variables[f"FACTBOOK_{name.upper()}"] = str(value)
    return variables


def _read_settings_file(path: Path) -> dict[str, Any]:
    try:
        found = tomllib.loads(text_files.utf_8(path.read_bytes()).decode())
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits is no TOMLDecodeError
        raise ConfigurationError(f"{path} is not valid TOML: {error}") from None
    known = set(Settings.__struct_fields__)
    if unknown := sorted(set(found) - known):
        raise ConfigurationError(f"{path} has unknown settings: {', '.join(unknown)}.")
    return {
        name: _convert_setting(name, value, str(path), strict=True) for name, value in found.items()
    }


def _read_environment(environ: Mapping[str, str], given: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in Settings.__struct_fields__:
        variable = f"FACTBOOK_{name.upper()}"
        if variable in environ:
            found[name] = _convert_setting(name, environ[variable], variable, strict=False)
    for name, depth in TABLE_DEPTHS.items():
        whole = found.get(name, given.get(name, {}))
        if tables := _collect_options(name, depth, environ, whole):
            found[name] = tables
    return found


def _collect_options(
    setting: str, depth: int, environ: Mapping[str, str], given: Mapping[str, Any]
) -> dict[str, Any]:
    """Combine the tables of a setting with the options given as environment variables."""
    tables = _copy_tables(given, depth)
    prefix = f"FACTBOOK_{setting.upper()}__"
    for variable, text in environ.items():
        if not variable.startswith(prefix):
            continue
        parts = variable.removeprefix(prefix).lower().split("__")
        if len(parts) != depth or not all(parts):
            first = "KIND" if setting == "importers" else "VENDOR"
            form = "__".join((first, "NAME", "OPTION")[-depth:])
            raise ConfigurationError(f"{variable} is not of the form {prefix}{form}.")
        table = tables
        for part in parts[:-1]:
            table = table.setdefault(part, {})
        table[parts[-1]] = text
    return tables


def _copy_tables(tables: Mapping[str, Any], depth: int) -> dict[str, Any]:
    if depth == 1:
        return dict(tables)
    return {name: _copy_tables(table, depth - 1) for name, table in tables.items()}


def _convert_setting(name: str, value: Any, origin: str, *, strict: bool) -> Any:
    type_ = _setting_types()[name]
    if type_ in (list[str], list[str] | None) and isinstance(value, str):
        value = [part.strip() for part in value.split(",") if part.strip()]
    if get_origin(type_) is dict and isinstance(value, str):
        try:
            value = msgspec.json.decode(value)
        except (msgspec.DecodeError, RecursionError) as error:
            raise ConfigurationError(f"{origin} is not valid JSON: {error}") from None
    try:
        return msgspec.convert(value, type_, strict=strict)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"{name} from {origin}: {in_words(error, type_)}") from None


@cache
def _setting_types() -> Mapping[str, Any]:
    return get_type_hints(Settings)
