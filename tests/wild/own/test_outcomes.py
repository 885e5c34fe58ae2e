# SPDX-License-Identifier: Apache-2.0
"""A suite with everything that can happen to a test, for check.py. OWN_CACHE is a folder of this side."""
import ctypes
import os
import signal

import pytest

CACHE = os.environ["OWN_CACHE"]
UNDER_CUWHY = os.path.basename(CACHE) == "cuwhy"


def first(name):
    """Is this the first run of the test on this side?"""
    path = os.path.join(CACHE, name)
    there = os.path.exists(path)
    open(path, "w").close()
    return not there


def test_passes():
    assert ctypes.CDLL("libcuda.so.1").cuInit(0) == 0


def test_fails():
    assert hex(id(object())) == "the address is another one each time"


@pytest.mark.skip(reason="never runs")
def test_is_skipped():
    pass


def test_is_flaky_without_cuwhy():
    assert UNDER_CUWHY or not first("flaky")


def test_fails_once_under_cuwhy():
    assert not UNDER_CUWHY or not first("once")


def test_crashes_once_under_cuwhy():
    if UNDER_CUWHY and first("crash"):
        os.kill(os.getpid(), signal.SIGSEGV)


def test_sees_the_recorder():
    with open("/proc/self/maps", encoding="ascii") as stream:
        assert "libcuwhy-rec" not in stream.read()


def test_has_a_random_message():
    assert os.urandom(8) == UNDER_CUWHY
