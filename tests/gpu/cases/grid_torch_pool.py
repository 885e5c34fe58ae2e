# SPDX-License-Identifier: Apache-2.0
# A batch of 70,000 through a stock PyTorch operator that puts the batch in grid.z.
# expect: cause=launch-config-grid-limit certainty=certain,likely exit=1
# needs: torch
# uses: helpers/pooling.py
# same-output
import torch
from helpers.pooling import Model


def main():
    model = Model().cuda()
    x = torch.randn(70000, 1, 4, 4, device="cuda")
    print("input", tuple(x.shape))
    print(model(x).shape)


main()
