# SPDX-License-Identifier: Apache-2.0
# keeps: history.records[*].args[1]
# keeps: history.records[*].args
# keeps: history.records[*].args[*]
import logging

import torch


def big(n=1):
    return torch.empty(n * (256 << 20), dtype=torch.uint8, device="cuda")


class History(logging.Handler):
    def __init__(self):
        super().__init__()
        self.records = []

    def emit(self, record):
        self.records.append(record)


history = History()
log = logging.getLogger("train")
log.addHandler(history)
log.setLevel(logging.INFO)
log.propagate = False
step = 0
while True:
    log.info("step %d: %s", step, big())
    step += 1
