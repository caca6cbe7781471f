"""`showhow licences`: the licences of everything that is installed beside Showhow, from the packages' own metadata."""

from collections.abc import Sequence
from importlib.metadata import Distribution, PackageMetadata, distributions
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from showhow.app.cli.output import emit

OWN_NAME = "showhow"
UNKNOWN = "unknown"
_CLASSIFIER_PREFIX = "License :: "
_MAX_CHARACTERS = 100
_FILE_BEGINNINGS = ("LICEN", "COPYING", "NOTICE", "AUTHORS")


class PackageLicence(NamedTuple):
    """An installed package, the name of its licence, and the files that hold the licence's text."""

    name: str
    version: str
    licence: str
    files: list[str]


def licences(
    *, as_json: Annotated[bool, typer.Option("--json", help="Print JSON, with licence files.")] = False
) -> None:
    """List the installed packages of others with their licences."""
    rows = list_package_licences()
    text = "\n".join(f"{row.name} {row.version}: {row.licence}" for row in rows)
    emit([row._asdict() for row in rows], text, as_json=as_json)


def list_package_licences() -> list[PackageLicence]:
    """List every installed package except Showhow, by name."""
    installed = {package.metadata["Name"].casefold(): package for package in distributions()}
    return [_describe_package(package) for name, package in sorted(installed.items()) if name != OWN_NAME]


def _describe_package(package: Distribution) -> PackageLicence:
    files = _list_files(package)
    licence = _licence_name(package.metadata) or _licence_title(files) or UNKNOWN
    return PackageLicence(package.metadata["Name"], package.version, licence, files)


def _licence_name(metadata: PackageMetadata) -> str | None:
    """The licence that the metadata name; None if they name none."""
    if expressions := metadata.get_all("License-Expression"):
        return str(expressions[0])
    classifiers = [
        line.removeprefix(_CLASSIFIER_PREFIX).removeprefix("OSI Approved :: ")
        for line in metadata.get_all("Classifier") or []
        if line.startswith(_CLASSIFIER_PREFIX) and line != f"{_CLASSIFIER_PREFIX}OSI Approved"
    ]
    if classifiers:
        return ", ".join(classifiers)
    # The field may be the whole text of the licence, whose first line is its title.
    lines = "\n".join(metadata.get_all("License") or []).strip().splitlines()
    return lines[0].strip()[:_MAX_CHARACTERS] if lines else None


def _licence_title(files: Sequence[str]) -> str | None:
    """The first line with text of the first file."""
    for file in files[:1]:
        for line in Path(file).read_text(encoding="utf-8", errors="replace").splitlines():
            if line.strip():
                return line.strip()[:_MAX_CHARACTERS]
    return None


def _list_files(package: Distribution) -> list[str]:
    return sorted(
        str(file.locate())
        for file in package.files or []
        if ".dist-info" in str(file) and file.name.upper().startswith(_FILE_BEGINNINGS)
    )
