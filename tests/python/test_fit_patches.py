# SPDX-License-Identifier: Apache-2.0
"""Which code `cuwhy fit` edits, and how: shapes that it knows, and those that it must leave alone."""

import importlib.util
import os
import pathlib
import tempfile
import textwrap
import unittest

MODULE = pathlib.Path(__file__).parents[2] / "src" / "fit" / "_cuwhy_patches.py"
spec = importlib.util.spec_from_file_location("fit_patches", MODULE)
patches = importlib.util.module_from_spec(spec)
spec.loader.exec_module(patches)


class FitPatches(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def proposed(self, change, text, *more, head="import torch\n"):
        """The edited text; None if there is no edit. Lines with "# <-" are those at which it applies."""
        path = os.path.join(self.folder.name, "train.py")
        data = text if isinstance(text, bytes) else (head + textwrap.dedent(text)).encode("utf-8")
        with open(path, "wb") as file:
            file.write(data)
        lines = [n for n, line in enumerate(data.split(b"\n"), 1) if b"# <-" in line]
        found = list(patches.propose({change: [(path, line, *more) for line in lines]}))
        self.assertLessEqual(len(found), 1)
        if not found:
            return None
        self.assertEqual((found[0]["patch"], found[0]["file"]), (change, path))
        return found[0]["text"][len(head):]

    def becomes(self, change, text, want, *more):
        self.assertEqual(self.proposed(change, text, *more), textwrap.dedent(want))

    def stays(self, change, text, *more, **named):
        self.assertIsNone(self.proposed(change, text, *more, **named))

    def test_a_call_of_a_model_gets_a_block_without_gradients(self):
        self.becomes("no_grad", """
            def validate(model, x):
                y = model(  # <-
                    x,
                )
                return y
            """, """
            def validate(model, x):
                with torch.no_grad():
                    y = model(  # <-
                        x,
                    )
                return y
            """)
        self.becomes("no_grad", "if 1:\n\tkept.append(model(x))  # <-\n", "if 1:\n\twith torch.no_grad():\n\t\tkept.append(model(x))  # <-\n")
        self.becomes("no_grad", "def f():\n    return model('ä')  # <-\n", "def f():\n    with torch.no_grad():\n        return model('ä')  # <-\n")

    def test_two_lines_are_one_edit(self):
        self.becomes("no_grad", "a = model(x)  # <-\nb = model(y)  # <-\n",
                     "with torch.no_grad():\n    a = model(x)  # <-\nwith torch.no_grad():\n    b = model(y)  # <-\n")

    def test_a_line_that_is_not_alone_is_left(self):
        self.stays("no_grad", "a = 1; y = model(x)  # <-\n")
        self.stays("no_grad", "if x: y = model(x)  # <-\n")
        self.stays("no_grad", "for x in model(y):  # <-\n    pass\n")
        self.stays("no_grad", "y = [model(x)  # <-\n     for x in z]; w = 1\n")
        self.stays("no_grad", "async def f():\n    y = await model(x)  # <-\n")
        self.stays("no_grad", "model(x).sum().backward()  # <-\n")

    def test_text_over_several_lines_is_left(self):
        self.stays("no_grad", 'y = model("""a  # <-\nb""")\n')

    def test_a_file_that_calls_torch_otherwise_is_left(self):
        for head in ("", "import torch as t\n", "from torch import nn\n", "import torch.nn as nn\n", "def f():\n    import torch\n"):
            self.stays("no_grad", "y = model(x)  # <-\n", head=head)
        self.assertIsNotNone(self.proposed("no_grad", "y = model(x)  # <-\n", head="import os, torch.nn\n"))

    def test_files_that_cannot_be_edited_here_are_left(self):
        self.stays("no_grad", b"import torch\ny = model(x)  # <-")
        self.stays("no_grad", b"import torch\r\ny = model(x)  # <-\r\n")
        self.stays("no_grad", b"# coding: latin-1\nimport torch\ny = model('\xe4')  # <-\n")
        self.stays("no_grad", b"import torch\ny = model(x)  # <-\nif\n")
        self.assertEqual(list(patches.propose({"no_grad": [("/none/such.py", 1)]})), [])

    def test_autocast_is_around_the_model_and_its_loss(self):
        self.becomes("bf16", """
            out = model(x)  # <-
            loss = f(out)
            loss.backward()
            """, """
            with torch.autocast("cuda", torch.bfloat16):
                out = model(x)  # <-
                loss = f(out)
            loss.backward()
            """)
        self.becomes("bf16", """
            def loss_of(x):
                out = model(x)  # <-

                return f(out)
            """, """
            def loss_of(x):
                with torch.autocast("cuda", torch.bfloat16):
                    out = model(x)  # <-

                    return f(out)
            """)
        self.becomes("bf16", "def f(x):\n    return model(x)  # <-\nprint()\n",
                     'def f(x):\n    with torch.autocast("cuda", torch.bfloat16):\n        return model(x)  # <-\nprint()\n')

    def test_autocast_is_never_around_backward(self):
        self.stays("bf16", "f(model(x)).backward()  # <-\n")
        self.stays("bf16", "out = model(x)  # <-\nloss = f(out); loss.backward()\n")
        self.stays("bf16", "out = model(x)  # <-\nif out:\n    loss = f(out)\nloss.backward()\n")
        self.stays("bf16", "out = model(x)  # <-\na = 1\nb = 1\nc = 1\nd = 1\nloss = f(out)\nloss.backward()\n")

    def test_a_block_of_a_loop_is_called_by_checkpoint(self):
        self.becomes("checkpoint", """
            for i, block in enumerate(blocks):
                x = block(x, mask=m[i],)  # <-
            """, """
            for i, block in enumerate(blocks):
                x = torch.utils.checkpoint.checkpoint(block, x, mask=m[i], use_reentrant=False)  # <-
            """)
        self.becomes("checkpoint", "for layer in net:\n    é = layer((x), *y)  # <-\n",
                     "for layer in net:\n    é = torch.utils.checkpoint.checkpoint(layer, (x), *y, use_reentrant=False)  # <-\n")

    def test_other_calls_are_left(self):
        for text in ("x = blocks(x)  # <-\n", "for b in blocks:\n    x = b(b(x))  # <-\n", "for b in blocks:\n    x = b()  # <-\n",
                     "for b in blocks:\n    x = b.run(x)  # <-\n", "for b in blocks:\n    x = b(  # <-\n        x)\n",
                     "x = [b(x) for b in blocks]  # <-\n", "for b in blocks:\n    pass\nx = b(x)  # <-\n"):
            self.stays("checkpoint", text)

    def test_an_optimizer_gets_an_argument(self):
        self.becomes("foreach", "o = torch.optim.Adam(m.parameters(), lr=f(1))  # <-\n", "o = torch.optim.Adam(m.parameters(), lr=f(1), foreach=False)  # <-\n", "Adam")
        self.becomes("foreach", "o = Adam(  # <-\n    m.parameters(),\n    **more,\n)\n", "o = Adam(  # <-\n    m.parameters(),\n    **more, foreach=False,\n)\n", "Adam")
        for text in ("o = make(m)  # <-\n", "o = Adam(p for p in m)  # <-\n", "o = Adam(m, foreach=True)  # <-\n", "a, b = Adam(m), Adam(n)  # <-\n",
                     "o = Adam()  # <-\n"):
            self.stays("foreach", text, "Adam")

    def batch(self, *texts):
        """What 40 % of a batch of 64 becomes: the edited lines."""
        paths = []
        for i, text in enumerate(texts):
            paths.append(os.path.join(self.folder.name, "batch%d.py" % i))
            with open(paths[-1], "w", encoding="utf-8") as file:
                file.write(text)
        found = list(patches.smaller_batches(paths, 64, [400000]))
        self.assertLessEqual(len(found), 1)
        return [line for one in found for line in one["diff"].splitlines()[2:] if line.startswith("+")]

    def test_a_batch_that_has_a_name_is_made_smaller(self):
        for text, want in (("BATCH = 64\n", "BATCH = 25"), ("batch_size: int = 64  # x\n", "batch_size: int = 25  # x"),
                           ("load(data, batch_size=64)\n", "load(data, batch_size=25)"), ("bs = 64\n", "bs = 25"),
                           ("p.add_argument('-b', '--batch-size', type=int, default=64)\n", "p.add_argument('-b', '--batch-size', type=int, default=25)")):
            self.assertEqual(self.batch(text + "hidden = 64\n"), ["+" + want])

    def test_a_batch_without_a_name_or_with_two_is_left(self):
        for text in ("hidden = 64\n", "batch = 32\n", "batch = 64.0\n", "batch = True\n", "batch = 64\nbatch_eval = 64\n", "p.add_argument('--size', default=64)\n",
                     "batch = 2 * 64\n", "size = batch(64)\n", "def f(batch=64):\n    pass\n"):
            self.assertEqual(self.batch(text), [])
        self.assertEqual(self.batch("batch = 64\n", "batch = 64\n"), [])
        self.assertEqual(self.batch("batch = 64\n", "if\n"), [])

    def test_at_most_ten_lines(self):
        text = "".join("o%d = Adam(m)  # <-\n" % n for n in range(6))
        self.stays("foreach", text, "Adam")
        self.assertIsNotNone(self.proposed("foreach", text.replace("  # <-", "", 1), "Adam"))

    def test_lines_of_two_files_are_left(self):
        paths = [os.path.join(self.folder.name, name) for name in ("a.py", "b.py")]
        for path in paths:
            with open(path, "w", encoding="ascii") as file:
                file.write("import torch\ny = model(x)\n")
        self.assertEqual(list(patches.propose({"no_grad": [(path, 2) for path in paths]})), [])


if __name__ == "__main__":
    unittest.main()
