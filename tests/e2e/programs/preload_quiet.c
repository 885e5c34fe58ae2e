/* SPDX-License-Identifier: Apache-2.0
 * A preloaded library that does nothing, like those that users preload for their own reasons. */
int cuwhy_test_preload_quiet;
