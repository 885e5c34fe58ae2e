# SPDX-License-Identifier: Apache-2.0
# A tensor on a device that is not there.
# expect: cause=device-ordinal-out-of-range certainty=certain,likely exit=1
# needs: torch
import torch

x = torch.zeros(1, device="cuda:31")  # <- here
