# SPDX-License-Identifier: Apache-2.0
# Objects go from rank to rank, one or several at a time: their sizes pass through the GPU, and come back as what they were.
# expect-silent: exit=0
# needs: torch
# gpu: sim:h200*2
# uses: helpers/ranks.py
import torch
import torch.distributed as dist

from helpers import ranks

rank = ranks.join(2)
for sizes in ((10, 10), (10, 200), (300, 5)):
    got = [None, None]
    dist.all_gather_object(got, "x" * sizes[rank])
    assert [len(text) for text in got] == list(sizes), (got, sizes)
    sent = [{"sizes": sizes, "from": 1}] if rank == 1 else [None]
    dist.broadcast_object_list(sent, 1)
    assert sent == [{"sizes": sizes, "from": 1}], sent

    several = ["name", {"lr": 1e-3, "sizes": sizes}, None, list(range(sizes[0]))]
    sent = list(several) if rank == 0 else [None] * 4
    dist.broadcast_object_list(sent, 0)
    assert sent == several, sent
    got = [None]
    dist.scatter_object_list(got, ["for 0" * sizes[0], ("for 1", sizes)] if rank == 0 else None, src=0)
    assert got[0] == ("for 0" * sizes[0] if rank == 0 else ("for 1", sizes)), got
    got = [None, None] if rank == 1 else None
    dist.gather_object({"rank": rank, "text": "y" * sizes[rank]}, got, dst=1)
    assert rank == 0 or [len(one["text"]) for one in got] == list(sizes), got
    dist.barrier()
    if hasattr(dist, "send_object_list"):
        if rank == 0:
            dist.send_object_list(["one", sizes], dst=1)
        else:
            received = [None, None]
            dist.recv_object_list(received, src=0)
            assert received == ["one", sizes], received

# the other things that training scripts do between steps
loss = torch.tensor([float(rank + 1)], device="cuda")
dist.all_reduce(loss)
assert loss.item() == 3
samples = torch.tensor(10 * (rank + 1), device="cuda")
dist.all_reduce(samples, op=dist.ReduceOp.MAX)
assert samples.item() == 20
stop = torch.tensor([rank == 1], dtype=torch.uint8, device="cuda")
dist.broadcast(stop, src=1)
assert stop.item() == 1
lengths = [torch.zeros(1, dtype=torch.long, device="cuda") for _ in range(2)]
dist.all_gather(lengths, torch.tensor([7 + rank], device="cuda"))
assert [one.item() for one in lengths] == [7, 8]
group = dist.new_group([0, 1])
dist.barrier(group=group, device_ids=[rank])
gloo = dist.new_group([0, 1], backend="gloo")
dist.monitored_barrier(group=gloo)
parts = [torch.zeros(3, device="cuda") for _ in range(2)] if rank == 0 else None
dist.gather(torch.full((3,), float(rank), device="cuda"), parts, dst=0)
assert rank or [part.tolist() for part in parts] == [[0.0] * 3, [1.0] * 3]
dist.destroy_process_group()
