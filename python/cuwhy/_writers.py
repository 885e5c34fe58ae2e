# SPDX-License-Identifier: Apache-2.0
"""Who can change a file: its owner, the owners of all folders above it, and those to whom these folders are open."""

from __future__ import annotations

import os
import stat
from typing import FrozenSet, Iterator, Set

EVERYBODY = "everybody"
LINKS_MOST = 40  # as for Linux


def _of_one(st: os.stat_result) -> Set[str]:
    """Who can change what is in this file or folder, or replace it."""
    found = {f"user {st.st_uid}"}
    if stat.S_ISLNK(st.st_mode) or (stat.S_ISDIR(st.st_mode) and st.st_mode & stat.S_ISVTX):
        return found  # what a folder like /tmp has stays there: its own owner is asked next
    if st.st_mode & stat.S_IWOTH:
        found.add(EVERYBODY)
    if st.st_mode & stat.S_IWGRP and st.st_gid != st.st_uid:  # a group with the same number as its owner is that user's own
        found.add(f"group {st.st_gid}")
    return found


def _way(path: str) -> Iterator[str]:
    """All folders and links on the way to a file, and the file."""
    left, at, links = os.path.abspath(path).split(os.sep)[1:], os.sep, 0
    yield at
    while left:
        at = os.path.normpath(os.path.join(at, left.pop(0)))
        yield at
        if os.path.islink(at) and links < LINKS_MOST:
            links += 1
            left = os.readlink(at).split(os.sep) + left
            at = os.sep if left[0] == "" else os.path.dirname(at)


def writers(path: str) -> FrozenSet[str]:
    """Root and this user, who can do it anyway, are not among them. What is not there has none: the inside of an archive."""
    found: Set[str] = set()
    for at in _way(path):
        try:
            found |= _of_one(os.lstat(at))
        except OSError:
            break
    return frozenset(found - {"user 0", f"user {os.geteuid()}"})


def no_more(path: str, than: str) -> bool:
    """Is everybody who can change `path` able to change `than`, too? Then using it risks nothing that using `than` did not."""
    allowed = writers(than)
    return EVERYBODY in allowed or writers(path) <= allowed
