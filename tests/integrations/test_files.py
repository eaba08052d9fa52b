"""Types of files by their paths."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factbook.integrations.code_host import list_file_types, make_file_facts


def test_a_file_counts_in_these_types() -> None:
    expected: dict[str, set[str]] = {
        "Dockerfile": {"docker"},
        "images/Dockerfile.dev": {"docker"},
        "images/app.dockerfile": {"docker"},
        "Containerfile": {"docker"},
        ".dockerignore": {"docker"},
        "compose.yaml": {"docker", "yaml"},
        "docker-compose.prod.yml": {"docker", "yaml"},
        "compose/values.txt": {"docs"},
        "composer.json": {"config"},
        ".github/workflows/test.yml": {"yaml"},
        "src/a.js": {"javascript"},
        "src/a.jsx": {"javascript"},
        "src/a.mjs": {"javascript"},
        "src/a.cjs": {"javascript"},
        "src/a.ts": {"javascript"},
        "src/a.tsx": {"javascript"},
        "src/a.py": {"python"},
        "src/a.pyi": {"python"},
        "src/a.pyc": set(),
        "README.md": {"docs"},
        "README.MD": {"docs"},
        "a.mdx": {"docs"},
        "a.rst": {"docs"},
        "a.adoc": {"docs"},
        "docs/image.png": {"docs"},
        "docs/conf.py": {"docs", "python"},
        "src/docs/image.png": set(),
        "docs": set(),
        "package.json": {"config"},
        "pyproject.toml": {"config"},
        "a.ini": {"config"},
        "a.cfg": {"config"},
        "a.conf": {"config"},
        "a.properties": {"config"},
        ".env": {"config"},
        ".env.local": {"config"},
        "prod.env": {"config"},
        ".editorconfig": {"config"},
        ".npmrc": {"config"},
        "src/rc": set(),
        "environment": set(),
        "md": set(),
        "LICENSE": set(),
    }
    assert {path: list_file_types(path) for path in expected} == expected


paths = st.lists(
    st.text("abc./- DYMLydockermlpsinvt", min_size=1, max_size=24), unique=True, max_size=40
)


@given(paths=paths)
def test_counts_are_those_of_the_single_files(paths: list[str]) -> None:
    found = make_file_facts(paths)
    assert found["filePaths"] == sorted(paths)
    assert found["totalFiles"] == len(paths)
    for name in ("docker", "yaml", "javascript", "python", "docs", "config"):
        assert found[f"fileTypes.{name}"] == sum(name in list_file_types(path) for path in paths)


@pytest.mark.slow
@given(paths=paths, more=paths)
def test_more_files_never_make_a_count_smaller(paths: list[str], more: list[str]) -> None:
    fewer, all_ = make_file_facts(paths), make_file_facts([*paths, *more])
    assert all(all_[name] >= fewer[name] for name in fewer if name.startswith("fileTypes."))


@pytest.mark.spec("tools.repository.in-catalog")
def test_a_catalog_info_file_anywhere_puts_it_in_the_catalog(subtests: pytest.Subtests) -> None:
    expected = {
        "catalog-info.yaml": True,
        "services/one/catalog-info.yml": True,
        "my-catalog-info.yaml": False,
        "catalog-info.yaml/README": False,
        "catalog-info.json": False,
    }
    for path, is_in_catalog in expected.items():
        with subtests.test(path=path):
            assert make_file_facts([path, "README.md"])["inCatalog"] is is_in_catalog
