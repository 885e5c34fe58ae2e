# SPDX-License-Identifier: Apache-2.0
"""What PyTorch itself says about a program's memory and its models, for modules.py. The program ends with it."""
import json
import os

import torch

WRAPPERS = {"_orig_mod", "_fsdp_wrapped_module"}


def own(path):
    return ".".join(part for part in path.split(".") if part not in WRAPPERS)


def rounded(tensors):
    """Blocks of PyTorch's allocator are multiples of 512 bytes."""
    storages = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors if t.is_cuda}
    return sum((n + 511) // 512 * 512 for n in storages.values())


def tell(*models, parameters=True):
    """`parameters` False: they are not allocated one by one."""
    told, seen = [], set()
    for model in models:
        paths, held = [], {}
        for path, module in model.named_modules():
            mine = [t for t in (*module._parameters.values(), *module._buffers.values()) if t is not None and id(t) not in seen]
            seen.update(id(t) for t in mine)
            paths.append(own(path))
            if mine and parameters:
                held[own(path)] = rounded(mine)
        told.append({"model": type(model).__name__, "paths": paths, "parameters": held})
    torch.cuda.synchronize()
    print(json.dumps({"allocated": torch.cuda.memory_allocated(), "peak": torch.cuda.max_memory_allocated(), "models": told}), flush=True)
    os._exit(0)     # nothing is freed any more
