# SPDX-License-Identifier: Apache-2.0
# Objects go from rank to rank: their sizes pass through the GPU, and come back as what they were computed from.
# expect-silent: exit=0
# needs: torch
# gpu: sim:h200*2
import os
import subprocess
import sys
import tempfile

import torch
import torch.distributed as dist

if "RANK" not in os.environ:
    with tempfile.TemporaryDirectory() as folder:
        ranks = [subprocess.Popen([sys.executable, __file__, "file://%s/meet" % folder],
                                  env=dict(os.environ, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="2")) for rank in range(2)]
        sys.exit(max(rank.wait() for rank in ranks))

rank = int(os.environ["RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl", init_method=sys.argv[1], rank=rank, world_size=2)
for sizes in ((10, 10), (10, 200), (300, 5)):
    got = [None, None]
    dist.all_gather_object(got, "x" * sizes[rank])
    assert [len(text) for text in got] == list(sizes), (got, sizes)
    sent = [{"sizes": sizes, "from": 1}] if rank == 1 else [None]
    dist.broadcast_object_list(sent, 1)
    assert sent == [{"sizes": sizes, "from": 1}], sent
dist.destroy_process_group()
