#!/bin/bash
# WMT's test set of 2014 in small: four files of sentences.
[ "$*" = "-O http://statmt.org/wmt14/test-full.tgz" ] || exit 1
mkdir -p "$WORLD/wmt/test-full"
for language in fr en; do
  for kind in src ref; do
    {
      echo "<${kind}set setid=\"newstest2014\" srclang=\"any\" trglang=\"$language\">"
      echo "<doc docid=\"1\" sysid=\"ref\">"
      for ((i = 1; i <= 300; i++)); do echo "<seg id=\"$i\">sentence $((i * 7919 % 997)) in $language</seg>"; done
      echo "</doc>"
      echo "</${kind}set>"
    } >"$WORLD/wmt/test-full/newstest2014-fren-$kind.$language.sgm"
  done
done
tar czf test-full.tgz -C "$WORLD/wmt" test-full
