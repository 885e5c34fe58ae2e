# SPDX-License-Identifier: Apache-2.0
"""Why did CUDA fail in this program? The verdicts of cuwhy, from inside Python.

    cuwhy.explain(exc)      the verdict on an exception or a text, as an object
    cuwhy.fits(exc, batch=32)       out of memory: the largest batch that would have fit
    with cuwhy.watch():     the verdict on a CUDA error that leaves the block; the error itself is unchanged
    cuwhy.enable()          the same for every uncaught error of this process, and for every cell of a notebook
    cuwhy.held()            under `cuwhy run`: which objects keep the tensors alive at this moment
    %load_ext cuwhy         for notebooks: %%cuwhy explains the cell's error, %%memory says what the cell needed

Callbacks for trainers: cuwhy.lightning.CuwhyCallback, cuwhy.transformers.CuwhyCallback. For pytest: the verdict in the report of a
failed test, and @pytest.mark.limit_gpu_memory("2 GB").

The command `cuwhy run` knows more than any of these can: see `cuwhy.LIMITS`.
"""

from typing import Any

from ._collect import LIMITS
from ._fits import Fits
from ._held import Held, Holder, held
from ._hooks import disable, enable
from ._program import CuwhyError, program, under_run, version
from ._verdict import Candidate, Error, Evidence, Fault, Fix, Frame, Kernel, Place, Verdict
from ._explain import explain, fits, is_cuda_error
from ._version import package_version
from ._watch import Watch, watch

__version__ = package_version()

__all__ = [
    "LIMITS", "Candidate", "CuwhyError", "Error", "Evidence", "Fault", "Fits", "Fix", "Frame", "Held", "Holder", "Kernel", "Place", "Verdict",
    "Watch", "__version__", "disable", "enable", "explain", "fits", "held", "is_cuda_error", "program", "under_run", "version",
    "watch",
]


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext cuwhy`"""
    from . import _magics
    _magics.load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """`%unload_ext cuwhy`"""
    from . import _magics
    _magics.unload(shell)
