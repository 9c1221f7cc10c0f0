"""Whether the hardware and its tests are those with which `make check` passed last.

`checked.py` ends with 0 if they are, else with 1; `checked.py --write` says that they passed, in
rtl/checked. What counts is the content of every file below rtl/."""

import hashlib
import sys
from pathlib import Path

RTL = Path(__file__).resolve().parents[1]
PASSED = RTL / "checked"


def digest():
    found = hashlib.sha256()
    for path in sorted(RTL.rglob("*")):
        if path.is_file() and path != PASSED and "__pycache__" not in path.parts:
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            found.update(f"{content} {path.relative_to(RTL).as_posix()}\n".encode())
    return found.hexdigest() + "\n"


if sys.argv[1:] == ["--write"]:
    PASSED.write_text(digest(), encoding="ascii")
elif sys.argv[1:]:
    sys.exit(__doc__)
else:
    sys.exit(0 if PASSED.exists() and PASSED.read_text(encoding="ascii") == digest() else 1)
