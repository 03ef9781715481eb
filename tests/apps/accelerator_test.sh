#!/bin/bash
# accelerator_test.sh TESSERA PLUGIN: training on the plugin of CPUs computes what processors compute, on meshes; checkpoints move
# between the two. Without the plugin only what is refused, and what PLUGIN does, is looked at: ./dev accelerator cpu brings
# it. PLUGIN computes nothing, and fails on demand.
set -euo pipefail
tessera=$1 plugin=$2
folder=$(mktemp -d)
trap 'kill -9 $(jobs -pr) 2>/dev/null || true; rm -rf "$folder"' EXIT
wrong() { printf 'accelerator_test: %s\n' "$*" >&2; cat "$folder/err" >&2 || true; exit 1; }
for ((i = 0; i < 200; ++i)); do echo "line $i of a text to train on"; done >"$folder/text.txt"

# refused DEVICE WORDS: it ends with an error of these words, before anything is written.
refused() {
  local code=0
  "$tessera" train --preset gpt2-tiny --data "$folder/text.txt" --steps 2 --output "$folder/none" --device "$1" \
    ${3-} >/dev/null 2>"$folder/err" || code=$?
  [ $code != 0 ] && grep -qF -- "$2" "$folder/err" || wrong "--device $1 ${3-} is not refused with '$2'"
  [ ! -e "$folder/none/metrics.jsonl" ] || wrong "--device $1 is refused after it began to write"
}
refused gpu "device is 'gpu'; it can be cpu, or pjrt: with the name or the file of a plugin"
refused pjrt: "device is 'pjrt:'"
refused "pjrt:$folder/text.txt" "$folder/text.txt"
refused "pjrt:$folder/absent.so" "absent.so"
refused pjrt:nonesuch nonesuch
# A device that fails: one error, and an end, though the plugin's client cannot be destroyed.
for call in PJRT_LoadedExecutable_Execute PJRT_Buffer_ToHostBuffer; do
  for devices in 1 2; do
    code=0
    TESSERA_TEST_PLUGIN="fail_at=$call keep_clients=1 devices=2" timeout 60 "$tessera" train --preset gpt2-tiny \
      --data "$folder/text.txt" --steps 2 --output "$folder/lost-$call-$devices" --device "pjrt:$plugin" \
      --devices $devices >/dev/null 2>"$folder/err" || code=$?
    [ $code = 5 ] || wrong "a device that fails at $call ends the command with code $code"
    grep -qF "$call: INTERNAL: as the test wants it; the plugin or its device failed" "$folder/err" ||
      wrong "a device that fails at $call is not named"
    [ "$(grep -c '^error' "$folder/err")" = 1 ] || wrong "not one error"
  done
done
# One that hangs.
code=0
TESSERA_TEST_PLUGIN="hold=1" timeout 120 "$tessera" train --preset gpt2-tiny --data "$folder/text.txt" --steps 2 \
  --output "$folder/hung" --device "pjrt:$plugin" --distributed-timeout 1 >/dev/null 2>"$folder/err" || code=$?
[ $code = 7 ] && grep -q "^error: .*: a product shows no sign of life for 10 s: .*--distributed-timeout" "$folder/err" ||
  wrong "a device that hangs ends the command with code $code"
# Two processes with two devices each train together; one that is killed is named at the other.
processes() {
  local output=$1 steps=$2
  for node in 0 1; do
    NNODES=2 NODE_RANK=$node MASTER_ADDR=127.0.0.1 MASTER_PORT=$port TESSERA_SECRET=a-secret-of-this-test \
      TESSERA_TEST_PLUGIN="devices=2 ${3-}" "$tessera" train --preset gpt2-tiny --data "$folder/text.txt" --devices 4 \
      --steps $steps --resume auto --output "$folder/$output" --device "pjrt:$plugin" --distributed-timeout 120 \
      >"$folder/out$node" 2>"$folder/err$node" &
    node_pids[node]=$!
  done
}
# ended PID: its code, within two minutes.
ended() {
  for ((i = 0; i < 1200; ++i)); do
    kill -0 $1 2>/dev/null || break
    sleep 0.1
  done
  kill -9 $1 2>/dev/null || true
  wait $1
}
port=$((20000 + RANDOM % 10000))
processes joined 2
for node in 0 1; do ended ${node_pids[node]} || { cat "$folder"/err? >"$folder/err"; wrong "process $node fails"; }; done
grep -q '"backend":"pjrt:test ' "$folder/joined/metrics.jsonl" || wrong "metrics without a backend"
"$tessera" train --preset gpt2-tiny --data "$folder/text.txt" --steps 3 --resume auto --output "$folder/joined" --threads 1 \
  >"$folder/out" 2>"$folder/err" || wrong "a checkpoint of two processes does not resume on processors"
grep -q "step 3/3" "$folder/out" || wrong "it does not go on at step 3"
processes killed 100000
until grep -q "^step" "$folder/out0"; do
  kill -0 ${node_pids[0]} || { cat "$folder"/err? >"$folder/err"; wrong "process 0 does not train"; }
  sleep 0.1
done
kill -9 ${node_pids[1]}
wait ${node_pids[1]} 2>/dev/null || true
code=0
ended ${node_pids[0]} || code=$?
cp "$folder/err0" "$folder/err"
[ $code = 7 ] && grep -q "rank [23] (process ${node_pids[1]}.* has died" "$folder/err" || wrong "process 0 ends with code $code where the other dies"

# doctor outlives a plugin that aborts.
mkdir -p "$folder/bin/plugins/cpu"
cp "$tessera" "$folder/bin/tessera"
cp "$plugin" "$folder/bin/plugins/cpu/plugin.so"
doctor() { TESSERA_TEST_PLUGIN=$1 "$folder/bin/tessera" doctor --no-measure >"$folder/out" 2>"$folder/err" || true; }
doctor abort_at=PJRT_Client_Create
grep -q "device pjrt:cpu *no device; .*plugin.so; aborted: signal 6 (Aborted)" "$folder/out" || wrong "$(cat "$folder/out")"
doctor exit_at=PJRT_Client_Create
grep -q "device pjrt:cpu *no device; .*plugin.so; ended the process with code 3 when it was asked" "$folder/out" ||
  wrong "$(cat "$folder/out")"
doctor devices=3
grep -q "device pjrt:cpu *3 x test, 1000 B each; .*interface 0.106" "$folder/out" || wrong "$(cat "$folder/out")"

refused pjrt:cpu "leave one of the two out" "--profile $folder/trace.json"

[ -d "$(dirname "$tessera")/plugins/cpu" ] || {
  echo "no plugin of CPUs in $(dirname "$tessera")/plugins; ./dev accelerator cpu brings it"
  exit 77
}

code=0
"$tessera" launch -n 2 --backend tcp -- verify --preset gpt2-tiny --device pjrt:cpu >"$folder/out" 2>"$folder/err" || code=$?
[ $code = 2 ] && grep -q "sees no devices but those of its own process, and the run has 2 processes" "$folder/err" ||
  wrong "two processes on a plugin that joins none end with code $code"

verified() {
  "$tessera" verify --device pjrt:cpu --threads 1 "$@" >"$folder/out" 2>"$folder/err" ||
    wrong "verify $* fails: $(tail -3 "$folder/out")"
}
verified --preset gpt2-tiny --dropout 0.1
verified --preset gpt2-tiny --micro-batch-size 2
verified --preset gpt2-tiny --devices 3 --global-batch-size 7
verified --preset gpt2-tiny --devices 4 --tensor-model-parallel-size 2 --sequence-parallel --zero-stage 3 --dropout 0.1
verified --preset gpt2-tiny --devices 2 --context-parallel-size 2 --zero-stage 1
verified --preset gpt2-tiny --devices 2 --pipeline-model-parallel-size 2 --micro-batch-size 1 --pipeline-schedule zb-h1
verified --preset gpt2-tiny --devices 4 --pipeline-model-parallel-size 2 --micro-batch-size 1 \
  --tensor-model-parallel-size 2 --dropout 0.1
verified --preset llama-tiny --devices 2 --pipeline-model-parallel-size 2 --pipeline-schedule interleaved --micro-batch-size 2
verified --preset llama-tiny --devices 2 --tensor-model-parallel-size 2 --optimizer lamb
verified --preset bert-tiny --devices 2 --dropout 0.1 --recompute-granularity full
verified --preset transformer-tiny --devices 2 --tensor-model-parallel-size 2

# losses FILE: of the training steps
losses() { sed -n 's/^{"kind":"train","step":\([0-9]*\),"loss":\([^,]*\),.*/\1 \2/p' "$1"; }
near() {
  paste <(losses "$1") <(losses "$2") | awk '
    $1 != $3 || ($2 - $4) ^ 2 > ($2 * 1e-5) ^ 2 { print; bad = 1 } END { exit bad || NR == 0 }' >"$folder/err" ||
    wrong "$3"
}
run() {
  local output=$1
  shift
  "$tessera" train --preset gpt2-tiny --data "$folder/text.txt" --dropout 0.1 --threads 1 --output "$folder/$output" \
    --resume auto "$@" >"$folder/out" 2>"$folder/err" || wrong "train $output $* fails"
}
run whole --steps 8
run there --steps 4 --device pjrt:cpu --devices 2
run there --steps 8
near "$folder/whole/metrics.jsonl" "$folder/there/metrics.jsonl" "a checkpoint of an accelerator goes on otherwise on processors"
grep -q '"backend":"pjrt:cpu .*"host_bytes":[1-9]' "$folder/there/metrics.jsonl" || wrong "metrics do not name the backend"
run back --steps 4
run back --steps 8 --device pjrt:cpu
near "$folder/whole/metrics.jsonl" "$folder/back/metrics.jsonl" "a checkpoint of processors goes on otherwise on an accelerator"
for device in cpu pjrt:cpu; do
  "$tessera" sample "$folder/whole" --prompt line --temperature 0 --max-new-tokens 20 --device $device >"$folder/$device.txt" \
    2>"$folder/err" || wrong "sample --device $device fails"
done
cmp -s "$folder/cpu.txt" "$folder/pjrt:cpu.txt" || wrong "an accelerator writes another text"
