#!/bin/bash
# Lists the tests in place of running them: some must fit.
PATH=${PATH#*:}
words=()
while [ $# -gt 0 ]; do
  case $1 in --test-dir | -j) shift ;; *) words+=("$1") ;; esac
  shift
done
exec ctest --test-dir "$BUILD" -N "${words[@]}"
