"""REST answers of the fake: what it says, in GitHub's own words, and with which status."""

import hashlib
import re
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote

from tests.fakes.github.state import CLASSIC, Repository, Token

UPGRADE = "Upgrade to GitHub Pro or make this repository public to enable this feature."


_KINDS = {
    "tree": re.compile(r"git/trees/([^/]+)"),
    "protection": re.compile(r"branches/([^/]+)/protection"),
    "contents": re.compile(r"contents/(.+)"),
    "alerts": re.compile(r"dependabot/(alerts)"),
}


class Said(NamedTuple):
    """A status and a JSON body; `link` is the path and query of the next page."""

    status: int
    body: Any
    link: str | None = None


def refusal(status: int, message: str) -> Said:
    """An error in GitHub's form."""
    return Said(status, {"message": message, "documentation_url": "https://docs.github.com/rest"})


NOT_FOUND = refusal(404, "Not Found")


def kind(resource: str) -> str:
    """What is asked about a repository, by the path below it."""
    fits = (name for name, pattern in _KINDS.items() if pattern.fullmatch(resource))
    return next(fits, "other")


def said(
    found: Repository, token: Token, resource: str, query: Mapping[str, str], most: int
) -> Said:
    """The answer to a question about a repository."""
    name = kind(resource)
    if name == "other":
        return NOT_FOUND
    match = _KINDS[name].fullmatch(resource)
    assert match
    wanted = unquote(match[1])
    if name == "tree":
        return tree(found, token, wanted, most, recursive="recursive" in query)
    if name == "protection":
        return protection(found, token, wanted)
    if name == "contents":
        return contents(found, token, wanted)
    return alerts(found, token, int(query.get("per_page", 30)), query.get("after", ""))


def tree(found: Repository, token: Token, sha: str, most: int, *, recursive: bool) -> Said:
    """`GET …/git/trees/{sha}`: of the commit or of a folder, cut off after `most` entries."""
    if not token.reads_contents:
        return refusal(403, f"Resource not accessible by {token.kind}")
    if found.is_empty:
        return refusal(409, "Git Repository is empty.")
    entries = _entries(found)
    folders = {_sha(found, path): path for path, type_ in entries.items() if type_ == "tree"}
    if sha not in {found.head, *folders}:
        return NOT_FOUND
    below = f"{folders[sha]}/" if sha in folders else ""
    inside = {
        path[len(below) :]: type_ for path, type_ in entries.items() if path.startswith(below)
    }
    if not recursive:
        inside = {path: type_ for path, type_ in inside.items() if "/" not in path}
    shown = [
        {"path": path, "mode": "100644", "type": type_, "sha": _sha(found, f"{below}{path}")}
        for path, type_ in sorted(inside.items())
    ]
    return Said(200, {"sha": sha, "tree": shown[:most], "truncated": len(shown) > most})


def _entries(found: Repository) -> dict[str, str]:
    """Everything in the tree by path: files, folders and submodules."""
    entries = dict.fromkeys(found.files, "blob") | dict.fromkeys(found.submodules, "commit")
    for path in list(entries):
        parts = path.split("/")
        entries |= {"/".join(parts[:depth]): "tree" for depth in range(1, len(parts))}
    return entries


def _sha(found: Repository, path: str) -> str:
    return hashlib.sha1(f"{found.id}/{path}".encode(), usedforsecurity=False).hexdigest()


def protection(found: Repository, token: Token, branch: str) -> Said:
    """`GET …/branches/{branch}/protection`."""
    if not token.administers:
        if token.is_app:
            return refusal(403, f"Resource not accessible by {token.kind}")
        return NOT_FOUND
    if not found.plan_has_protection:
        return refusal(403, UPGRADE)
    if branch != found.branch:
        return refusal(404, "Branch not found")
    if found.classic is None:
        return refusal(404, "Branch not protected")
    return Said(200, _rest_rule({**CLASSIC, **found.classic}))


def _rest_rule(rule: dict[str, Any]) -> dict[str, Any]:
    body: dict[str, Any] = {
        "enforce_admins": {"enabled": rule["isAdminEnforced"]},
        "allow_deletions": {"enabled": rule["allowsDeletions"]},
        "required_linear_history": {"enabled": rule["requiresLinearHistory"]},
        "allow_force_pushes": {"enabled": rule["allowsForcePushes"]},
        "block_creations": {"enabled": rule["blocksCreations"]},
        "required_signatures": {"enabled": rule["requiresCommitSignatures"]},
    }
    if rule["requiredApprovingReviewCount"] is not None:
        body["required_pull_request_reviews"] = {
            "dismiss_stale_reviews": rule["dismissesStaleReviews"],
            "require_code_owner_reviews": rule["requiresCodeOwnerReviews"],
            "require_last_push_approval": rule["requireLastPushApproval"],
            "required_approving_review_count": rule["requiredApprovingReviewCount"],
        }
    if rule["requiresStatusChecks"]:
        body["required_status_checks"] = {"strict": rule["requiresStrictStatusChecks"]}
    return body


def alerts(found: Repository, token: Token, first: int, after: str) -> Said:
    """`GET …/dependabot/alerts`: pages by cursor, without a total."""
    if not token.sees_alerts:
        return refusal(403, f"Resource not accessible by {token.kind}")
    if not found.has_alerts:
        return refusal(403, "Dependabot alerts are disabled for this repository.")
    states = [state for state, count in found.alerts.items() for _ in range(count)]
    everything = [
        {"number": number, "state": state.lower()} for number, state in enumerate(states, 1)
    ]
    start = int(after or 0)
    end = start + first
    link = f"dependabot/alerts?per_page={first}&after={end}" if end < len(everything) else None
    return Said(200, everything[start:end], link)


def contents(found: Repository, token: Token, path: str) -> Said:
    """`GET …/contents/{path}` of a file: its bytes where it has some, else what it is."""
    if not token.reads_contents:
        return refusal(403, f"Resource not accessible by {token.kind}")
    if path not in found.files:
        return NOT_FOUND
    if path in found.texts:
        return Said(200, found.texts[path])
    return Said(200, {"type": "file", "path": path, "sha": _sha(found, path)})
