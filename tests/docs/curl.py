"""A stand-in for curl: as much of it as the examples of the documentation use."""

import argparse
import sys
from pathlib import Path

import httpx2


def main() -> None:
    """Send the request that the arguments describe, and print the body of the answer."""
    parser = argparse.ArgumentParser(prog="curl", allow_abbrev=False)
    parser.add_argument("url")
    parser.add_argument("-s", action="store_true")
    parser.add_argument("-S", action="store_true")
    parser.add_argument("-X", dest="method")
    parser.add_argument("-H", dest="headers", action="append", default=[])
    parser.add_argument("-d", dest="data")
    given = parser.parse_args()
    headers = dict(line.split(": ", 1) for line in given.headers)
    data = given.data
    if data is not None and data.startswith("@"):
        data = Path(data[1:]).read_text()
    method = given.method or ("GET" if data is None else "POST")
    answer = httpx2.request(method, given.url, headers=headers, content=data, timeout=60)
    sys.stdout.buffer.write(answer.content)


if __name__ == "__main__":
    main()
