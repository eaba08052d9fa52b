"""The PostgreSQL that a run of tests starts: nothing of it outlives the run, however that ends."""

import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.waiting import until

pytestmark = pytest.mark.system

ROOT = Path(__file__).parents[2]
START = """
import sys
from pathlib import Path
from tests.postgresql import started_server

with started_server(Path(sys.argv[1])) as url:
    print(url, flush=True)
    input()
"""


def test_a_run_that_is_killed_leaves_no_server_and_no_files() -> None:
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o711)  # for the user as whom root runs PostgreSQL
    command = [sys.executable, "-c", START, str(folder)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as run:
        assert run.stdout is not None
        assert b"postgresql://" in run.stdout.readline()
        [pid_file] = folder.glob("pg-*/data/postmaster.pid")
        server = int(pid_file.read_text().split()[0])
        run.send_signal(signal.SIGKILL)
    until(lambda: not Path(f"/proc/{server}").exists())
    until(lambda: not pid_file.parent.exists())
