// SPDX-License-Identifier: Apache-2.0
// Not compiled: see launch.py.
void check(const Tensor &t, int device, size_t bytes)
{
	TORCH_CHECK(t.is_cuda(), "expected a CUDA tensor, ", "but got one on ", t.device(), "!");
	// TORCH_CHECK(false, "a comment about CUDA");
	TORCH_CHECK_INDEX(device < 4, "GPU ", device_index, " is out of range");
	TORCH_CHECK_WITH(OutOfMemoryError, ok, "no memory for ", format_bytes(bytes), " (a, b) \"quoted\"");
	TORCH_WARN("slow GPU kernel");
	throw std::runtime_error("cuBLAS failed: " + name(status));
	LOG(ERROR) << "NCCL of rank " << rank << " stopped";
	AT_ERROR("not implemented on this shelf");
}
