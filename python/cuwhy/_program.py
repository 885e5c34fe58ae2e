# SPDX-License-Identifier: Apache-2.0
"""The command `cuwhy`: where it is, and how it is run."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import os
import subprocess
import sysconfig
import tempfile
import time
from importlib import metadata
from typing import Any, Iterator, List, Optional, Tuple

from ._writers import no_more

_HERE = os.path.dirname(os.path.abspath(__file__))
_OUTPUT_MAX = 64 << 20


class CuwhyError(Exception):
    """cuwhy itself failed: its program is missing, did not answer in time, or could not analyze its input."""


def _same_bytes(path: str, wanted: metadata.FileHash) -> bool:
    digest = hashlib.new(wanted.mode)
    with open(path, "rb") as f:
        while block := f.read(1 << 20):
            digest.update(block)
    return base64.urlsafe_b64encode(digest.digest()).rstrip(b"=").decode() == wanted.value


def _recorded(site: str) -> Iterator[str]:
    """The program that was installed with this package, by the installation's own list of files. `pip install --target` moves files
    without changing the list, so that only the bytes say whether what is at that place now is what was installed."""
    for found in metadata.distributions(name="cuwhy", path=[site]):
        for file in found.files or []:
            if file.name != "cuwhy" or file.parent.name != "bin":
                continue
            path = str(found.locate_file(file))
            if file.hash and os.path.isfile(path) and _same_bytes(path, file.hash):
                yield path


def _own(site: str) -> Iterator[str]:
    """Where the program that came with this package may be."""
    yield os.path.join(site, "bin", "cuwhy")  # pip install --target
    if os.path.isfile(os.path.join(os.path.dirname(site), "tools", "wheel.py")):
        yield os.path.join(os.path.dirname(site), "build", "cuwhy")  # a checkout
    yield from _recorded(site)  # an environment, --user, --prefix


def _others() -> Iterator[str]:
    """Where another cuwhy may be installed. Relative folders of PATH would be whatever the working directory has."""
    folders = [sysconfig.get_path("scripts"), *os.environ.get("PATH", os.defpath).split(os.pathsep)]
    return (os.path.join(folder, "cuwhy") for folder in folders if os.path.isabs(folder))


def _find() -> str:
    unsafe = ""
    for path in itertools.chain(_own(os.path.dirname(_HERE)), _others()):
        if not os.path.isfile(path) or not os.access(path, os.X_OK):
            continue
        if no_more(path, than=_HERE):
            return os.path.realpath(path)
        unsafe = unsafe or path
    if unsafe:
        raise CuwhyError(f"the program '{unsafe}' is not used: others than those who can change this package can change it or a folder "
                         "above it; if it is yours, name it in the environment variable CUWHY_PROGRAM")
    raise CuwhyError("the program 'cuwhy' was found neither beside this package nor in PATH")


_found: Optional[str] = None


def program() -> str:
    """The path of the command. The environment variable CUWHY_PROGRAM overrides it."""
    global _found
    named = os.environ.get("CUWHY_PROGRAM")
    if named:
        if os.path.isfile(named) and os.access(named, os.X_OK):
            return os.path.realpath(named)
        raise CuwhyError(f"CUWHY_PROGRAM is '{named}', which is no program")
    if _found is None or not os.path.isfile(_found):
        _found = _find()
    return _found


class Deadline:
    """What is left of the total time that an answer may take."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    def left(self) -> float:
        return max(self._end - time.monotonic(), 0.01)

    def passed(self) -> bool:
        return time.monotonic() >= self._end


class Unnamed:
    """A file for the command, on the disk but without a name: however this process ends, it is gone with it."""

    def __init__(self) -> None:
        self.file = tempfile.TemporaryFile()

    @property
    def path(self) -> str:
        """As the command calls it."""
        return f"/proc/self/fd/{self.file.fileno()}"

    def __enter__(self) -> "Unnamed":
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()


def ask(args: List[str], text: str, deadline: Deadline, about: Optional[Unnamed] = None) -> Tuple[int, str]:
    """Runs the command with `text` on its standard input; returns its exit status and standard output. `about`: a file that is its last argument."""
    if about is not None:
        about.file.flush()
        args = [*args, about.path]
    command = [program(), *args]
    try:
        done = subprocess.run(command, input=text.encode("utf-8", "replace"), stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, timeout=deadline.left(), check=False,
                              pass_fds=[about.file.fileno()] if about is not None else [])
    except subprocess.TimeoutExpired:
        raise CuwhyError(f"'cuwhy {args[0]}' did not answer in time") from None
    except OSError as e:
        raise CuwhyError(f"'{command[0]}' cannot be started: {e.strerror}") from None
    return done.returncode, done.stdout[:_OUTPUT_MAX].decode("utf-8", "replace")


def ask_json(args: List[str], text: str, deadline: Deadline, about: Optional[Unnamed] = None) -> "dict[str, Any]":
    """The JSON object that the command answers with."""
    status, out = ask(args, text, deadline, about)
    try:
        answer = json.loads(out)
    except ValueError:
        raise CuwhyError(f"'cuwhy {args[0]}' exited with {status} and gave no answer") from None
    if not isinstance(answer, dict):
        raise CuwhyError(f"'cuwhy {args[0]}' answered with something other than an object")
    failure = answer.get("failure")
    if isinstance(failure, dict):
        raise CuwhyError(str(failure.get("message")))
    return answer


def version(timeout: float = 10.0) -> "dict[str, Any]":
    """What `cuwhy --version --json` says: the build, its parts, the machine."""
    return ask_json(["--version", "--json"], "", Deadline(timeout))


def _mapped(name: str) -> bool:
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
            return any(name in line for line in maps)
    except OSError:
        return False


_under: Optional[bool] = None


def under_run() -> bool:
    """Does this process run under `cuwhy run`? That explains its failures, and better."""
    global _under
    if _under is None:
        _under = bool(os.environ.get("CUWHY_SOCK")) and _mapped("libcuwhy-rec.so")
    return _under
