# SPDX-License-Identifier: Apache-2.0
# Two layers that do not fit, two modules deep.
# expect: cause=shape-mismatch certainty=certain,likely exit=1
# needs: torch
# uses: helpers/layers.py
import torch
from helpers.layers import Wrapper

Wrapper(inside=32, given=64).cuda()(torch.ones(2, 16, device="cuda"))
