# SPDX-License-Identifier: Apache-2.0
# The comparison as a page: names are text, never markup.
S=$BUILD/../tests/fuzz/corpus/snapshot
cuwhy memory --page "$T/a.html" "$S/fragmentation" "$S/growth" >/dev/null
echo "status $?"
grep -c '<tr>' "$T/a.html"
grep -o 'train.py:70 in append</code> <span class=new>NEW' "$T/a.html"
cp "$S/growth" "$T/<b>&.pickle"
cuwhy memory --page "$T/b.html" "$S/growth" "$T/<b>&.pickle" >/dev/null
grep -c '<b>' "$T/b.html"
grep -o '&lt;b&gt;&amp;.pickle' "$T/b.html"
cuwhy memory --page "$T/none/c.html" "$S/growth" "$S/growth"
echo "status $?"
