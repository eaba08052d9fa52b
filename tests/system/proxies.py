"""Real proxies in front of a service: Caddy with the rules of `deploy/`, nginx and HAProxy."""

import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.processes import free_port
from tests.waiting import until

CADDYFILE: Final = Path("deploy/Caddyfile")
SECOND_LINE: Final = "request_header -Upgrade"
_SITE: Final = "factbook.example.com {"
_UPSTREAM: Final = "127.0.0.1:8000"

# Both keep connections to the service open and pass on what clients ask for.
_NGINX: Final = """
daemon off; master_process off; pid {folder}/nginx.pid; error_log stderr;
events {{ }}
http {{
    access_log off;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi; uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    upstream service {{ server 127.0.0.1:{service}; keepalive 8; }}
    server {{
        listen 127.0.0.1:{port};
        location / {{
            proxy_pass http://service;
            proxy_http_version 1.1;
            proxy_request_buffering off;
            proxy_set_header Host $http_host;
            {rules}
        }}
    }}
}}
"""
_NGINX_RULES: Final = 'proxy_set_header Connection "";'
_NGINX_PASSING: Final = """
            proxy_set_header Connection $http_connection;
            proxy_set_header Upgrade $http_upgrade;
"""
_HAPROXY: Final = """
defaults
    mode http
    timeout connect 5s
    timeout client 30s
    timeout server 30s
    http-reuse always
frontend clients
    bind 127.0.0.1:{port}
    default_backend service
backend service
    {rules}
    server service 127.0.0.1:{service}
"""


def caddyfile(port: int, service: int, *, second_line: bool) -> str:
    """The shipped file with other addresses, and without TLS."""
    text = CADDYFILE.read_text()
    assert text.count(_SITE) == text.count(_UPSTREAM) == text.count(SECOND_LINE) == 1
    text = text.replace(_SITE, f"http://127.0.0.1:{port} {{")
    text = text.replace(_UPSTREAM, f"127.0.0.1:{service}")
    if not second_line:
        text = text.replace(SECOND_LINE, "")
    return "{\n\tadmin off\n\tauto_https off\n}\n" + text


@contextmanager
def caddy(service: int, folder: Path, *, second_line: bool) -> Iterator[int]:
    """The port of a Caddy in front of a service."""
    file, port = folder / "Caddyfile", free_port()
    file.write_text(caddyfile(port, service, second_line=second_line))
    command = ["caddy", "run", "--config", str(file), "--adapter", "caddyfile"]
    with _running(command, folder, port):
        yield port


@contextmanager
def nginx(service: int, folder: Path, *, second_line: bool) -> Iterator[int]:
    """The port of an nginx in front of a service."""
    file, port = folder / "nginx.conf", free_port()
    rules = _NGINX_RULES if second_line else _NGINX_PASSING
    file.write_text(_NGINX.format(port=port, service=service, folder=folder, rules=rules))
    with _running(["nginx", "-c", str(file), "-p", str(folder)], folder, port):
        yield port


@contextmanager
def haproxy(service: int, folder: Path, *, second_line: bool) -> Iterator[int]:
    """The port of a HAProxy in front of a service."""
    file, port = folder / "haproxy.cfg", free_port()
    rules = "http-request del-header upgrade" if second_line else ""
    file.write_text(_HAPROXY.format(port=port, service=service, rules=rules))
    with _running(["haproxy", "-db", "-f", str(file)], folder, port):
        yield port


PROXIES: Final = {"caddy": caddy, "nginx": nginx, "haproxy": haproxy}


@contextmanager
def _running(command: list[str], folder: Path, port: int) -> Iterator[None]:
    """Run a proxy from the time on when it takes connections."""
    log_file = folder / "proxy.log"
    with log_file.open("ab") as log:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={"HOME": str(folder), "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
            stdout=log,
            stderr=log,
        )
    try:
        until(lambda: process.poll() is not None or _listens(port), told=log_file.read_text)
        assert process.poll() is None, log_file.read_text()
        yield
    finally:
        process.terminate()
        process.wait(timeout=30)


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=30).close()
    except OSError:
        return False
    return True
