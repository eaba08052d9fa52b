"""Commands for pipelines: checking for a required level, and commenting on a pull request."""

import os
import re
from collections.abc import Iterator
from typing import Any, Final, Literal, NamedTuple

import httpx2

from factbook.cli import definitions
from factbook.cli.command_parts import (
    NOT_AUTHORISED,
    NOT_REACHABLE,
    CommandError,
    age_members,
    as_of,
    say,
)
from factbook.client import Client
from factbook.client.calls import get_call, segment
from factbook.errors import InputError
from factbook.schemas.checks import ShownScorecard
from factbook.schemas.results import NextSteps

_SCORECARDS_PATH = "/api/tech-insights/v1"

MARK: Final = "<!-- factbook: checks -->"
# GitHub accepts 65,536 characters, GitLab more.
LONGEST: Final = 60_000
_CUT: Final = (
    "\n\n… The report is longer than a comment may be; the log of the pipeline has all of it.\n"
)
_PER_PAGE: Final = 100
_MOST_PAGES: Final = 30
_SECONDS: Final = 30


class GateResult(NamedTuple):
    """Standing of an entity, and whether it has the required level."""

    standing: NextSteps
    wanted: str
    passed: bool

    def as_json(self) -> dict[str, Any]:
        """The result in the form of `--json`."""
        return {
            "entityRef": self.standing.entity_ref,
            "scorecardId": self.standing.scorecard_id,
            "wanted": self.wanted,
            "level": self.standing.level,
            "levelIfKnown": self.standing.level_if_known,
            "passed": self.passed,
            **age_members(self.standing),
            "missing": [
                {"checkId": one.check_id, "state": one.state, "level": one.level}
                for one in self.standing.steps
            ],
        }


def check_gate(
    client: Client, entity: str, scorecard: str, wanted: str, *, if_known: bool
) -> GateResult:
    """Check an entity's level; raises InputError for a level the scorecard doesn't have."""
    path = segment(scorecard)
    shown = client.send(get_call(f"{_SCORECARDS_PATH}/scorecards/{path}", ShownScorecard))
    levels = [str(one["id"]) if isinstance(one, dict) else str(one) for one in shown.levels or []]
    if wanted not in levels:
        there = ", ".join(levels) or "none"
        raise InputError(f"{scorecard} has no level {wanted}; its levels: {there}.")
    call = get_call(
        f"{_SCORECARDS_PATH}/scorecard-results/{path}/next-steps", NextSteps, entity=entity
    )
    standing = client.send(call)
    level = standing.level_if_known if if_known else standing.level
    passed = level is not None and levels.index(level) >= levels.index(wanted)
    return GateResult(standing, wanted, passed)


def print_gate(result: GateResult) -> None:
    """Print the level, and the steps to the next one."""
    standing = result.standing
    level, best = standing.level or "no level", standing.level_if_known or "no level"
    known = "" if best == level else f", {best} once everything is known"
    say(f"{standing.entity_ref}: {level} of {standing.scorecard_id}{known}{as_of(standing)}")
    for one in standing.steps if not result.passed else ():
        told = f": {one.message}" if one.message else ""
        say(f"  {one.state}: {one.title} ({one.check_id}){told}")


class Review(NamedTuple):
    """A pull or merge request: the address of its comments, and how to call it."""

    comments: str
    headers: dict[str, str]
    # Address for replacing a comment, without the comment id, and the method.
    replaced: str
    method: Literal["PATCH", "PUT"]
    # Member of a comment that identifies its author, and the value for this token.
    writer: tuple[str, str]
    identity: str | int | None = None
    me: str | None = None


def current_review() -> Review:
    """Find the pull or merge request of this pipeline; raises InputError without one."""
    if os.environ.get("GITHUB_ACTIONS"):
        return _github_review()
    if os.environ.get("GITLAB_CI"):
        return _gitlab_review()
    raise InputError("This is not a GitHub or GitLab pipeline: there is nothing to comment on.")


def _github_review() -> Review:
    match = re.fullmatch(r"refs/pull/(\d+)/\w+", os.environ.get("GITHUB_REF", ""))
    if match is None:
        raise InputError("GITHUB_REF names no pull request: run it for the event pull_request.")
    place = f"{_read_variable('GITHUB_API_URL')}/repos/{_read_variable('GITHUB_REPOSITORY')}/issues"
    headers = {
        "authorization": f"Bearer {_read_variable('GITHUB_TOKEN')}",
        "accept": "application/vnd.github+json",
    }
    # A job's token acts as an app, which no person can sign in as.
    writer, comments = ("user", "type"), f"{place}/{match[1]}/comments"
    return Review(comments, headers, f"{place}/comments", "PATCH", writer, "Bot")


def _gitlab_review() -> Review:
    api, number = _read_variable("CI_API_V4_URL"), os.environ.get("CI_MERGE_REQUEST_IID", "")
    if not number.isdigit():
        raise InputError("CI_MERGE_REQUEST_IID is not set: run it in a pipeline of merge requests.")
    notes = f"{api}/projects/{_read_variable('CI_PROJECT_ID')}/merge_requests/{number}/notes"
    headers = {"private-token": _read_variable("FACTBOOK_COMMENT_TOKEN")}
    return Review(notes, headers, notes, "PUT", ("author", "id"), me=f"{api}/user")


def _read_variable(name: str) -> str:
    """Read an environment variable; raises InputError if it is missing."""
    value = os.environ.get(name, "").strip()
    if not value:
        raise InputError(f"{name} is not set.")
    return value.rstrip("/")


def read_report(file: str) -> str:
    """Read a report from a file, or `-` for standard input; raises InputError if empty."""
    try:
        report = definitions.file_content(file).decode(errors="replace")
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}.") from None
    if not report.strip():
        raise InputError(f"{file} is empty: there is nothing to post.")
    return report


def comment_body(report: str) -> str:
    """Make the text of the comment, with its mark, and cut if too long."""
    text = f"{MARK}\n{report.strip()}\n"
    return text if len(text) <= LONGEST else f"{text[: LONGEST - len(_CUT)]}{_CUT}"


def write_comment(
    review: Review, report: str, transport: httpx2.BaseTransport | None = None
) -> str:
    """Write the comment, or replace it if it differs; returns what was done.

    Raises CommandError if the code host refuses or doesn't answer.
    """
    text = comment_body(report)
    with httpx2.Client(headers=review.headers, timeout=_SECONDS, transport=transport) as http:
        if review.me is not None:
            review = review._replace(identity=_call_code_host(http, "GET", review.me)["id"])
        mine = next(_find_comment(http, review), None)
        if mine is None:
            _call_code_host(http, "POST", review.comments, {"body": text})
            return "written"
        if mine["body"].strip() == text.strip():
            return "unchanged"
        _call_code_host(http, review.method, f"{review.replaced}/{mine['id']}", {"body": text})
        return "replaced"


def _find_comment(http: httpx2.Client, review: Review) -> Iterator[dict[str, Any]]:
    """Iterate over comments with the mark that this token wrote."""
    who, what = review.writer
    for page in range(1, _MOST_PAGES + 1):
        found = _call_code_host(http, "GET", f"{review.comments}?per_page={_PER_PAGE}&page={page}")
        for one in found:
            if one["body"].startswith(MARK) and one[who][what] == review.identity:
                yield one
        if len(found) < _PER_PAGE:
            return


def _call_code_host(
    http: httpx2.Client, method: str, address: str, given: dict[str, str] | None = None
) -> Any:
    """Call the code host and decode its JSON answer; raises CommandError."""
    host = httpx2.URL(address).host
    try:
        answer = http.request(method, address, json=given)
    except httpx2.RequestError as error:
        raise CommandError(f"{host} does not answer: {error}", NOT_REACHABLE) from None
    if answer.status_code in (401, 403):
        raise CommandError(
            f"{host} does not allow this token to comment ({answer.status_code}).",
            NOT_AUTHORISED,
            hint="A GitHub job needs the permission pull-requests: write; at GitLab, "
            "FACTBOOK_COMMENT_TOKEN needs the scope api. Requests of forks have neither.",
        )
    if not answer.is_success:
        raise CommandError(f"{host} answered {answer.status_code} to a comment.")
    return answer.json()
