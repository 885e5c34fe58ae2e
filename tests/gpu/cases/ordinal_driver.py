# SPDX-License-Identifier: Apache-2.0
# The driver asked directly, as extensions do.
# expect: cause=device-ordinal-out-of-range certainty=certain,likely exit=1 api=cuDeviceGet code=101
# needs: torch
import ctypes
import sys

cuda = ctypes.CDLL("libcuda.so.1")
assert cuda.cuInit(0) == 0
device = ctypes.c_int()
code = cuda.cuDeviceGet(ctypes.byref(device), 63)  # <- here
if code:
    sys.exit("cuDeviceGet: %d" % code)
