# SPDX-License-Identifier: Apache-2.0
# Data-loader workers are forked after CUDA started and seed themselves; that is normal.
# expect-silent: exit=0
# needs: torch
# same-output
import torch
from torch.utils.data import DataLoader, Dataset


class Numbers(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        return torch.full((8,), float(index))


if __name__ == "__main__":
    torch.zeros(1, device="cuda")
    loader = DataLoader(Numbers(), batch_size=8, num_workers=2, pin_memory=True,
                        multiprocessing_context="fork")
    print(sum(batch.cuda(non_blocking=True).sum().item() for batch in loader))
