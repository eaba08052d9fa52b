"""`factbook` commands that are forked from a process that has loaded all modules.

To load them takes half a second of a processor, and pages have more than a hundred commands. A
small program in place of `factbook` hands over its arguments, folder, variables and streams, and
ends with its exit code. A server starts as ever, since it is stopped by a signal to its process.
"""

import gc
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

from typer.testing import CliRunner

import factbook
from factbook.cli import main
from factbook.cli.commands import app
from tests.processes import FACTBOOK, clean_environment

ROOT = Path(__file__).parents[2]
_PROGRAM = """\
#!{python} -IS
import json, os, socket, sys

if sys.argv[1:2] == ["serve"]:
    os.execv("{factbook}", sys.argv)
connection = socket.socket(socket.AF_UNIX)
connection.connect("{address}")
socket.send_fds(connection, [b"-"], [0, 1, 2])
connection.sendall(json.dumps([sys.argv, os.getcwd(), dict(os.environ)]).encode())
connection.shutdown(socket.SHUT_WR)
sys.exit(int(connection.recv(3) or 1))
"""


@contextmanager
def forked_commands(folder: Path) -> Iterator[Path]:
    """A folder with a program `factbook` whose commands are forked."""
    address, program = folder / "socket", folder / "factbook"
    program.write_text(_PROGRAM.format(python=sys.executable, factbook=FACTBOOK, address=address))
    program.chmod(0o755)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(address))
        listener.listen()
        process = subprocess.Popen(
            [sys.executable, "-m", __name__, str(listener.fileno())],
            cwd=ROOT,
            env=clean_environment(),
            pass_fds=[listener.fileno()],
            start_new_session=True,
        )
    try:
        yield folder
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _serve(listener: socket.socket) -> None:
    for module in walk_packages(factbook.__path__, "factbook."):
        import_module(module.name)
    # The parser loads more with the first command.
    CliRunner().invoke(app, ["connect"])
    # A fork that looked for garbage among them would copy all of them.
    gc.freeze()
    while True:
        connection, _ = listener.accept()
        if not os.fork():
            listener.close()
            _answer(connection)
            return
        connection.close()
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def _answer(connection: socket.socket) -> None:
    """Run a command, tell its exit code, and end without a second spent on taking modules down."""
    _, streams, _, _ = socket.recv_fds(connection, 1, 3)
    with connection.makefile("rb") as file:
        sys.argv, folder, environment = json.load(file)
    for place, stream in enumerate(streams):
        os.dup2(stream, place)
        os.close(stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    try:
        main()
    except SystemExit as ended:
        sys.stdout.flush()
        sys.stderr.flush()
        connection.sendall(str(ended.code or 0).encode())
        os._exit(0)


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
