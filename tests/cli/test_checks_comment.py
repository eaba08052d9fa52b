"""`factbook checks comment`: one comment on a pull or merge request."""

from collections.abc import Callable
from pathlib import Path

import httpx2
import pytest
from typer.testing import CliRunner, Result

from factbook.cli.commands import app
from factbook.cli.pipelines import LONGEST, MARK
from tests.cli.code_reviews import GITHUB, GITLAB, PULL, TOKEN, CodeReviews

OF_GITHUB = {
    "GITHUB_ACTIONS": "true",
    "GITHUB_API_URL": GITHUB,
    "GITHUB_REPOSITORY": "acme/shop",
    "GITHUB_REF": "refs/pull/7/merge",
    "GITHUB_TOKEN": TOKEN,
}
OF_GITLAB = {
    "GITLAB_CI": "true",
    "CI_API_V4_URL": GITLAB,
    "CI_PROJECT_ID": "42",
    "CI_MERGE_REQUEST_IID": "7",
    "FACTBOOK_COMMENT_TOKEN": TOKEN,
}
Comment = Callable[..., Result]


@pytest.fixture
def reviews() -> CodeReviews:
    return CodeReviews()


@pytest.fixture
def comment(reviews: CodeReviews, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Comment:
    """Comments a text in a pipeline with these variables."""
    monkeypatch.chdir(tmp_path)
    for name in {*OF_GITHUB, *OF_GITLAB}:
        monkeypatch.delenv(name, raising=False)

    def run(text: str, variables: dict[str, str]) -> Result:
        transport = httpx2.MockTransport(reviews)
        arguments = ["checks", "comment", "-"]
        return CliRunner().invoke(app, arguments, input=text, obj=transport, env=variables)

    return run


HOSTS = pytest.mark.parametrize("variables", [OF_GITHUB, OF_GITLAB], ids=["github", "gitlab"])


@HOSTS
@pytest.mark.spec("pipelines.one-comment")
def test_a_second_report_takes_the_place_of_the_first(
    comment: Comment, reviews: CodeReviews, variables: dict[str, str]
) -> None:
    reviews.add("Looks good.")
    assert comment("Two fail.", variables).output == "The comment is written.\n"
    assert comment("None fails.", variables).output == "The comment is replaced.\n"
    assert [one["body"] for one in reviews.comments] == ["Looks good.", f"{MARK}\nNone fails.\n"]


@HOSTS
def test_the_same_report_writes_nothing(
    comment: Comment, reviews: CodeReviews, variables: dict[str, str]
) -> None:
    comment("None fails.", variables)
    assert comment("None fails.\n", variables).output == "The comment is unchanged.\n"
    assert len(reviews.writes) == 1


@HOSTS
def test_a_person_who_copies_the_mark_does_not_become_the_writer(
    comment: Comment, reviews: CodeReviews, variables: dict[str, str]
) -> None:
    reviews.add(f"{MARK}\nAll is well, trust me.")
    assert comment("Two fail.", variables).output == "The comment is written.\n"
    assert len(reviews.comments) == 2
    assert "trust me" in reviews.comments[0]["body"]


@HOSTS
def test_a_comment_on_a_later_page_is_found(
    comment: Comment, reviews: CodeReviews, variables: dict[str, str]
) -> None:
    for number in range(250):
        reviews.add(f"{number}")
    comment("Two fail.", variables)
    for number in range(60):
        reviews.add(f"{number}")
    assert comment("None fails.", variables).output == "The comment is replaced.\n"
    assert sum(MARK in one["body"] for one in reviews.comments) == 1


@HOSTS
def test_a_long_report_is_cut_and_says_so(
    comment: Comment, reviews: CodeReviews, variables: dict[str, str]
) -> None:
    comment("x" * 200_000, variables)
    [one] = reviews.comments
    assert len(one["body"]) == LONGEST
    assert "longer than a comment may be" in one["body"]


@HOSTS
@pytest.mark.parametrize(("status", "code"), [(401, 3), (403, 3), (404, 1), (502, 1)])
def test_a_refusal_is_told_without_the_token(
    comment: Comment, reviews: CodeReviews, variables: dict[str, str], status: int, code: int
) -> None:
    reviews.refusal = status
    result = comment("Two fail.", variables)
    assert result.exit_code == code
    assert str(status) in result.output
    assert TOKEN not in result.output


def test_a_host_that_does_not_answer_is_told(comment: Comment, reviews: CodeReviews) -> None:
    reviews.broken = True
    result = comment("Two fail.", OF_GITHUB)
    assert (result.exit_code, "api.github.test does not answer" in result.output) == (4, True)


def test_what_is_missing_is_named_before_anything_is_asked(
    comment: Comment, reviews: CodeReviews, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[dict[str, str], str]] = [
        ({}, "This is not a GitHub or GitLab pipeline"),
        (OF_GITHUB | {"GITHUB_REF": "refs/heads/main"}, "names no pull request"),
        (OF_GITHUB | {"GITHUB_TOKEN": " "}, "GITHUB_TOKEN is not set"),
        (OF_GITLAB | {"CI_MERGE_REQUEST_IID": "7/notes"}, "CI_MERGE_REQUEST_IID is not set"),
        (OF_GITLAB | {"FACTBOOK_COMMENT_TOKEN": ""}, "FACTBOOK_COMMENT_TOKEN is not set"),
    ]
    for variables, message in cases:
        with subtests.test(message=message):
            result = comment("Two fail.", variables)
            assert (result.exit_code, message in result.output) == (2, True), result.output
            assert reviews.asked == []


def test_an_empty_report_is_refused(comment: Comment, reviews: CodeReviews) -> None:
    result = comment("\n", OF_GITHUB)
    assert (result.exit_code, "nothing to post" in result.output) == (2, True)
    assert reviews.asked == []


def test_a_comment_goes_to_the_pull_request_of_the_pipeline(
    comment: Comment, reviews: CodeReviews
) -> None:
    comment("Two fail.", OF_GITHUB)
    assert reviews.writes == [("POST", PULL)]
