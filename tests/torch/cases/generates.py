# SPDX-License-Identifier: Apache-2.0
# transformers' generate() ends at max_new_tokens, as if no sequence had ended before.
# expect-silent: exit=0
# needs: torch transformers
import torch
from transformers import GPT2Config, GPT2LMHeadModel

model = GPT2LMHeadModel(GPT2Config(n_layer=2, n_embd=128, n_head=4)).cuda().eval()
for batch, new in ((8, 64), (1, 32), (8, 5)):
    ids = torch.randint(0, 50000, (batch, 16)).cuda()
    out = model.generate(ids, max_new_tokens=new, do_sample=new == 32, pad_token_id=0)
    assert out.shape == (batch, 16 + new), (out.shape, batch, new)
