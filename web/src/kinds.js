// SPDX-License-Identifier: Apache-2.0
// What tensors are for: the same color everywhere on the page. They are stacked in this order.
export const KIND_COLORS = {
  parameters: "--c0",
  gradients: "--c1",
  optimizer: "--c2",
  activations: "--c3",
  backward: "--c4",
  graphs: "--c5",
  workspaces: "--c6",
  loaded: "--c7",
  other: "--c8",
};
