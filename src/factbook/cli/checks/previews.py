"""Changes that checks in files would make, as text or as Markdown for a pull request."""

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from factbook.cli.checks.files import ReadDocument
from factbook.cli.output import age_members, as_of
from factbook.client import Client
from factbook.client.calls import send
from factbook.schemas.results import Preview, PreviewedResult

_PREVIEW: Final = "/api/tech-insights/v1/checks/preview"
_MOST: Final = 500
_MOST_SHOWN: Final = 20


class FilePreview(NamedTuple):
    """A check of a file, and what it would change."""

    id: str
    preview: Preview

    @property
    def failures(self) -> list[PreviewedResult]:
        """The entities that would fail and do not fail now, as far as they are listed."""
        return [one for one in self.preview.entities if one.then == "fail" != one.now]

    def as_json(self) -> dict[str, Any]:
        """The preview in the form of `--json`."""
        return {
            "id": self.id,
            "changed": self.preview.changed,
            "failingNow": self.preview.now.failing,
            "failingThen": self.preview.then.failing,
            **age_members(self.preview),
            "newFailures": [one.entity_ref for one in self.failures],
        }


def asked(
    client: Client, read: Sequence[ReadDocument], entities: Sequence[str]
) -> list[FilePreview]:
    """Changes by each check of the files, for all entities or for some."""
    about = {"entities": list(entities)} if entities else {}
    checks = [one for one in read if one.kind == "check"]
    return [
        FilePreview(
            one.id,
            client.send(
                send(
                    "POST", _PREVIEW, Preview, {"definition": one.document, "limit": _MOST, **about}
                )
            ),
        )
        for one in checks
    ]


def lines(found: Sequence[FilePreview]) -> Iterator[str]:
    """The previews as text."""
    for one in found:
        yield f"{one.id}: {_counts(one)}"
        for result in one.preview.entities[:_MOST_SHOWN]:
            told = f": {result.message}" if result.message else ""
            yield f"  {result.entity_ref}: {result.now} → {result.then}{told}"
        more = one.preview.changed - _MOST_SHOWN
        if more > 0:
            yield f"  and {more:,} more"


def markdown(found: Sequence[FilePreview]) -> Iterator[str]:
    """The previews as a comment on a pull request."""
    yield "| Check | Results that change | Fail now | Would fail |"
    yield "| --- | --- | --- | --- |"
    for one in found:
        now, then = one.preview.now.failing, one.preview.then.failing
        yield f"| `{one.id}` | {one.preview.changed:,} | {now:,} | {then:,} |"
    for one in found:
        if not one.preview.entities:
            continue
        yield f"\n**{one.id}**\n"
        for result in one.preview.entities[:_MOST_SHOWN]:
            # A back quote would end the quotation, and begin Markdown of somebody else's.
            ref = result.entity_ref.replace("`", "'")
            yield f"- `{ref}`: {result.now} → {result.then}"
        more = one.preview.changed - _MOST_SHOWN
        if more > 0:
            yield f"- and {more:,} more"


def _counts(one: FilePreview) -> str:
    now, then = one.preview.now.failing, one.preview.then.failing
    noun = "result" if one.preview.changed == 1 else "results"
    counts = f"{one.preview.changed:,} {noun} would change; {now:,} fail now, {then:,} would"
    return f"{counts}{as_of(one.preview)}"
