"""Bill of materials of an image, in CycloneDX: `python scripts/sbom.py ROOT > image.cdx.json`.

It names each Python package below ROOT/opt/factbook and each package of Debian, as the files of the
image have them; nothing of the image is run.
"""

import argparse
import re
import sys
from collections.abc import Iterator
from importlib.metadata import distributions
from pathlib import Path

from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

_FIELD = re.compile(r"^(Package|Status|Version|Architecture): (.+)$", re.MULTILINE)


def bill(root: Path) -> str:
    """The bill of an image with its files below a folder; LookupError without service or name."""
    packages = {one.name: one for one in python_packages(root)}
    subject = packages.pop("factbook", None)
    if subject is None:
        raise LookupError(f"no factbook in {root}/opt/factbook")
    found = Bom(components=[*packages.values(), *debian_packages(root)])
    found.metadata.component = subject
    found.register_dependency(subject, packages.values())
    return JsonV1Dot6(found).output_as_string(indent=2)


def python_packages(root: Path) -> Iterator[Component]:
    """The packages in the environment of the service."""
    folders = [str(one) for one in root.glob("opt/factbook/lib/python3*/site-packages")]
    for one in distributions(path=folders):
        if not one.metadata["Name"]:
            raise LookupError(f"a package without a name in {', '.join(folders)}")
        name = re.sub(r"[-_.]+", "-", one.metadata["Name"]).lower()
        yield _component(PackageURL("pypi", name=name, version=one.version))


def debian_packages(root: Path) -> Iterator[Component]:
    """The packages that are installed, by the status of dpkg."""
    file = root / "var/lib/dpkg/status"
    for paragraph in file.read_text().split("\n\n") if file.exists() else ():
        fields = dict(_FIELD.findall(paragraph))
        if fields.get("Status", "").endswith(" installed"):
            qualifiers = {"arch": fields["Architecture"]}
            yield _component(
                PackageURL("deb", "debian", fields["Package"], fields["Version"], qualifiers)
            )


def _component(purl: PackageURL) -> Component:
    kind = ComponentType.APPLICATION if purl.name == "factbook" else ComponentType.LIBRARY
    return Component(
        name=purl.name, version=purl.version, type=kind, purl=purl, bom_ref=purl.to_string()
    )


def main(arguments: list[str] | None = None) -> int:
    """Print the bill; 2 where no environment of the service is found."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("root", type=Path, metavar="ROOT", help="folder with the image's files")
    root = parser.parse_args(arguments).root
    try:
        sys.stdout.write(bill(root) + "\n")
    except LookupError as error:
        sys.stderr.write(f"sbom: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
