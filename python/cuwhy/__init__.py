# SPDX-License-Identifier: Apache-2.0
"""Why did CUDA fail in this program? The verdicts of cuwhy, from inside Python.

    cuwhy.explain(exc)      the verdict on an exception or a text, as an object
    cuwhy.fits(exc, batch=32)       out of memory: the largest batch that would have fit
    with cuwhy.watch():     the verdict on a CUDA error that leaves the block; the error itself is unchanged
    cuwhy.enable()          the same for every uncaught error of this process, and for every cell of a notebook

The command `cuwhy run` knows more than any of these can: see `cuwhy.LIMITS`.
"""

from ._collect import LIMITS
from ._fits import Fits, fits
from ._hooks import disable, enable
from ._program import CuwhyError, program, under_run, version
from ._verdict import Candidate, Error, Evidence, Fault, Fix, Frame, Kernel, Place, Verdict
from ._explain import explain, is_cuda_error
from ._watch import Watch, watch

__all__ = [
    "LIMITS", "Candidate", "CuwhyError", "Error", "Evidence", "Fault", "Fits", "Fix", "Frame", "Kernel", "Place", "Verdict",
    "Watch", "disable", "enable", "explain", "fits", "is_cuda_error", "program", "under_run", "version", "watch",
]
