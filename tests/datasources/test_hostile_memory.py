"""How much memory the answers of hostile hosts can take."""

import gzip
import subprocess
import sys
import tracemalloc

import pytest

from tests.datasources.hostile import CHUNKED, DEEP, MB, PIECE, Beside, evil, whole
from tests.outbound.conftest import Serve
from tests.outbound.talking import saying


@pytest.mark.slow
@pytest.mark.parametrize(
    "answer",
    [
        whole(gzip.compress(b" " * 100 * MB, 1), headers=b"content-encoding: gzip\r\n"),
        CHUNKED + PIECE * 100,
        whole(DEEP * 40),
    ],
    ids=["gzip bomb", "endless body", "deep JSON"],
)
async def test_a_bomb_takes_no_memory(beside: Beside, serve: Serve, answer: bytes) -> None:
    port = await serve(saying(answer))
    tracemalloc.start()
    try:
        reasons = await beside.run(evil(), f"http://127.0.0.1:{port}")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert all(one[""].startswith("upstream-error: ") for one in reasons.values())
    assert peak < 30 * MB


# What is read may be as large as it can: several at once, each with what takes most memory.
_GREEDY = """
import resource
from factbook.datasources.custom import sources
from factbook.datasources.custom.definition import parse_source_definition

source = parse_source_definition({
    "id": "x", "title": "X",
    "handlerDefinition": {"type": "entity", "config": {"id": "x"}},
    "schema": {
        "all": {"type": "object", "extract": {"jmespath": "[@,@,@]|[*].to_string(@)"}},
        "each": {"type": "object", "extract": {"jmespath": "[*].[@,@,@,@,@,@,@,@,@,@]"}},
    },
})
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
body = b"[" + b"[]," * 690_000 + b"1]"
threads = sources._EXTRACTION_THREADS
work = [threads.submit(sources.facts_of_body, source, body) for _ in range(4)]
assert {len(one.result().missing) for one in work} == {2}
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.slow
def test_the_largest_documents_and_results_together_stay_within_memory() -> None:
    command = [sys.executable, "-c", _GREEDY]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 250
