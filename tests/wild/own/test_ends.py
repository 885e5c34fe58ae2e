# SPDX-License-Identifier: Apache-2.0
"""Tests that end their process, on both sides, and one that must not be lost."""
import os
import signal
import time

import pytest


@pytest.mark.forked
def test_passes_in_a_child():
    pass


@pytest.mark.forked
def test_fails_in_a_child():
    raise RuntimeError("in a child")


@pytest.mark.forked
def test_crashes_in_a_child():
    os.abort()


def test_passes_before():
    pass


def test_crashes():
    os.kill(os.getpid(), signal.SIGSEGV)


def test_leaves():
    os._exit(3)


def test_hangs():
    time.sleep(60)


def test_passes_after():
    pass
