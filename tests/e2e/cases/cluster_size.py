# SPDX-License-Identifier: Apache-2.0
# A cluster of 16 blocks, where 8 is what every GPU supports and the kernel has not opted in to more.
# expect: cause=launch-config-bad-shape certainty=likely exit=1 code=912
# gpu: sim:h200
import ctypes

import cudrv

CLUSTER_DIMENSION = 4


class Attribute(ctypes.Structure):
    _fields_ = [("id", ctypes.c_int), ("pad", ctypes.c_int), ("size", ctypes.c_uint * 16)]


class Config(ctypes.Structure):
    _fields_ = [("grid", ctypes.c_uint * 3), ("block", ctypes.c_uint * 3), ("shared", ctypes.c_uint), ("stream", ctypes.c_void_p),
                ("attributes", ctypes.POINTER(Attribute)), ("count", ctypes.c_uint)]


cudrv.init()
nop = cudrv.kernel("nop")
cluster = Attribute(CLUSTER_DIMENSION, 0, (ctypes.c_uint * 16)(16, 1, 1))
config = Config((32, 1, 1), (128, 1, 1), 0, None, ctypes.pointer(cluster), 1)
cudrv.call("cuLaunchKernelEx", ctypes.byref(config), nop, None, None)  # <- here
