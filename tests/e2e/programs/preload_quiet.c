/* SPDX-License-Identifier: Apache-2.0
 * A preloaded library that does nothing, as users have for reasons of their own. */
int cuwhy_test_preload_quiet;
