# SPDX-License-Identifier: Apache-2.0
# The model was never moved.
# expect: cause=tensor-device-mismatch certainty=certain,likely exit=1
# needs: torch
# uses: helpers/linear.py
import torch
from helpers.linear import Head

Head()(torch.ones(2, 16, device="cuda"))
