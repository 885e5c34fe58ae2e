# SPDX-License-Identifier: Apache-2.0
"""Four Ray tasks and an actor, each a rank in a worker of its own; the task of rank 2 faults in a kernel. ray_job.py CUWHY JOB"""
import os
import sys

import ray

HERE = os.path.dirname(os.path.abspath(__file__))
cuwhy, job = sys.argv[1:3]


def environment(rank):
    return {"py_executable": "%s run --gpu sim:h200 --job %s -- %s" % (cuwhy, job, sys.executable),
            "env_vars": {"RANK": str(rank), "WORLD_SIZE": "5", "CUWHY_JOB_ID": "ray",
                         "PYTHONPATH": os.pathsep.join([os.path.join(HERE, "..", "e2e", "site-packages"), os.environ["PYTHONPATH"]])}}


def work(rank):
    import ctypes
    import cudrv
    cudrv.init()
    data = cudrv.alloc(4096)
    if rank == 2:
        cudrv.launch(cudrv.kernel("oob_store"), (2,), (64,), cudrv.u64(data), ctypes.c_int64(1 << 40))
    cudrv.synchronize()
    return rank


class Actor:
    def work(self, rank):
        return work(rank)


ray.init(num_cpus=5, include_dashboard=False, log_to_driver=False)
task, actor = ray.remote(work), ray.remote(Actor)
waiting = [task.options(runtime_env=environment(rank)).remote(rank) for rank in range(4)]
one = actor.options(runtime_env=environment(4)).remote()
waiting.append(one.work.remote(4))
for result in waiting:
    try:
        print("rank", ray.get(result))
    except Exception as e:
        print("failed:", str(e).splitlines()[-1])
ray.shutdown()
