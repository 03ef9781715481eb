#!/bin/bash
# Runs run_with_mpi.sh as a reader would, and looks at all that it leaves.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export TESSERA_BUILD=${1:?usage: test.sh BUILD-FOLDER}
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
fail() { echo "$*"; sed -n '1,20p' device/train.log; exit 1; }

bash "$HERE/run_with_mpi.sh"
for _ in $(seq 300); do
  [ "$(ls -d device/[0-7]/step-* 2>/dev/null | wc -l)" = 8 ] && break
  sleep 0.2
done
for step in "1 step: 1" "3 step: 2" "5 step: 4"; do
  [ "$(grep -c "epoch: $step, loss is 0\.[0-9]" device/train.log)" = 8 ] || fail "not eight lines of epoch $step"
  [ "$(grep "epoch: $step," device/train.log | sort -u | wc -l)" = 1 ] || fail "ranks differ in epoch $step"
done
for rank in 0 7; do
  [ -d "$(ls -d device/$rank/step-* | head -1)" ] || fail "rank $rank has not saved"
done
strategies=$(ls saved_graph/rank_0/step_parallel_begin_*.ir)
grep -q '(matmul) = matmul(.*in_strategy: ((2, 4), (4, 1))' "$strategies" || fail "no strategy of matmul"
grep -q '= relu(.*in_strategy: ((2, 4))' "$strategies" || fail "no strategy of relu"
[ "$(grep -c '= matmul(.*in_strategy: ((2, 4), (4, 1))' "$strategies")" = 2 ] || fail "no strategy of matmul2"
grep -q 'quickstart.cpp(' "$strategies" || fail "no line of the source"
for rank in 0 4; do
  runs=$(ls saved_graph/rank_$rank/*_execute_*.ir)
  group=$([ $rank = 0 ] && echo 0-1-2-3 || echo 4-5-6-7)
  grep -q "group_ranks: $group," "$runs" || fail "rank $rank: no group $group"
  grep -A1 '= matmul(' "$runs" | grep -qF '(<Tensor[Float32], (8, 8)>, <Tensor[Float32], (8, 16)>)' || fail "shapes of matmul"
  grep -A1 '= relu(' "$runs" | grep -qF '(<Tensor[Float32], (8, 4)>)' || fail "shape of relu"
  grep -A1 '= matmul(' "$runs" | grep -qF '(<Tensor[Float32], (8, 4)>, <Tensor[Float32], (4, 16)>)' || fail "shapes of matmul2"
done
"$TESSERA_BUILD/tessera" inspect "$(ls -d device/3/step-* | head -1)" --verify >/dev/null || fail "a checkpoint is damaged"
