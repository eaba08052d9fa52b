"""The settings of the service: one table, read from a file, the environment and flags.

Later places win: the default, then `factbook.toml`, then `FACTBOOK_<NAME>` in the environment, then
a flag of the command line.
"""

import os
import tomllib
from collections.abc import Mapping
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import msgspec
from msgspec import Meta

from factbook.errors import ConfigurationError

MIB = 1024 * 1024

_LEAST = {
    "postgres_connections": 1,
    "port": 0,
    "workers": 1,
    "token_burst": 1,
    "failed_logins": 1,
    "max_body_bytes": 1,
    "max_set_items": 1,
    "max_json_depth": 1,
    "revisions_kept": 0,
    "revision_days": 0,
    "removed_days": 0,
}


def _about(*sentences: str) -> Meta:
    return Meta(description="".join(sentences))


# Settings that are tables, of which an option may be a variable too; how deep an option is.
_TABLES = {"integrations": 3, "connections": 2}


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Every setting with its type, meaning and default."""

    database_url: Annotated[
        str, _about("Where everything is stored: `sqlite:///PATH` or `postgresql://…`.")
    ] = "sqlite:///factbook.db"
    postgres_connections: Annotated[
        int, _about("Connections that a process holds to PostgreSQL.")
    ] = 8
    host: Annotated[str, _about("Address that `serve` binds to.")] = "127.0.0.1"
    port: Annotated[int, _about("Port that `serve` listens on; 0 lets the system choose.")] = 8000
    workers: Annotated[int, _about("Number of server processes.")] = 1
    collect: Annotated[
        bool,
        _about("Whether one of the server processes collects facts. `factbook worker` does, too."),
    ] = True

    public_url: Annotated[
        str | None,
        _about(
            "Address that clients use, e.g. `https://factbook.example.com`, when behind a proxy."
        ),
    ] = None
    trusted_proxies: Annotated[
        list[str],
        _about("Addresses or networks of proxies whose `X-Forwarded-For` header is believed."),
    ] = []
    allowed_hosts: Annotated[
        list[str],
        _about(
            "Host names to answer for. Empty: any, or only loopback names when bound to loopback."
        ),
    ] = []
    allowed_origins: Annotated[
        list[str], _about("Browser origins that may call, beside the host's own.")
    ] = []

    push_word: Annotated[
        str, _about("Path word of the push interface: `/api/catalog/<word>-entities`.")
    ] = "factbook"
    push_aliases: Annotated[
        list[str],
        _about("Further path words, for clients written for another catalog's push interface."),
    ] = []
    annotation_domain: Annotated[
        str,
        _about("Prefix of the annotation that names an entity's set: `<domain>/entity-set`."),
    ] = "factbook"
    entity_names: Annotated[
        Literal["lenient", "strict"],
        _about("`strict` restores the catalog API's rule for `metadata.name` of pushed entities."),
    ] = "lenient"

    token_key: Annotated[
        str | None,
        _about(
            "Secret that token hashes are keyed with, at least 32 characters. Required on "
            "PostgreSQL; "
            "on SQLite a file is generated beside the database when it is not set."
        ),
    ] = None
    token_rate: Annotated[
        float, _about("Requests a second that one token may make, sustained.")
    ] = 200.0
    token_burst: Annotated[int, _about("Requests that one token may make at once.")] = 2_000
    failed_logins: Annotated[
        int, _about("Failed authentications a minute that one address may make.")
    ] = 20

    max_body_bytes: Annotated[int, _about("Largest body of a push, in bytes.")] = 256 * MIB
    max_set_items: Annotated[int, _about("Most entities in one set.")] = 100_000
    max_json_depth: Annotated[int, _about("Deepest nesting of JSON in a push.")] = 64
    revisions_kept: Annotated[int, _about("Revisions of a set that are kept.")] = 50
    revision_days: Annotated[int, _about("Days for which revisions of a set are kept.")] = 30
    removed_days: Annotated[
        int, _about("Days for which a removed entity keeps its id and facts.")
    ] = 7

    integrations: Annotated[
        dict[str, dict[str, dict[str, Any]]],
        _about(
            "Tables `[integrations.VENDOR.NAME]`, e.g. `[integrations.github.default]`, each with "
            "the options of its vendor. A single option is also the variable "
            "`FACTBOOK_INTEGRATIONS__VENDOR__NAME__OPTION`, which keeps secrets out of files."
        ),
    ] = {}
    connections: Annotated[
        dict[str, dict[str, Any]],
        _about(
            "Tables `[connections.NAME]`, which custom sources of type http ask: `base_url`, "
            "`headers` (secret), `methods`, `at_once`. A single option is also the variable "
            "`FACTBOOK_CONNECTIONS__NAME__OPTION`, `headers` as JSON."
        ),
    ] = {}
    outgoing_networks: Annotated[
        list[str],
        _about(
            "Networks, e.g. `10.0.0.0/8`, that integrations may call beside public addresses, and "
            "the only ones without encryption. A proxy's address has to be in one too, unless it "
            "is public."
        ),
    ] = []
    outgoing_proxy: Annotated[
        str | None,
        _about("Proxy that integrations call through, e.g. `http://proxy.example.com:3128`."),
    ] = None
    outgoing_direct: Annotated[
        list[str],
        _about("Host names that are called without the proxy, each with the names below it."),
    ] = []
    outgoing_ca_file: Annotated[
        str | None,
        _about("File in PEM form of certificate authorities to trust beside the system's."),
    ] = None

    log_level: Annotated[
        Literal["debug", "info", "warning", "error"],
        _about("Least severe events that are logged."),
    ] = "info"
    log_format: Annotated[Literal["json", "console"], _about("Form of the log lines.")] = "json"

    def __repr__(self) -> str:
        """Without the values, of which some are secrets."""
        return "Settings(…)"

    def __post_init__(self) -> None:
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if value < least:
                raise ConfigurationError(f"{name} has to be at least {least}, not {value}.")
        if not self.token_rate > 0:
            raise ConfigurationError(f"token_rate has to be more than 0, not {self.token_rate}.")
        if self.token_key is not None and len(self.token_key) < 32:
            raise ConfigurationError("token_key has to have at least 32 characters.")
        if self.public_url and not self.public_url.startswith(("https://", "http://")):
            raise ConfigurationError("public_url has to begin with https:// or http://.")
        if self.outgoing_proxy and not self.outgoing_proxy.startswith(("https://", "http://")):
            raise ConfigurationError("outgoing_proxy has to begin with https:// or http://.")
        for network in self.outgoing_networks:
            _check_network(network)


def _check_network(text: str) -> None:
    try:
        ip_network(text)
    except ValueError as error:
        raise ConfigurationError(f"outgoing_networks: {error}.") from None


def load(
    flags: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] = os.environ,
    path: Path = Path("factbook.toml"),
) -> Settings:
    """The settings in force.

    `FACTBOOK_CONFIG` names another file. Flags that are None count as not given. Raises
    ConfigurationError for an unknown name or a value of the wrong type, naming where it came from.
    """
    values: dict[str, Any] = {}
    config = Path(environ.get("FACTBOOK_CONFIG", path))
    if config.exists():
        values |= _from_file(config)
    elif "FACTBOOK_CONFIG" in environ:
        raise ConfigurationError(f"FACTBOOK_CONFIG names {config}, which does not exist.")
    values |= _from_environment(environ, values)
    values |= {name: value for name, value in (flags or {}).items() if value is not None}
    return Settings(**values)


def environment(settings: Settings) -> dict[str, str]:
    """The settings as environment variables, from which `load` makes the same ones."""
    given = {name: getattr(settings, name) for name in Settings.__struct_fields__}
    return {
        f"FACTBOOK_{name.upper()}": _text(value)
        for name, value in given.items()
        if value is not None
    }


def _text(value: object) -> str:
    if isinstance(value, list):
        return ",".join(value)
    return msgspec.json.encode(value).decode() if isinstance(value, dict) else str(value)


def _from_file(path: Path) -> dict[str, Any]:
    try:
        found = tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path} is not valid TOML: {error}") from None
    known = set(Settings.__struct_fields__)
    if unknown := sorted(set(found) - known):
        raise ConfigurationError(f"{path} has unknown settings: {', '.join(unknown)}.")
    return {name: _convert(name, value, str(path), strict=True) for name, value in found.items()}


def _from_environment(environ: Mapping[str, str], given: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in Settings.__struct_fields__:
        variable = f"FACTBOOK_{name.upper()}"
        if variable in environ:
            found[name] = _convert(name, environ[variable], variable, strict=False)
    for name, depth in _TABLES.items():
        whole = found.get(name, given.get(name, {}))
        if tables := _with_options(name, depth, environ, whole):
            found[name] = tables
    return found


def _with_options(
    setting: str, depth: int, environ: Mapping[str, str], given: Mapping[str, Any]
) -> dict[str, Any]:
    """The tables of a setting, and in them the options that have a variable each."""
    tables = _copied(given, depth)
    prefix = f"FACTBOOK_{setting.upper()}__"
    for variable, text in environ.items():
        if not variable.startswith(prefix):
            continue
        parts = variable.removeprefix(prefix).lower().split("__")
        if len(parts) != depth or not all(parts):
            form = "__".join(("VENDOR", "NAME", "OPTION")[-depth:])
            raise ConfigurationError(f"{variable} is not of the form {prefix}{form}.")
        table = tables
        for part in parts[:-1]:
            table = table.setdefault(part, {})
        table[parts[-1]] = text
    return tables


def _copied(tables: Mapping[str, Any], depth: int) -> dict[str, Any]:
    if depth == 1:
        return dict(tables)
    return {name: _copied(table, depth - 1) for name, table in tables.items()}


def _json(text: str, origin: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise ConfigurationError(f"{origin} is not valid JSON: {error}") from None


def _convert(name: str, value: Any, origin: str, *, strict: bool) -> Any:
    type_ = get_type_hints(Settings)[name]
    if type_ == list[str] and isinstance(value, str):
        value = [part.strip() for part in value.split(",") if part.strip()]
    if name in _TABLES and isinstance(value, str):
        value = _json(value, origin)
    try:
        return msgspec.convert(value, type_, strict=strict)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"{name} from {origin}: {error}") from None
