# SPDX-License-Identifier: Apache-2.0
# Two children fail for different reasons, one after the other.
# expect: cause=launch-config-grid-limit exit=2
# expect-other: cause=oom-request-too-large
import subprocess
import sys

if len(sys.argv) == 1:
    later = subprocess.Popen([sys.executable, __file__, "later"], stdin=subprocess.PIPE)
    subprocess.run([sys.executable, __file__, "now"])
    later.communicate(b"")
    sys.exit(2)

import cudrv  # noqa: E402

cudrv.init()
if sys.argv[1] == "now":
    cudrv.launch(cudrv.kernel("nop"), (1, 70000), (1,))  # <- here
sys.stdin.read()
cudrv.alloc(1 << 40)  # <- other
