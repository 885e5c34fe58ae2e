# SPDX-License-Identifier: Apache-2.0
# A kernel waits for a flag that nobody sets, and the program for the kernel.
# expect: cause=kernel-hang certainty=certain exit=143 kernel=wait_for function=step
# options: --hang-after 5s
# needs: cupy
import cupy

WAIT_FOR = r"""
extern "C" __global__ void wait_for(volatile int *flag)
{
	while (!flag[0])
		;
}
"""
flag = cupy.zeros(1, dtype=cupy.int32)
wait_for = cupy.RawKernel(WAIT_FOR, "wait_for")
other = flag + 1  # a kernel that is loaded while another one runs waits for that one inside the driver


def step():
    wait_for((4,), (64,), (flag,))  # <- here


step()
other = flag + 1
cupy.cuda.Device().synchronize()
