# SPDX-License-Identifier: Apache-2.0
# A cubin of another architecture in a file, loaded by CuPy.
# expect: cause=extension-arch-missing certainty=certain,likely exit=1
# needs: cupy nvcc
import os
import subprocess
import tempfile

import cupy


def compile_for(arch, folder):
    source, target = os.path.join(folder, "k.cu"), os.path.join(folder, "k.cubin")
    with open(source, "w") as stream:
        stream.write('extern "C" __global__ void touch(float *data) { data[0] = 1; }')
    command = [os.environ["NVCC"], "-arch=" + arch, "-cubin", source, "-o", target]
    subprocess.run(command, check=True)
    return target


with tempfile.TemporaryDirectory() as folder:
    other = "sm_80" if cupy.cuda.Device().compute_capability[0] != "8" else "sm_90"
    module = cupy.RawModule(path=compile_for(other, folder))  # <- here
    touch = module.get_function("touch")  # <- here
    touch((1,), (1,), (cupy.zeros(1, dtype=cupy.float32),))
