/* SPDX-License-Identifier: Apache-2.0
 * The one function of PyTorch's library that is asked before tensors are: is a mode on that sees every question?
 */
#include <stdbool.h>

static bool on;

bool _ZN2at4impl27torch_function_mode_enabledEv(void);
bool _ZN2at4impl27torch_function_mode_enabledEv(void) { return on; }

void set_mode(int mode);
void set_mode(int mode) { on = mode; }
