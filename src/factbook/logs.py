"""Log lines: one JSON object each, or text for a person; never a secret."""

import logging
import re
import sys
from collections.abc import MutableMapping
from typing import Any

import structlog

from factbook.settings import Settings

# A token's value, and a password within a database URL, wherever they turn up.
_SECRETS = re.compile(
    r"fbk_[0-9A-Za-z]{8,}|(?<=://)[^\s/@]*:[^\s/@]+(?=@)|(?<=password=)[^\s&'\"]+", re.IGNORECASE
)


def configure(settings: Settings) -> None:
    """Send every log line, of libraries too, to standard error in the configured form."""
    level = logging.getLevelNamesMapping()[settings.log_level.upper()]
    renderer: Any = (
        structlog.processors.JSONRenderer()
        if settings.log_format == "json"
        else structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(),
            # The default shows the values of local variables.
            exception_formatter=structlog.dev.plain_traceback,
        )
    )
    shared: list[Any] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        redact,
    ]
    structlog.configure(
        processors=[*shared, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    logging.basicConfig(handlers=[handler], level=max(level, logging.INFO), force=True)


def redact(
    logger: object, method: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """The same event with secrets blotted out, however deep they lie."""
    for key, value in event.items():
        if not key.startswith("_"):  # what structlog keeps for itself
            event[key] = _redacted(value)
    return event


def without_secrets(text: str) -> str:
    """The same text with secrets blotted out."""
    return _SECRETS.sub("[redacted]", text)


def _redacted(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, dict):
        return {without_secrets(str(key)): _redacted(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_redacted(item) for item in value]
    return without_secrets(str(value))
