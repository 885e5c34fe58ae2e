# SPDX-License-Identifier: Apache-2.0
"""What programs do that a guest in their process must survive, and must not make worse."""
from toolbox import same


def rule__it_reads_no_more_than_the_driver_wrote(box):
    """Every variable that the driver writes ends where the program's memory ends."""
    program = [box.program("edge", "-lcuda")]
    plain, run = box.plain_sim(program), box.under(program)
    same((plain.status, plain.out), (0, "unharmed\n"), "the plain program (%s)" % plain.err)
    same((run.status, run.out), (0, "unharmed\n"), "the same under cuwhy (%s)" % run.err)
