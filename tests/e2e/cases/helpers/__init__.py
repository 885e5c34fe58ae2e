# SPDX-License-Identifier: Apache-2.0
# The user's own modules that the cases import.
