# SPDX-License-Identifier: Apache-2.0
"""A stand-in for PyTorch: the few names that the package uses. FAKE_TORCH in the environment chooses how it behaves:
"idle" has not begun to use CUDA, "broken" raises from everything. FAKE_STORY names the story of tests/snap/make_snapshot.py that
its allocator has replayed; run_out() is its end."""

import os
import sys

__version__ = "2.99.0+cu130"
_how = os.environ.get("FAKE_TORCH", "")


class OutOfMemoryError(RuntimeError):
    pass


class AcceleratorError(RuntimeError):
    pass


class version:
    cuda = "13.0"


MIB = 1 << 20


def _block(size, state):
    return {"size": size, "requested_size": size, "state": state, "frames": []}


def _segment(address, blocks):
    total = sum(b["size"] for b in blocks)
    live = sum(b["size"] for b in blocks if b["state"] == "active_allocated")
    return {"device": 0, "address": address, "total_size": total, "allocated_size": live, "active_size": live,
            "requested_size": live, "stream": 0, "segment_type": "large", "segment_pool_id": (0, 0),
            "is_expandable": False, "frames": [], "blocks": blocks}


class cuda:
    @staticmethod
    def is_initialized():
        if _how == "broken":
            raise RuntimeError("CUDA error: unspecified launch failure")
        return _how != "idle" or cuda.started

    started = False

    @staticmethod
    def init():
        cuda.started = True

    @staticmethod
    def is_available():
        return True

    @staticmethod
    def device_count():
        return 2

    @staticmethod
    def memory_stats(device):
        if device:
            return {}
        return {"allocated_bytes.all.current": 14 << 30, "allocated_bytes.all.peak": 15 << 30,
                "reserved_bytes.all.current": 22 << 30, "reserved_bytes.all.peak": 22 << 30,
                "inactive_split_bytes.all.current": 8 << 30, "num_alloc_retries": 3, "num_ooms": 1}

    class memory:
        history = []

        @classmethod
        def _record_memory_history(cls, **args):
            cls.history.append(args)

        @staticmethod
        def _snapshot():
            if _how == "no snapshot":
                raise RuntimeError("CUDA error: unspecified launch failure")
            if _story is not None:
                return _story
            def half():
                return [_block(MIB, state) for _ in range(8) for state in ("active_allocated", "inactive")]
            return {"segments": [_segment(0x7f0000000000 + i * 64 * MIB, half()) for i in range(4)],
                    "device_traces": [[{"action": "oom", "size": 64 * MIB, "device_free": 4 * MIB, "stream": 0,
                                        "addr": 4 * MIB, "frames": [{"filename": "train.py", "line": 7, "name": "step"}]}]],
                    "allocator_settings": {}}


class _C:
    observers = []
    enabled = False

    @classmethod
    def _cuda_attach_out_of_memory_observer(cls, observer):
        cls.observers.append(observer)

    @classmethod
    def _cuda_isHistoryEnabled(cls):
        if not cuda.is_initialized():
            os.abort()  # as PyTorch 2.11 does
        return cls.enabled


_story = None


def run_out(message):
    """The end of the story: observers see it, and then the exception has freed everything."""
    global _story
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "snap"))
    import make_snapshot
    _story = make_snapshot.make("2.11", os.environ["FAKE_STORY"])
    for observer in _C.observers:
        observer(0, 4 << 30, 24 << 30, 1 << 30)
    _story = {"segments": [], "device_traces": [[]], "allocator_settings": {}}
    raise OutOfMemoryError(message)
