"""What REST answers about the classic rule of a branch."""

import msgspec


class Switch(msgspec.Struct, frozen=True):
    """A setting of REST."""

    enabled: bool = False


class RestReviews(msgspec.Struct):
    """Demands on reviews, in REST."""

    dismiss_stale_reviews: bool = False
    require_code_owner_reviews: bool = False
    require_last_push_approval: bool = False
    required_approving_review_count: int = 0


class RestChecks(msgspec.Struct):
    """Demands on status checks, in REST."""

    strict: bool = False


class RestRule(msgspec.Struct):
    """The classic rule of a branch, in REST; what is not demanded is left out."""

    enforce_admins: Switch = Switch()
    allow_deletions: Switch = Switch()
    required_linear_history: Switch = Switch()
    allow_force_pushes: Switch = Switch()
    block_creations: Switch = Switch()
    required_signatures: Switch = Switch()
    required_pull_request_reviews: RestReviews | None = None
    required_status_checks: RestChecks | None = None
