# SPDX-License-Identifier: Apache-2.0
# Not run: messages of every form that tools/mine_messages.py reads.
import logging
import warnings

logger = logging.getLogger(__name__)
FORMAT = "GPU {} has only {free_bytes} left"


def start(device, index, shape, version, count):
    if count:
        raise RuntimeError("plain words about CUDA")
    if shape:
        raise ValueError(f"on device {device}: shape {shape} at {index}" " goes on")
    if version:
        raise RuntimeError("driver %s is too old for CUDA %s" % (version, version))
    if index:
        raise MemoryError(FORMAT.format(index, free_bytes=count))
    message = "no GPU with " + str(version) + " found"
    if device:
        raise LookupError(message)
    assert shape, f"GPU kernel got {len(shape)} tensors"
    warnings.warn("a {brace} of the GPU")
    logger.error("NCCL gave up after %d steps", count)
    raise KeyError("nothing of interest")


def other(e):
    raise RuntimeError(e)
