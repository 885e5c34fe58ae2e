# SPDX-License-Identifier: Apache-2.0
# Memory of another library: CuPy's pool gives it back while PyTorch code still has the address.
# expect: cause=illegal-access-use-after-free certainty=certain exit=1 code=700 kernel=copy
# needs: torch cupy
import cupy
import torch

copy = cupy.RawKernel(r"""
extern "C" __global__ void copy(const float *in, float *out)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	out[i] = in[i];
}
""", "copy")


def read(pointer):
    out = torch.empty(1024, device="cuda")
    copy((4,), (256,), (pointer, out.data_ptr()))  # <- here
    return out


source = cupy.ones(32 << 20, dtype=cupy.float32)
pointer = source.data.ptr
print(read(pointer).sum().item())
del source
cupy.get_default_memory_pool().free_all_blocks()
result = read(pointer) + 1
print(result.sum().item())
