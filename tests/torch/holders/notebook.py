# SPDX-License-Identifier: Apache-2.0
# keeps: shell.user_ns['Out']
# keeps: shell.user_ns[*]
# keeps: shell.user_ns['Out'][*]
# keeps: Out
# keeps: Out[*]
import torch


def big(n=1):
    return torch.empty(n * (256 << 20), dtype=torch.uint8, device="cuda")


class Shell:
    def __init__(self):
        self.user_ns = {"In": [], "Out": {}, "torch": torch, "big": big, "_": None}

    def run_cell(self, source):
        self.user_ns["In"].append(source)
        value = eval(compile(source, "<cell %d>" % len(self.user_ns["In"]), "eval"), self.user_ns)
        self.user_ns["Out"][len(self.user_ns["In"])] = self.user_ns["_"] = value


def main():
    shell = Shell()
    while True:
        shell.run_cell("big()")


main()
