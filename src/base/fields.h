/* SPDX-License-Identifier: Apache-2.0
 * The old name of base/json.h.
 */
#include "base/json.h"
