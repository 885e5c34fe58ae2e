# SPDX-License-Identifier: Apache-2.0
# Code that the cases import: the user's own modules, several frames deep.
