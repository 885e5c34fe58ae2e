# SPDX-License-Identifier: Apache-2.0
"""How the memory that cuDNN takes beside its tensors is measured, written down and read again."""
import json


def requested(torch, which):
    """Bytes that were asked for: the allocator rounds large blocks up to 2 MiB."""
    return torch.cuda.memory_stats()["requested_bytes.all." + which]


def peak_beyond_result(torch, function):
    """What a call takes at its peak beside what it returns, and that. The first call searches for an engine and prepares what stays,
    the second one is measured."""
    function()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    result = function()
    torch.cuda.synchronize()
    return requested(torch, "peak") - requested(torch, "current"), result


def print_rows(shapes, key, measure):
    """One line for each shape, and one about the machine."""
    import torch  # pylint: disable=import-outside-toplevel  # --compare needs no PyTorch

    for shape in shapes:
        print(json.dumps({"shape": shape, key: measure(torch, shape)}), flush=True)
        torch.cuda.empty_cache()
    card = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "cudnn": torch.backends.cudnn.version()}
    print(json.dumps({"machine": card}), flush=True)


def read_rows(path):
    """By their shapes."""
    with open(path, encoding="utf-8") as stream:
        rows = [json.loads(line) for line in stream if line.startswith("{")]
    return {json.dumps(row["shape"], sort_keys=True): row for row in rows if "shape" in row}
