"""Where the key of the service is."""

from pathlib import Path

from factbook.auth import tokens
from factbook.settings import Settings
from factbook.storage.database_url import sqlite_path


def token_key(settings: Settings) -> bytes:
    """The key of token hashes; on SQLite a file beside the database when it is not set.

    Raises ConfigurationError as `tokens.key` does.
    """
    url = settings.database_url
    file: Path | None = None
    if url.startswith("sqlite:"):
        database = sqlite_path(url)
        file = database.with_name(f"{database.name}.key")
    return tokens.key(settings.token_key, file)
