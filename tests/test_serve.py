"""A real `factbook serve`: starting, stopping, several processes, and what it logs."""

import json
import os
import signal
import socket
import sqlite3
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import httpx2
import pytest

from tests import commands
from tests.processes import FACTBOOK, TOKEN_KEY, ServerProcess, clean_environment, serving
from tests.service import PUSH, TOOLS, component
from tests.waiting import until

ENTITIES = "/api/catalog/entities"
WEB = f"{ENTITIES}/by-name/component/default/web"
BODY = json.dumps({"items": [component("web")]}).encode()


def refuses_connections(server: ServerProcess) -> bool:
    """Whether nobody listens on its port any more."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", server.port)) != 0


@contextmanager
def half_sent_push(server: ServerProcess, token: str) -> Iterator[socket.socket]:
    """A PUT that the server has begun to read; the second half of its body is still to come."""
    head = (
        f"PUT {PUSH}/sets/one HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
        f"Authorization: Bearer {token}\r\nContent-Length: {len(BODY)}\r\n"
        "Expect: 100-continue\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
        connection.sendall(head.encode())
        assert connection.recv(100).startswith(b"HTTP/1.1 100 ")
        connection.sendall(BODY[: len(BODY) // 2])
        yield connection


@pytest.mark.slow
def test_a_request_under_way_is_finished_after_a_signal_to_stop(
    database_url: str, tmp_path: Path
) -> None:
    with serving(database_url, tmp_path) as server:
        token = server.token()
        with half_sent_push(server, token) as connection:
            os.kill(server.pid, signal.SIGTERM)
            until(lambda: refuses_connections(server))
            connection.settimeout(0.5)
            with pytest.raises(TimeoutError):  # it neither hangs up nor answers too early
                connection.recv(1)
            connection.settimeout(30)
            connection.sendall(BODY[len(BODY) // 2 :])
            answer = b""
            while piece := connection.recv(65536):
                answer += piece
        assert answer.startswith(b"HTTP/1.1 200 "), answer
        assert b'"added":1' in answer
        until(lambda: not server.is_running)
        server.start()
        with server.client(token) as http:
            assert http.get(WEB).status_code == 200


@pytest.mark.slow
def test_a_server_stops_soon_when_nothing_is_under_way(tmp_path: Path) -> None:
    with serving(f"sqlite:///{tmp_path}/facts.db", tmp_path) as server:
        with server.client(server.token()) as http:
            assert http.get(ENTITIES).status_code == 200  # and keeps the connection open
            assert server.stop() in (0, -signal.SIGTERM)
        assert '"service.started"' in server.log.read_text()


def healthz_count(http: httpx2.Client) -> float:
    """How often the process behind this connection was asked for its health."""
    for line in http.get("/metrics").text.splitlines():
        if line.startswith("factbook_http_request_seconds_count") and '"/healthz"' in line:
            return float(line.rpartition(" ")[2])
    return 0


def client_of_another_process(
    server: ServerProcess, token: str, http: httpx2.Client
) -> httpx2.Client:
    """A client whose connection another process of the server holds."""
    for _ in range(1_000):
        other = server.client(token)
        before = healthz_count(other)
        http.get("/healthz")
        if healthz_count(other) == before:
            return other
        other.close()
    raise AssertionError("every connection went to one process")


@pytest.mark.slow
@pytest.mark.spec("token.revocation-acts-on-next-request")
def test_two_worker_processes_see_each_others_writes_at_once(
    database_url: str, tmp_path: Path
) -> None:
    with serving(database_url, tmp_path, "--workers", "2") as server:
        token, brief = server.token(), server.token()
        with (
            server.client(token) as one,
            closing(client_of_another_process(server, token, one)) as two,
        ):
            for number in range(20):
                writer, reader = (one, two) if number % 2 else (two, one)
                names = ["web", f"n{number}"]
                body = {"items": [component(name) for name in names]}
                assert writer.put(f"{PUSH}/sets/one", json=body).status_code == 200
                found = [entity["metadata"]["name"] for entity in reader.get(ENTITIES).json()]
                assert sorted(found) == sorted(names)
                assert reader.get(WEB).status_code == 200
            given = {"authorization": f"Bearer {brief}"}
            assert two.get(WEB, headers=given).status_code == 200
            listed = one.get("/api/access/v1/tokens").json()["tokens"]
            used = [item["id"] for item in listed if item["name"] == "test"]
            for id_ in used:
                one.delete(f"/api/access/v1/tokens/{id_}")
            assert two.get(WEB, headers=given).status_code == 401
            assert two.get(WEB).status_code == 401


@pytest.mark.slow
@pytest.mark.spec("token.key-file-is-private")
def test_servers_that_start_together_on_a_new_file_share_its_key(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/new/facts.db"
    servers = [ServerProcess(url, tmp_path) for _ in range(2)]
    for server in servers:
        del server.environment["FACTBOOK_TOKEN_KEY"]
    try:
        with ThreadPoolExecutor() as threads:
            list(threads.map(ServerProcess.start, servers))
        token = servers[0].token()
        for server in servers:
            with server.client(token) as http:
                assert http.get(ENTITIES).status_code == 200
    finally:
        for server in servers:
            if server.is_running:
                server.stop()
    file = tmp_path / "new" / "facts.db.key"
    assert file.stat().st_mode & 0o777 == 0o600
    for server in servers:
        assert file.read_text() not in server.log.read_text()


@pytest.mark.slow
def test_failing_requests_leave_no_secret_in_the_log(tmp_path: Path) -> None:
    database = tmp_path / "facts.db"
    with serving(f"sqlite:///{database}", tmp_path) as server:
        token, unknown = server.token(), "fbk_" + "0" * 46
        with server.client(token) as http:
            assert http.put(f"{PUSH}/sets/one", content=BODY).status_code == 200
            assert http.get(f"{ENTITIES}?access_token={token}").status_code == 400
            assert http.get(f"{ENTITIES}/by-uid/{token}").status_code == 404
            given = {"authorization": f"Bearer {unknown}"}
            assert http.get(ENTITIES, headers=given).status_code == 401
            with closing(sqlite3.connect(database)) as file, file:
                file.execute("DROP TABLE search")
            for path in (f"{ENTITIES}?filter=spec.a={token}", f"{ENTITIES}?filter=spec.a&limit=1"):
                assert http.get(path).status_code == 500
            assert http.post(TOOLS, json={"a": token}).status_code == 400
        with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
            connection.sendall(f"NONSENSE {token}\r\n\r\n".encode())
            assert b" 400 " in connection.recv(1000)
        server.stop()
        log = server.log.read_text()
    assert "no such table: search" in log  # the log tells what the answer does not
    for secret in (token, token[:12], unknown, TOKEN_KEY):
        assert secret not in log
    # Before the log stands the link for the first administrator.
    for line in log[log.index("{") :].splitlines():
        assert json.loads(line)["event"]


@pytest.mark.spec("token.key-mandatory-on-postgresql")
@pytest.mark.parametrize(
    ("environment", "file", "told"),
    [
        ({"DATABASE_URL": "postgresql://u:s3cret@127.0.0.1:1/x"}, "", "token_key has to be set"),
        ({"DATABASE_URL": "mysql://u:s3cret@h/x"}, "", "with postgresql://, before USER@HOST/NAME"),
        ({"TOKEN_KEY": "s3cret"}, "", "token_key has to have at least 32 characters"),
        ({"PORT": "s3cret"}, "", "port from FACTBOOK_PORT"),
        ({}, "prot = 1", "factbook.toml has unknown settings: prot"),
    ],
)
def test_a_server_that_cannot_start_says_why_in_one_line(
    tmp_path: Path, environment: dict[str, str], file: str, told: str
) -> None:
    (tmp_path / "factbook.toml").write_text(file)
    variables = clean_environment() | {f"FACTBOOK_{k}": v for k, v in environment.items()}
    done = commands.invoke(tmp_path, variables, "serve", "--port", "0")
    assert (done.exit_code, done.stdout) == (2, "")
    [line] = done.stderr.splitlines()
    assert told in line
    assert "s3cret" not in line


@pytest.mark.slow
def test_a_server_process_that_cannot_start_shows_no_traceback(tmp_path: Path) -> None:
    settings = {"FACTBOOK_DATABASE_URL": "mysql://u:s3cret@h/x", "FACTBOOK_TOKEN_KEY": "k" * 32}
    done = subprocess.run(
        [FACTBOOK, "serve", "--port", "0"],
        env=clean_environment() | settings,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, "database_url has to start with" in done.stderr) == (2, True)
    assert "Traceback" not in done.stderr
    assert "s3cret" not in done.stderr
