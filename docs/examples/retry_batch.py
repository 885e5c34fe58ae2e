# SPDX-License-Identifier: Apache-2.0
# A batch that is far too large: the program goes on with the largest that fits.
# expect-note: cause=oom-capacity|oom-request-too-large exit=0
# needs: torch
# alone
import cuwhy
import torch
import torch.nn as nn

WIDTH, LENGTH = 1024, 512
layer = nn.TransformerEncoderLayer(WIDTH, 16, 4 * WIDTH, dropout=0.0, batch_first=True, norm_first=True)
model = nn.TransformerEncoder(layer, 6, enable_nested_tensor=False).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)


def step(batch):
    optimizer.zero_grad()
    model(torch.randn(batch, LENGTH, WIDTH, device="cuda")).square().mean().backward()
    optimizer.step()


def largest_batch(batch):
    """The first batch that a step runs with."""
    while batch:
        try:
            step(batch)
            return batch
        except torch.OutOfMemoryError as e:
            smaller = cuwhy.fits(e, batch=batch, step=step, timeout=300)
            print("a batch of %d does not fit, one of %s does" % (batch, smaller), flush=True)
        # outside of except: until here, the exception holds the tensors of the failed step
        torch.cuda.empty_cache()
        batch = batch // 2 if smaller is None else smaller
    raise SystemExit("not even a batch of 1 fits")


found = largest_batch(4096)
for _ in range(3):
    step(found)
print("trained with a batch of %d" % found)
