"""Logs: each line is a JSON object, or text for a person, and never contains a secret."""

import logging
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager, suppress
from typing import Any, TextIO, cast

import structlog

from factbook.settings import Settings

# A token's value, and a password in a database URL, anywhere in a text.
_SECRETS = re.compile(
    r"fbk_[0-9A-Za-z]{8,}|(?<=://)[^\s/@]*:[^\s/@]+(?=@)|(?<=password=)[^\s&'\"]+", re.IGNORECASE
)


def configure_logs(
    settings: Settings, ids: Callable[[], Mapping[str, str]] = dict, *, for_good: bool = True
) -> None:
    """Send every log line, including those of libraries, to standard error in the configured form.

    `ids` returns the trace ids to add to each line. `for_good` is faster, but can't be undone in
    this process.
    """
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

    def add_ids(
        logger: object, method: str, event: MutableMapping[str, Any]
    ) -> MutableMapping[str, Any]:
        event.update(ids())
        return event

    shared: list[Any] = [
        add_ids,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        redact_event,
    ]
    structlog.configure(
        processors=[*shared, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        # Writes each line in one piece, as processes share the file; structlog's print logger
        # writes the line end separately if PYTHONUNBUFFERED is set.
        logger_factory=structlog.WriteLoggerFactory(cast(TextIO, _Patient(sys.stderr))),
        cache_logger_on_first_use=for_good,
    )
    # A standard handler reports its own errors; one raised in our processors would propagate.
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(LineBound())
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    logging.basicConfig(handlers=[handler], level=max(level, logging.INFO), force=True)


@contextmanager
def configure_logs_within(
    settings: Settings, ids: Callable[[], Mapping[str, str]] = dict
) -> Iterator[None]:
    """Log in the configured form inside the block and restore the previous form after it."""
    before, root = structlog.get_config(), logging.root
    handlers, level = root.handlers[:], root.level
    # `force` would close them.
    root.handlers.clear()
    configure_logs(settings, ids, for_good=False)
    try:
        yield
    finally:
        structlog.configure(**before)
        root.handlers[:] = handlers
        root.setLevel(level)


class LineBound(logging.Filter):
    """Log filter that passes at most `most` lines per logger, level and minute; counts the rest.

    Anyone who can open a connection may be able to make a library log a line.
    """

    def __init__(self, most: int = 60, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._most = most
        self._clock = clock
        self._lines: dict[tuple[str, int], tuple[int, int]] = {}  # the minute, and its lines

    def filter(self, record: logging.LogRecord) -> bool:
        """Pass or drop a line; the last line of a minute says so, the next one counts the rest."""
        key, now = (record.name, record.levelno), int(self._clock() // 60)
        minute, lines = self._lines.get(key, (now, 0))
        left_out = lines - self._most
        lines = lines + 1 if minute == now else 1
        self._lines[key] = (now, lines)
        if minute != now and left_out > 0:
            _append_note(record, f"{left_out} lines of this kind were left out before")
        elif lines == self._most:
            _append_note(record, "more lines of this kind are left out for up to a minute")
        return lines <= self._most


def _append_note(record: logging.LogRecord, note: str) -> None:
    record.msg, record.args = f"{record.getMessage()} ({note})", None


class _Patient:
    """Stream that ignores write errors, such as those of a full disk."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> None:
        with suppress(OSError, ValueError):
            self._stream.write(text)

    def flush(self) -> None:
        with suppress(OSError, ValueError):
            self._stream.flush()


@contextmanager
def silence_logs() -> Iterator[None]:
    """Silence the logs inside the block, for a command that reports its own findings."""
    before, disabled = structlog.get_config(), logging.root.manager.disable
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        structlog.configure(**before)
        logging.disable(disabled)


def redact_event(
    logger: object, method: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """Redact secrets in an event at any depth."""
    for key, value in event.items():
        if not key.startswith("_"):  # structlog's own members
            event[key] = _redact_value(value)
    return event


def redact_text(text: str) -> str:
    """Redact secrets in a text."""
    return _SECRETS.sub("[redacted]", text)


def _redact_value(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, dict):
        return {redact_text(str(key)): _redact_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_redact_value(item) for item in value]
    return redact_text(str(value))
