"""Settings, the key and the limits of the machine."""

import asyncio
import os
import resource
from collections.abc import Iterator, Mapping
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from factbook import text_files
from factbook.auth import encryption, tokens
from factbook.auth.encryption import NotOpenedError
from factbook.datasources import stores
from factbook.datasources.custom.sources import Unusable
from factbook.errors import ConfigurationError
from factbook.importers import importer_store
from factbook.operations.doctor.findings import Finding, ok, problem, warning
from factbook.settings import Settings
from factbook.settings.table import find_unknown_variables, load_settings
from factbook.storage import Database
from factbook.storage.database_url import sqlite_path
from factbook.webhooks import digests, store

CONFIGURATION: Final = "configuration"
# Of addresses only those with a password.
_SECRETS: Final = ("token_key", "database_url", "replica_url", "outgoing_proxy")
_SECRET_TABLES: Final = ("integrations", "importers", "connections", "openid")
_READABLE_BY_OTHERS: Final = 0o077

KEY: Final = "key"
_RESTORE: Final = "Put the key back that the database was written with, from the backup."

MACHINE: Final = "machine"
_LEAST_FILES: Final = 4_096
# What a process takes at first, and what the largest body of a push takes while it is read.
_PROCESS: Final = 150 * 2**20


def read_settings(
    flags: Mapping[str, object], environ: Mapping[str, str] = os.environ
) -> tuple[Settings | None, list[Finding]]:
    """The settings in force, None when they cannot be read, and the findings about them."""
    found = list(_unknown_variables(environ))
    try:
        settings = load_settings(flags, environ)
    except ConfigurationError as error:
        advice = "Fix it: `factbook serve` does not start with it."
        return None, [problem(CONFIGURATION, error.message, advice), *found]
    found += [
        *_exposed_address(settings),
        *_proxy_findings(settings),
        *_secrets_in_file(environ, settings),
    ]
    if not found:
        found = [ok(CONFIGURATION, "The settings can be read and go together.")]
    return settings, found


def _unknown_variables(environ: Mapping[str, str]) -> Iterator[Finding]:
    for variable, meant in find_unknown_variables(environ).items():
        what = f"The variable {variable} is no setting and is not read."
        if meant:
            yield problem(
                CONFIGURATION, what, f"`factbook serve` does not start with it. Is {meant} meant?"
            )
        else:
            yield warning(CONFIGURATION, what, "Remove it, or correct its name.")


def _exposed_address(settings: Settings) -> Iterator[Finding]:
    if not is_loopback_host(settings.host) and not (settings.public_url or settings.allowed_hosts):
        yield warning(
            CONFIGURATION,
            f"The service listens on {settings.host} and answers for no host name, only for "
            "addresses.",
            "Set public_url, or allowed_hosts, to the names that clients use.",
        )
    public = settings.public_url or ""
    if public.startswith("http://") and not is_loopback_host(urlsplit(public).hostname or ""):
        yield warning(
            CONFIGURATION,
            "public_url is http://, so tokens and passwords can be read on the way.",
            "Put a proxy with TLS before the service, and set public_url to its https:// address.",
        )
    if settings.openid and not public:
        yield warning(
            CONFIGURATION,
            "There is a provider to sign in at, and no public_url.",
            "Set public_url: the provider sends people back to an address below it.",
        )


def _proxy_findings(settings: Settings) -> Iterator[Finding]:
    if (settings.public_url or "").startswith("https://") and not settings.trusted_proxies:
        yield warning(
            CONFIGURATION,
            "No proxy is trusted, so the audit and the limit of failed logins see the proxy's own "
            "address.",
            "Set trusted_proxies to the addresses of the proxy that does TLS.",
        )
    for text in settings.trusted_proxies:
        try:
            everything = ip_network(text, strict=False).prefixlen == 0
        except ValueError:
            continue  # refused by the service itself
        if everything:
            yield problem(
                CONFIGURATION,
                f"trusted_proxies has {text}: anyone can claim any address.",
                "Name only the addresses of the proxies.",
            )


def _secrets_in_file(environ: Mapping[str, str], settings: Settings) -> Iterator[Finding]:
    """Check for a settings file with secrets that others may read."""
    file = Path(environ.get("FACTBOOK_CONFIG", "factbook.toml"))
    if not file.exists() or not file.stat().st_mode & _READABLE_BY_OTHERS:
        return
    text = text_files.utf_8(file.read_bytes()).decode()
    secrets = [name for name in _SECRETS if name in text]
    secrets += [name for name in _SECRET_TABLES if f"[{name}" in text]
    for name in ("database_url", "replica_url", "outgoing_proxy"):
        if name in secrets and not urlsplit(getattr(settings, name) or "").password:
            secrets.remove(name)
    if secrets:
        yield warning(
            CONFIGURATION,
            f"{file} has {', '.join(secrets)} and can be read by others.",
            f"chmod 600 {file}, or keep the secrets in variables.",
        )


def is_loopback_host(host: str) -> bool:
    """True if only this machine can reach the host."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def read_key(settings: Settings) -> tuple[bytes | None, Finding]:
    """The key in force, None without one; never creates it."""
    file: Path | None = None
    if settings.token_key is None and settings.database_url.startswith("sqlite:"):
        database = sqlite_path(settings.database_url)
        file = database.with_name(f"{database.name}.key")
        if not file.exists():
            if database.exists():
                what = f"There is no key file {file}, so no token that was made before works."
                return None, problem(KEY, what, _RESTORE)
            return None, ok(KEY, "There is no key yet: `factbook serve` makes one.")
    try:
        key = encryption.make_token_key(settings.token_key, file)
    except ConfigurationError as error:
        return None, problem(KEY, error.message, "The service does not start without it.")
    where = "token_key of the settings" if file is None else f"{file}, which is private"
    return key, ok(KEY, f"The key is {where}.")


async def check_key(database: Database, key: bytes) -> Finding:
    """Check that the key opens the sealed secrets of the database."""
    kept = await stores.open_connections(database, lambda: key)
    shut = [f"connection {name}" for name, one in kept.items() if isinstance(one, Unusable)]
    hooks = await store.list_sealed_targets(database)
    for id_, sealed in hooks.items():
        try:
            await asyncio.to_thread(store.open_target, key, id_, sealed)
        except NotOpenedError:
            shut.append(f"webhook {id_}")
    sent = await digests.list_sealed_addresses(database)
    for id_, address in sent.items():
        try:
            await asyncio.to_thread(digests.open_digest_address, key, id_, address)
        except NotOpenedError:
            shut.append(f"digest {id_}")
    rows = [row for row in await importer_store.list_importer_rows(database) if row[4] is not None]
    shut += [f"importer {row[0]}" for row in rows if not importer_store.opens_secrets(row, key)]
    if shut:
        what = f"Sealed under another key: {', '.join(shut)}. Tokens made then do not work either."
        return problem(KEY, what, _RESTORE)
    count = len(kept) + len(hooks) + len(sent) + len(rows)
    if count:
        return ok(KEY, f"It opens the {count} sealed secrets of the database.")
    return await _nothing_sealed(database)


async def _nothing_sealed(database: Database) -> Finding:
    made, used = await tokens.count_used_tokens(database)
    if made and not used:
        what = f"Nothing is sealed to try it on, and none of {made} tokens was ever used."
        return ok(KEY, what)
    return ok(KEY, "Nothing is sealed in the database that it could be tried on.")


def check_machine(settings: Settings) -> Iterator[Finding]:
    """Findings on the limits of this user; the service may run with others."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < _LEAST_FILES:
        what = f"A process may have {hard:,} files open, and each connection is one."
        yield warning(MACHINE, what, "Raise it: LimitNOFILE= in systemd, ulimit -n in a shell.")
    else:
        yield ok(MACHINE, "A process may have enough files open.")
    available = _available_memory()
    needed = settings.workers * _PROCESS
    if available is not None and available < needed:
        yield warning(
            MACHINE,
            f"{available / 2**20:,.0f} MiB of memory are free; {settings.workers} processes take "
            f"{needed / 2**20:,.0f} MiB and more with large pushes.",
            "Give the machine more memory, or run fewer processes.",
        )


def _available_memory(file: Path = Path("/proc/meminfo")) -> int | None:
    if not file.exists():
        return None
    for line in file.read_text("ascii").splitlines():
        name, _, rest = line.partition(":")
        if name == "MemAvailable":
            return int(rest.split()[0]) * 1024
    return None
