"""Files in each encoding that a byte order mark names, given to the commands that read them."""

import codecs
import json
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Final

import pytest

from tests.cli.bridge import Run
from tests.cli.conftest import Command
from tests.service import Service, component

REPORTS = Path(__file__).parents[1] / "data" / "reports"
ENCODINGS: Final[Mapping[str, tuple[bytes, str]]] = {
    "UTF-8": (b"", "utf-8"),
    "UTF-8 with a mark": (codecs.BOM_UTF8, "utf-8"),
    "UTF-16 of PowerShell": (codecs.BOM_UTF16_LE, "utf-16-le"),
    "UTF-16 of others": (codecs.BOM_UTF16_BE, "utf-16-be"),
    "UTF-32": (codecs.BOM_UTF32_LE, "utf-32-le"),
    "UTF-32 of others": (codecs.BOM_UTF32_BE, "utf-32-be"),
}
API: Final = "backstage.io/v1alpha1"
YAML: Final = "\n---\n".join(
    f"apiVersion: {API}\nkind: Thing\nmetadata: {{name: zoe-{n}, title: Zoë}}" for n in (1, 2)
)
EACH: Final = [
    f'{{"apiVersion": "{API}", "kind": "Thing", "metadata": {{"name": "zoe-{n}", "title": "Zoë"}}}}'
    for n in (1, 2)
]
CATALOGS: Final[Mapping[str, str]] = {
    "catalog.yaml": YAML,
    "catalog.json": f"[{','.join(EACH)}]",
    "catalog.jsonl": "\r\n".join(EACH),
    "catalog": f"\n{EACH[0]}\n\n{EACH[1]}\n",
}


def written(file: Path, text: str, encoding: str) -> str:
    mark, name = ENCODINGS[encoding]
    file.write_bytes(mark + text.encode(name))
    return str(file)


@pytest.mark.slow
async def test_a_catalog_is_read_in_every_encoding(
    served: Run, service: Service, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    for number, (encoding, name) in enumerate(product(ENCODINGS, CATALOGS)):
        with subtests.test(encoding, name=name):
            given = CATALOGS[name].replace("zoe", f"zoe-{number}")
            file = written(tmp_path / name, given, encoding)
            answer = await served("push", f"set-{number}", file)
            assert answer.exit_code == 0, answer.output
            for which in (1, 2):
                entity = await service.catalog(f"thing:default/zoe-{number}-{which}")
                assert entity is not None
                assert entity["metadata"]["title"] == "Zoë"


@pytest.mark.slow
def test_checks_and_people_are_read_in_every_encoding(
    factbook: Command, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    checks = (REPORTS / "45-words-that-help-are-lost" / "app-config.yaml").read_text()
    people = (REPORTS / "26-range-of-members" / "people.ldif").read_text()
    database = f"--database-url=sqlite:///{tmp_path}/own.db"
    for number, encoding in enumerate(ENCODINGS):
        with subtests.test(encoding):
            file = written(tmp_path / "app-config.yaml", checks, encoding)
            answer = factbook("checks", "import", file, "--from", "backstage", f"--to={number}")
            assert answer.exit_code == 0, answer.output
            [made] = Path(f"{number}/checks").iterdir()
            file = written(tmp_path / "check.yaml", made.read_text(), encoding)
            answer = factbook("checks", "test", file)
            assert answer.exit_code == 0, answer.output
            file = written(tmp_path / "people.ldif", people, encoding)
            answer = factbook("import", "ldif", file, database, "--plan", "--json")
            assert [part["entities"] for part in json.loads(answer.stdout)["parts"]] == [1, 2]


async def test_a_file_that_is_not_in_the_encoding_of_its_mark_is_refused(
    served: Run, service: Service, tmp_path: Path
) -> None:
    await service.push("t", component("payments"))
    for mark in (codecs.BOM_UTF16_LE, codecs.BOM_UTF32_BE):
        file = tmp_path / "catalog.yaml"
        file.write_bytes(mark + b"kind")
        file.write_bytes(file.read_bytes() + b"\x00\xd8" * 3 + b"x")
        answer = await served("push", "t", str(file))
        assert answer.exit_code != 0
        assert "is not valid YAML" in answer.output
    assert await service.catalog("component:default/payments") is not None
