# SPDX-License-Identifier: Apache-2.0
# A shell starts Python, which starts a shell, which starts the Python that fails.
# expect: cause=tensor-device-mismatch certainty=certain,likely exit=1
# needs: torch
import os
import subprocess
import sys

depth = int(os.environ.get("DEPTH", "0"))
if depth < 2:
    os.environ["DEPTH"] = str(depth + 1)
    command = 'exec "$0" "$1"' if depth else '"$0" "$1"; exit $?'
    sys.exit(subprocess.run(["/bin/sh", "-c", command, sys.executable, __file__]).returncode)

import torch  # noqa: E402

torch.ones(2, 2, device="cuda").mm(torch.ones(2, 2))  # <- here
