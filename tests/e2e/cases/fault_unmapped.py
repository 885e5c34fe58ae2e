# SPDX-License-Identifier: Apache-2.0
# Memory that was mapped piece by piece (cuMemCreate, cuMemMap) and is used after it was unmapped.
# expect: cause=illegal-access-use-after-free certainty=certain exit=1 code=700 kernel=fill
import ctypes

import cudrv

SIZE = 2 << 20


class Prop(ctypes.Structure):
    _fields_ = [(n, ctypes.c_int) for n in ("type", "handles", "where", "id")] + [("rest", ctypes.c_uint64 * 4)]


class Access(ctypes.Structure):
    _fields_ = [(n, ctypes.c_int) for n in ("where", "id", "flags")]


cudrv.init()
fill = cudrv.kernel("fill")
base, handle = ctypes.c_uint64(), ctypes.c_uint64()
size, none = ctypes.c_size_t(SIZE), ctypes.c_uint64(0)
cudrv.call("cuMemAddressReserve", ctypes.byref(base), size, ctypes.c_size_t(0), none, none)
cudrv.call("cuMemCreate", ctypes.byref(handle), size, ctypes.byref(Prop(1, 0, 1, 0)), none)
cudrv.call("cuMemMap", base, size, ctypes.c_size_t(0), handle, none)
cudrv.call("cuMemSetAccess", base, size, ctypes.byref(Access(1, 0, 3)), ctypes.c_size_t(1))
cudrv.launch(fill, (1,), (32,), cudrv.u64(base.value), cudrv.f32(1), cudrv.i32(32))
cudrv.synchronize()
cudrv.call("cuMemUnmap", base, size)
cudrv.launch(fill, (1,), (32,), cudrv.u64(base.value), cudrv.f32(1), cudrv.i32(32))  # <- here
cudrv.synchronize()
