"""Puts libonbeat.so into the wheel, where it has been built, and says for which machines it is."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Library(BuildHookInterface):
    """A wheel with the library is of this platform; one without is of all."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the library that ONBEAT_WHEEL_LIBRARY names, or the one that `make` has built."""
        named = os.environ.get("ONBEAT_WHEEL_LIBRARY")
        library = Path(named or Path(self.root, "../target/release/libonbeat.so")).resolve()
        if version == "editable" or not (named or library.is_file()):
            return
        if not library.is_file():
            raise FileNotFoundError(f"ONBEAT_WHEEL_LIBRARY: there is no {library}: run make first")
        build_data["force_include"][str(library)] = "onbeat/libonbeat.so"
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{tag(library.read_bytes())}_{platform.machine()}"


def tag(library: bytes) -> str:
    """Name the oldest systems that the library can be loaded on.

    PEP 600 counts by the version of glibc. Of other libraries it needs libgcc_s only, which the tag
    allows; the tests have auditwheel check both.
    """
    versions = re.findall(rb"\0GLIBC_(\d+)\.(\d+)(?=[.\0])", library)
    if not versions:
        return "linux"
    major, minor = max((int(major), int(minor)) for major, minor in versions)
    return f"manylinux_{major}_{minor}"
