"""The settings: unreadable, unknown or inconsistent ones."""

import os
from collections.abc import Iterator, Mapping
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from factbook import text_files
from factbook.errors import ConfigurationError
from factbook.operations.doctor.findings import Finding, ok, problem, warning
from factbook.settings import Settings
from factbook.settings.table import find_unknown_variables, load_settings

TOPIC: Final = "configuration"
# Of addresses only those with a password.
_SECRETS: Final = ("token_key", "database_url", "replica_url", "outgoing_proxy")
_SECRET_TABLES: Final = ("integrations", "importers", "connections", "openid")
_READABLE_BY_OTHERS: Final = 0o077


def read(
    flags: Mapping[str, object], environ: Mapping[str, str] = os.environ
) -> tuple[Settings | None, list[Finding]]:
    """The settings in force, None when they cannot be read, and the findings about them."""
    found = list(_unknown(environ))
    try:
        settings = load_settings(flags, environ)
    except ConfigurationError as error:
        advice = "Fix it: `factbook serve` does not start with it."
        return None, [problem(TOPIC, error.message, advice), *found]
    found += [*_exposed(settings), *_proxied(settings), *_file(environ, settings)]
    if not found:
        found = [ok(TOPIC, "The settings can be read and go together.")]
    return settings, found


def _unknown(environ: Mapping[str, str]) -> Iterator[Finding]:
    for variable, meant in find_unknown_variables(environ).items():
        what = f"The variable {variable} is no setting and is not read."
        if meant:
            yield problem(
                TOPIC, what, f"`factbook serve` does not start with it. Is {meant} meant?"
            )
        else:
            yield warning(TOPIC, what, "Remove it, or correct its name.")


def _exposed(settings: Settings) -> Iterator[Finding]:
    if not is_loopback(settings.host) and not (settings.public_url or settings.allowed_hosts):
        yield warning(
            TOPIC,
            f"The service listens on {settings.host} and answers for no host name, only for "
            "addresses.",
            "Set public_url, or allowed_hosts, to the names that clients use.",
        )
    public = settings.public_url or ""
    if public.startswith("http://") and not is_loopback(urlsplit(public).hostname or ""):
        yield warning(
            TOPIC,
            "public_url is http://, so tokens and passwords can be read on the way.",
            "Put a proxy with TLS before the service, and set public_url to its https:// address.",
        )
    if settings.openid and not public:
        yield warning(
            TOPIC,
            "There is a provider to sign in at, and no public_url.",
            "Set public_url: the provider sends people back to an address below it.",
        )


def _proxied(settings: Settings) -> Iterator[Finding]:
    if (settings.public_url or "").startswith("https://") and not settings.trusted_proxies:
        yield warning(
            TOPIC,
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
                TOPIC,
                f"trusted_proxies has {text}: anyone can claim any address.",
                "Name only the addresses of the proxies.",
            )


def _file(environ: Mapping[str, str], settings: Settings) -> Iterator[Finding]:
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
            TOPIC,
            f"{file} has {', '.join(secrets)} and can be read by others.",
            f"chmod 600 {file}, or keep the secrets in variables.",
        )


def is_loopback(host: str) -> bool:
    """True if only this machine can reach the host."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
