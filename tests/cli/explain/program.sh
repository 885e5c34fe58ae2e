# SPDX-License-Identifier: Apache-2.0
# The program that shows a cause: ready to be pasted, without what speaks to the tests.
cuwhy explain visible-devices-wrong | sed -n '/^A program/,$p'
