"""The part of `docker` that reads the files of an image, with a made-up image for each platform.

docker create --pull always --platform linux/P IMAGE; docker export CONTAINER; docker rm CONTAINER
"""

import argparse
import io
import sys
import tarfile
from typing import Final

_PACKAGES: Final = "opt/factbook/lib/python3.13/site-packages"
_STATUS: Final = """Package: git
Status: install ok installed
Architecture: {}
Version: 2.39.5
"""


def files(platform: str) -> dict[str, str]:
    """The files of an image for a platform that say which packages it has."""
    python = {"factbook": "9.8.7", "msgspec": "0.20.0"}
    metadata = {
        f"{_PACKAGES}/{name}-{version}.dist-info/METADATA": (
            f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}\n"
        )
        for name, version in python.items()
    }
    return {**metadata, "var/lib/dpkg/status": _STATUS.format(platform)}


def archive(platform: str) -> bytes:
    """The archive of an image's files."""
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as tar:
        for name, text in files(platform).items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            tar.addfile(member, io.BytesIO(text.encode()))
    return written.getvalue()


def main() -> None:
    """Do one of the commands; the name of a container is that of its platform."""
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="command", required=True)
    create = commands.add_parser("create")
    create.add_argument("--pull", choices=["always"], required=True)
    create.add_argument("--platform", required=True)
    create.add_argument("image")
    for name in ("export", "rm"):
        commands.add_parser(name).add_argument("container")
    given = parser.parse_args()
    if given.command == "create":
        sys.stdout.write(given.platform.removeprefix("linux/") + "\n")
    elif given.command == "export":
        sys.stdout.buffer.write(archive(given.container))


if __name__ == "__main__":
    main()
