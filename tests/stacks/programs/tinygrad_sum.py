# SPDX-License-Identifier: Apache-2.0
from tinygrad import Device, Tensor

assert Device.DEFAULT == "CUDA", Device.DEFAULT
x = Tensor.rand(64, 64)
print("generated", (x @ x).relu().sum(0).realize().shape)
