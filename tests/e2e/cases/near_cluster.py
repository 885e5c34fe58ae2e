# SPDX-License-Identifier: Apache-2.0
# The same cluster of 16 blocks, in a kernel that has opted in.
# expect-silent: exit=0
# gpu: sim:h200
import ctypes

import cudrv

CLUSTER_DIMENSION = 4
NON_PORTABLE_CLUSTER_SIZE_ALLOWED = 14


class Attribute(ctypes.Structure):
    _fields_ = [("id", ctypes.c_int), ("pad", ctypes.c_int), ("size", ctypes.c_uint * 16)]


class Config(ctypes.Structure):
    _fields_ = [("grid", ctypes.c_uint * 3), ("block", ctypes.c_uint * 3), ("shared", ctypes.c_uint), ("stream", ctypes.c_void_p),
                ("attributes", ctypes.POINTER(Attribute)), ("count", ctypes.c_uint)]


cudrv.init()
nop = cudrv.kernel("nop")
cudrv.call("cuFuncSetAttribute", nop, NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1)
cluster = Attribute(CLUSTER_DIMENSION, 0, (ctypes.c_uint * 16)(16, 1, 1))
config = Config((32, 1, 1), (128, 1, 1), 0, None, ctypes.pointer(cluster), 1)
cudrv.call("cuLaunchKernelEx", ctypes.byref(config), nop, None, None)
cudrv.synchronize()
