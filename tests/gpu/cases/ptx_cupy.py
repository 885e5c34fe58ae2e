# SPDX-License-Identifier: Apache-2.0
# The same in a file loaded by CuPy.
# expect: cause=ptx-newer-than-driver certainty=certain,likely exit=1
# needs: cupy
import os
import tempfile

import cupy

PTX = """
.version 99.0
.target sm_80
.address_size 64
.visible .entry touch() { ret; }
"""

cupy.zeros(1)
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "touch.ptx")
    with open(path, "w") as stream:
        stream.write(PTX)
    cupy.RawModule(path=path).get_function("touch")  # <- here
