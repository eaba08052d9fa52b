"""A report as one comment on the pull or merge request that a pipeline runs for.

The first run writes the comment and later ones replace it. It is found by an invisible mark, among
the comments of who writes it alone: anybody can copy the mark.
"""

import os
import re
from collections.abc import Iterator
from typing import Any, Final, Literal, NamedTuple

import httpx2

from factbook.cli import definition_files
from factbook.cli.failures import NOT_AUTHORISED, NOT_REACHABLE, CommandError
from factbook.errors import InputError

MARK: Final = "<!-- factbook: checks -->"
# GitHub takes 65,536 characters, GitLab more.
LONGEST: Final = 60_000
_CUT: Final = (
    "\n\n… The report is longer than a comment may be; the log of the pipeline has all of it.\n"
)
_PER_PAGE: Final = 100
_MOST_PAGES: Final = 30
_SECONDS: Final = 30


class Review(NamedTuple):
    """A pull or merge request: where its comments are, and how to ask for them."""

    comments: str
    headers: dict[str, str]
    # Where a comment is replaced, before its id, and by which method.
    replaced: str
    method: Literal["PATCH", "PUT"]
    # What tells the writer of a comment, and its value for the token in use.
    writer: tuple[str, str]
    identity: str | int | None = None
    me: str | None = None


def current() -> Review:
    """The request that this pipeline runs for; raises InputError where there is none."""
    if os.environ.get("GITHUB_ACTIONS"):
        return _on_github()
    if os.environ.get("GITLAB_CI"):
        return _on_gitlab()
    raise InputError("This is no pipeline of GitHub or GitLab: there is nothing to comment on.")


def _on_github() -> Review:
    match = re.fullmatch(r"refs/pull/(\d+)/\w+", os.environ.get("GITHUB_REF", ""))
    if match is None:
        raise InputError("GITHUB_REF names no pull request: run it for the event pull_request.")
    place = f"{_given('GITHUB_API_URL')}/repos/{_given('GITHUB_REPOSITORY')}/issues"
    headers = {
        "authorization": f"Bearer {_given('GITHUB_TOKEN')}",
        "accept": "application/vnd.github+json",
    }
    # The token of a job is an application, which nobody can be signed in as.
    writer, comments = ("user", "type"), f"{place}/{match[1]}/comments"
    return Review(comments, headers, f"{place}/comments", "PATCH", writer, "Bot")


def _on_gitlab() -> Review:
    api, number = _given("CI_API_V4_URL"), os.environ.get("CI_MERGE_REQUEST_IID", "")
    if not number.isdigit():
        raise InputError("CI_MERGE_REQUEST_IID is not set: run it in a pipeline of merge requests.")
    notes = f"{api}/projects/{_given('CI_PROJECT_ID')}/merge_requests/{number}/notes"
    headers = {"private-token": _given("FACTBOOK_COMMENT_TOKEN")}
    return Review(notes, headers, notes, "PUT", ("author", "id"), me=f"{api}/user")


def _given(name: str) -> str:
    """The value of a variable; raises InputError where it is missing."""
    value = os.environ.get(name, "").strip()
    if not value:
        raise InputError(f"{name} is not set.")
    return value.rstrip("/")


def read(file: str) -> str:
    """The report in a file, `-` being standard input; raises InputError for none."""
    try:
        report = definition_files.content(file).decode(errors="replace")
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}.") from None
    if not report.strip():
        raise InputError(f"{file} is empty: there is nothing to comment.")
    return report


def body(report: str) -> str:
    """The text of the comment."""
    text = f"{MARK}\n{report.strip()}\n"
    return text if len(text) <= LONGEST else f"{text[: LONGEST - len(_CUT)]}{_CUT}"


def write(review: Review, report: str, transport: httpx2.BaseTransport | None = None) -> str:
    """Write the comment, or replace it where it differs; returns what was done.

    Raises CommandError where the code host refuses or does not answer.
    """
    text = body(report)
    with httpx2.Client(headers=review.headers, timeout=_SECONDS, transport=transport) as http:
        if review.me is not None:
            review = review._replace(identity=_asked(http, "GET", review.me)["id"])
        mine = next(_mine(http, review), None)
        if mine is None:
            _asked(http, "POST", review.comments, {"body": text})
            return "written"
        if mine["body"].strip() == text.strip():
            return "unchanged"
        _asked(http, review.method, f"{review.replaced}/{mine['id']}", {"body": text})
        return "replaced"


def _mine(http: httpx2.Client, review: Review) -> Iterator[dict[str, Any]]:
    """Comments with the mark that the token in use has written."""
    who, what = review.writer
    for page in range(1, _MOST_PAGES + 1):
        found = _asked(http, "GET", f"{review.comments}?per_page={_PER_PAGE}&page={page}")
        for one in found:
            if one["body"].startswith(MARK) and one[who][what] == review.identity:
                yield one
        if len(found) < _PER_PAGE:
            return


def _asked(
    http: httpx2.Client, method: str, address: str, given: dict[str, str] | None = None
) -> Any:
    """The JSON that the code host answers; raises CommandError."""
    host = httpx2.URL(address).host
    try:
        answer = http.request(method, address, json=given)
    except httpx2.RequestError as error:
        raise CommandError(f"{host} does not answer: {error}", NOT_REACHABLE) from None
    if answer.status_code in (401, 403):
        raise CommandError(
            f"{host} does not let this token comment ({answer.status_code}).",
            NOT_AUTHORISED,
            hint="A job of GitHub needs the permission pull-requests: write; at GitLab, "
            "FACTBOOK_COMMENT_TOKEN needs the scope api. Requests of forks have neither.",
        )
    if not answer.is_success:
        raise CommandError(f"{host} answered {answer.status_code} to a comment.")
    return answer.json()
