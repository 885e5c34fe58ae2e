# SPDX-License-Identifier: Apache-2.0
# None of the program's own code runs when its variables are looked at: tensors of derived classes are left out, and what cannot be asked.
# expect: cause=oom-request-too-large exit=1
# tensors: plain float32 [4] cuda:0; sparse float32 [3, 3] cpu; empty float32 [0, 5] cpu
# needs: torch
import sys

import torch


class Loud(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if Loud.armed:
            print("asked", file=sys.stderr)
            sys.stderr.flush()
            import os
            os._exit(9)
        return super().__torch_function__(func, types, args, kwargs or {})


class Odd:
    def __getattribute__(self, name):
        import os
        os._exit(9)

    __class__ = torch.Tensor


class Keys(dict):
    def __iter__(self):
        import os
        os._exit(9)

    keys = items = __iter__


Loud.armed = False


def step():
    plain = torch.ones(4, device="cuda")
    sparse = torch.eye(3).to_sparse()
    empty = torch.empty(0, 5)
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
    loud, odd, keys = torch.ones(3).as_subclass(Loud), Odd(), Keys(x=torch.ones(3))
    me = [1]
    me.append(me)
    Loud.armed = True
    return torch.empty(10 ** 12, device="cuda"), loud, odd, keys, plain, sparse, empty, nested  # <- here


step()
