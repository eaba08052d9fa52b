"""What the calls of a client came to, for the health of its source."""

from dataclasses import dataclass, field, replace


@dataclass(slots=True)
class Allowance:
    """What a host says is left of one of its limits; `reset_at` is in milliseconds."""

    limit: int
    remaining: int
    reset_at: int | None


@dataclass(slots=True)
class Health:
    """Counters since the client was made.

    `calls` are those that were sent, `not_modified` those that cost nothing, `held` requests that
    were not sent because of a rate limit, `resumes_at` when the last limit that was met allows the
    next call. `allowances` are by the budget's name. Times are in milliseconds.
    """

    calls: int = 0
    not_modified: int = 0
    held: int = 0
    resumes_at: int | None = None
    last_error: str = ""
    last_error_at: int | None = None
    credential_expires_at: int | None = None
    allowances: dict[str, Allowance] = field(default_factory=dict)

    def copy(self) -> "Health":
        """The counters as they are now."""
        allowances = {name: replace(found) for name, found in self.allowances.items()}
        return replace(self, allowances=allowances)
