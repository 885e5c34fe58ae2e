# SPDX-License-Identifier: Apache-2.0
# A module moved to a device that is not there; the innermost user frame is in a helper.
# expect: cause=device-ordinal-out-of-range certainty=certain,likely exit=1
# needs: torch
import torch.nn as nn


def place(model, index):
    return model.to("cuda:%d" % index)  # <- here


def build():
    return place(nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2)), 7 + 10)


build()
