# SPDX-License-Identifier: Apache-2.0
"""A test that takes too long, once."""
import os
import time

CACHE = os.environ["OWN_CACHE"]


def test_hangs_once_under_cuwhy():
    path = os.path.join(CACHE, "late")
    if os.path.basename(CACHE) == "cuwhy" and not os.path.exists(path):
        open(path, "w").close()
        time.sleep(60)
