# SPDX-License-Identifier: Apache-2.0
# Code that the programs import: the user's own modules.
