# SPDX-License-Identifier: Apache-2.0
cuwhy memory --what-if expandable_segments
