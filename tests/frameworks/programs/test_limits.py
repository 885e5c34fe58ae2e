# SPDX-License-Identifier: Apache-2.0
"""Tests with a limit on their GPU memory."""
import pytest
import torch

MIB = 1 << 20
SESSION = []


def tensor(mib):
    return torch.empty(mib * MIB, dtype=torch.uint8, device="cuda")


@pytest.fixture
def weights():
    return tensor(100)  # <- fixture


@pytest.mark.limit_gpu_memory("64 MiB")
def test_within():
    SESSION.append(tensor(64))


@pytest.mark.limit_gpu_memory("64 MiB")
def test_what_others_left_does_not_count():
    tensor(60)


@pytest.mark.limit_gpu_memory("64 MiB")
def test_beyond():
    kept = tensor(40)
    for _ in range(2):
        more = tensor(30)  # <- beyond
    del kept, more


@pytest.mark.limit_gpu_memory("64 MB")
def test_sizes_are_decimal():
    tensor(62)


@pytest.mark.limit_gpu_memory("64 MiB")
def test_fixtures_count(weights):
    pass


@pytest.mark.limit_gpu_memory("64 MiB")
def test_other_failures_stay():
    assert tensor(100) is None


@pytest.mark.limit_gpu_memory("2 GB")
@pytest.mark.skip
def test_skipped():
    pass


def test_without_a_limit():
    tensor(1000)
