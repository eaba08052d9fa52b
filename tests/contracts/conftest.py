"""What several contract tests ask for."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contracts.catalog_calls import Catalog
from tests.contracts.sample_catalog import Sample, sets, shown
from tests.processes import serving
from tests.service import PUSH


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory, test_data: Path) -> Iterator[Sample]:
    """A service that holds the sample catalog, which tests leave as it is."""
    folder = tmp_path_factory.mktemp("sample")
    pushed = sets(test_data)
    with serving(f"sqlite:///{folder / 'factbook.db'}", folder) as server:
        token = server.token()
        with server.client(token) as http:
            for name, items in pushed.items():
                answer = http.put(f"{PUSH}/sets/{name}", json={"items": items})
                assert answer.status_code == 200, answer.text
        yield Sample(server, token, shown(pushed))


@pytest.fixture
def catalog(sample: Sample, tmp_path: Path) -> Catalog:
    """The npm catalog client, asking the service that holds the sample catalog."""
    return Catalog(sample, tmp_path)
