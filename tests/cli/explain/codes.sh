# SPDX-License-Identifier: Apache-2.0
# Codes by number and name, statuses, Xids.
cuwhy explain 700 | head -n 1
cuwhy explain cudaErrorIllegalAddress | head -n 1
cuwhy explain CUBLAS_STATUS_ALLOC_FAILED | head -n 1
cuwhy explain "NCCL error 2" | head -n 1
cuwhy explain Xid 79 | head -n 1
cuwhy explain "Xid 79" --json | grep -o '"cause":"[a-z-]*"' | head -n 1
