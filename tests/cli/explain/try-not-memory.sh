# SPDX-License-Identifier: Apache-2.0
# Nothing runs for a failure that is not about memory.
cuwhy explain --try "CUDA error: an illegal memory access was encountered" -- sh -c 'echo it ran >&2'
