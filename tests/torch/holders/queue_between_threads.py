# SPDX-License-Identifier: Apache-2.0
# keeps: pipeline.batches.queue
# also: pipeline.batches.queue[*]['x']
import queue
import threading
import time

import torch


def big(n=1):
    return torch.empty(n * (256 << 20), dtype=torch.uint8, device="cuda")


class Pipeline:
    def __init__(self):
        self.batches = queue.Queue()
        self.error = None

    def produce(self):
        try:
            while True:
                self.batches.put({"x": big(), "id": 1})
        except torch.OutOfMemoryError:
            self.error = True


def main():
    pipeline = Pipeline()
    threading.Thread(target=pipeline.produce, daemon=True).start()
    first = pipeline.batches.get()
    while not pipeline.error:
        time.sleep(0.05)
    return first, big(2)


main()
