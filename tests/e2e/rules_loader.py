# SPDX-License-Identifier: Apache-2.0
"""What a program sees of the audit library through which a dry run gives it stand-ins for NVIDIA's libraries."""
import os
import shutil

from toolbox import same

NVIDIA = "libcudart.so.12"


def other_runtime(box):
    """A library of that name somewhere else, as in the folder of a wheel."""
    folder = os.path.join(box.scratch, "nvidia")
    os.mkdir(folder)
    return shutil.copy(box.library("static_tls", "-DLIBRARY"), os.path.join(folder, NVIDIA))


def rule__a_program_that_has_set_its_title_gets_the_stand_ins(box):
    argv = [box.program("title", "-ldl"), other_runtime(box)]
    for more in ([], ["title"]):
        run = box.under(argv + more)
        same((run.status, run.out.strip()), (0, os.path.join(box.sim, NVIDIA)), "status, library")


def rule__a_dry_run_leaves_the_room_for_static_thread_local_storage_to_the_program(box):
    """glibc has some left over for libraries that are loaded late. Where there is an audit library, all others come out of it, too."""
    library = box.library("static_tls", "-DLIBRARY")
    late = [shutil.copy(library, os.path.join(box.scratch, "late%d.so" % i)) for i in range(100)]
    program = box.program("static_tls", "-ldl")
    plain = int(box.plain([program] + late).out)
    assert 0 < plain < len(late), "%d of %d fit" % (plain, len(late))
    recorded = int(box.under([program] + late, gpu=None).out)
    dry = int(box.under([program] + late).out)
    with_cuda = int(box.under([program, "libcuda.so.1", NVIDIA] + late).out) - 2
    assert min(recorded, dry, with_cuda) >= plain, "%d fit, recorded %d, in a dry run %d, after CUDA is loaded %d" % (plain, recorded, dry, with_cuda)
