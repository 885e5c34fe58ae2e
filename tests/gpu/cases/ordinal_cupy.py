# SPDX-License-Identifier: Apache-2.0
# The same in CuPy.
# expect: cause=device-ordinal-out-of-range exit=1
# needs: cupy
import cupy

cupy.cuda.Device(35).use()  # <- here
