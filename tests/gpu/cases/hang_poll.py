# SPDX-License-Identifier: Apache-2.0
# A program that asks again and again whether an event has come.
# expect: cause=kernel-hang certainty=certain exit=143 kernel=never
# options: --hang-after 5s
# needs: cupy torch
import time

import cupy
import torch
from helpers import raw

NEVER = r"""
extern "C" __global__ void never(volatile int *flag)
{
	while (!*flag)
		;
}
"""
flag = torch.zeros(1, dtype=torch.int32, device="cuda")
torch.cuda.synchronize()
event = torch.cuda.Event()
with cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):
    raw.kernel(NEVER, "never")((1,), (1,), (cupy.asarray(flag),))  # <- here
event.record()
while not event.query():
    time.sleep(0.01)
