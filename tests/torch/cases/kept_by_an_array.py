# SPDX-License-Identifier: Apache-2.0
# An array of objects of NumPy has the tensors.
# expect: cause=oom-growth|oom-capacity exit=1
# needs: torch numpy
# gpu: sim:rtx4090
# holder: store.shards 46
import numpy
import torch


class Store:
    def __init__(self):
        self.shards = numpy.empty((20, 10), dtype=object)

    def fill(self):
        for row in range(20):
            for column in range(10):
                self.shards[row, column] = torch.empty(512 << 20, dtype=torch.uint8, device="cuda")


store = Store()
store.fill()
