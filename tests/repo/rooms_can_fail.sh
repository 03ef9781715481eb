#!/bin/bash
# rooms_can_fail.sh ROOMS COMPILER: rooms_test.sh finds a build that is wrong in each of these ways.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
rooms=$1 compiler=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# finds WHAT EDIT WORDS: with the rooms file edited, the test fails and says WORDS.
finds() {
  sed -E "$2" "$rooms" >"$scratch/rooms.txt"
  if bash "$here/rooms_test.sh" "$scratch/rooms.txt" "$compiler" >"$scratch/said" || ! grep -q "$3" "$scratch/said"; then
    echo "WRONG: not found: $1"
    cat "$scratch/said"
    exit 1
  fi
  echo "ok    $1"
}

finds "an include folder that shows every room" "s|^tensor\|.*|&;$here/../../src|" "tensor can include tessera/ir/"
finds "a line that lets a room look up" 's/^ir\|tensor/ir|tensor;plan/' "lets ir use plan"
finds "a line that lets a room look sideways" 's/^ir\|tensor/ir|tensor;files/' "lets ir use files"
finds "a room that lost its include folder" 's/^ops\|ir\|[^;]*;/ops|ir|/' "ops cannot include"
finds "a room that is gone" '/^nn\|/d' "has no room nn"
