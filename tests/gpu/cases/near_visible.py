# SPDX-License-Identifier: Apache-2.0
# The variable is set in time, and says something true.
# expect-silent: exit=0
# needs: torch
# same-output
import os

os.environ["CUDA_VISIBLE_DEVICES"] = "0"

import torch  # noqa: E402

print(torch.cuda.device_count(), torch.zeros(3, device="cuda").sum().item())
