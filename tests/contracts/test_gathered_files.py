"""Catalog files of others are gathered by their manifest, and what differs is not taken."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.requests import Request
from starlette.responses import Response

from tests.contracts import catalog_files
from tests.contracts.catalog_files import CatalogFile, differing, main, manifest
from tests.fakes.fake import Fake
from tests.fakes.serving import served

COMMIT = "1" * 40
TEXTS = {"catalog-info.yaml": b"kind: API\n", "a b/${{x}}.yaml": b"kind: Group\n"}


class RawFiles(Fake):
    """A host with the files of a repository at a commit."""

    def __init__(self) -> None:
        super().__init__()
        self.files = {f"/acme/shop/{COMMIT}/{path}": text for path, text in TEXTS.items()}

    def kind(self, request: Request) -> str:
        """The path."""
        return request.url.path

    async def answer(self, request: Request) -> Response:
        """The file, or that there is none."""
        content = self.files.get(request.scope["path"])
        return Response(status_code=404) if content is None else Response(content)


@pytest.fixture
def listed(tmp_path: Path) -> Path:
    """A manifest."""
    files = {path: hashlib.sha256(text).hexdigest() for path, text in TEXTS.items()}
    file = tmp_path / "manifest.json"
    file.write_text(json.dumps([{"repository": "acme/shop", "commit": COMMIT, "files": files}]))
    return file


@pytest.fixture
def host() -> RawFiles:
    return RawFiles()


@pytest.fixture
def url(host: RawFiles) -> Iterator[str]:
    with served(host) as address:
        yield address


def test_every_file_is_fetched_once(tmp_path: Path, listed: Path, host: RawFiles, url: str) -> None:
    arguments = [str(tmp_path / "files"), "--host", url, "--manifest", str(listed)]
    assert (main(arguments), main(arguments)) == (0, 0)
    assert host.requests == Counter(host.files.keys())
    for path, text in TEXTS.items():
        assert (tmp_path / "files" / "acme/shop" / path).read_bytes() == text
    assert differing(tmp_path / "files", manifest(listed)) == []


def test_what_is_missing_or_another_is_told_and_not_written(
    tmp_path: Path, listed: Path, host: RawFiles, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    gone, changed = host.files
    del host.files[gone]
    host.files[changed] = b"kind: User\n"
    folder = tmp_path / "files"
    assert main([str(folder), "--host", url, "--manifest", str(listed)]) == 1
    told = capsys.readouterr()
    assert "catalog-info.yaml: the host answers 404" in told.err
    assert "x%7D%7D.yaml: the content is another one" in told.err
    assert told.out == "0 of 2 files are there\n"
    assert not folder.exists()


def test_a_host_that_cannot_be_reached_is_told(
    tmp_path: Path, listed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [str(tmp_path / "files"), "--host", "http://127.0.0.1:1", "--manifest", str(listed)]
    assert main(arguments) == 1
    assert capsys.readouterr().err.count("acme/shop") == 2


def test_a_file_that_differs_is_one_that_is_missing(tmp_path: Path, listed: Path) -> None:
    files = manifest(listed)
    [first, *_] = files
    first.within(tmp_path).parent.mkdir(parents=True)
    first.within(tmp_path).write_bytes(b"kind: Domain\n")
    assert differing(tmp_path, files) == files


def test_the_manifest_names_each_place_once_and_stays_in_the_directory() -> None:
    files = manifest()
    assert len(files) >= 200
    places = [one.within(Path("/files")) for one in files]
    assert len(set(places)) == len(files)
    assert all(place.resolve().is_relative_to("/files") for place in places)
    assert all(map(_is_named_whole, files)), catalog_files.MANIFEST


def _is_named_whole(one: CatalogFile) -> bool:
    """True if a commit and a digest are given in full."""
    return (len(one.commit), len(one.sha256)) == (40, 64)
