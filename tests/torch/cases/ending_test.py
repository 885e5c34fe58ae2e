# SPDX-License-Identifier: Apache-2.0
# A test runner catches every exception: the tests that failed are why the run did, but others may have failed, too.
# expect: cause=oom-request-too-large certainty=likely exit=1
# expect-note: cause=oom-request-too-large
# needs: torch
import unittest

import torch


class Test(unittest.TestCase):
    def test_expected(self):
        with self.assertRaises(RuntimeError):
            torch.empty(1 << 41, device="cuda")  # <- note

    def test_large(self):
        torch.empty(1 << 40, device="cuda")  # <- here

    def test_small(self):
        torch.empty(8, device="cuda").add_(1)


unittest.main()
