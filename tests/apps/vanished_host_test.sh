#!/bin/bash
# vanished_host_test.sh TESSERA: two hosts with networks of their own train over TCP with the bits of threads; where one of
# them vanishes without a word, as by a cut cable, both say so in time, and the run goes on from what was saved.
#
# Each host is a network namespace, and between them is a router, which is told to route no more. Skipped (code 77) where no
# namespaces can be made. The rest of the machine is one: ranks find that they share it (they see each other's processes, and
# share out its cores), which those of two real machines do not.
set -euo pipefail
if [ -z "${TESSERA_IN_NAMESPACE:-}" ]; then
  for needed in ip unshare nsenter; do
    command -v $needed >/dev/null || { echo "skipped: $needed is not there"; exit 77; }
  done
  unshare --user --map-root-user --net ip link add t0 type veth peer name t1 2>/dev/null ||
    { echo "skipped: no network namespace can be made here"; exit 77; }
  TESSERA_IN_NAMESPACE=1 exec unshare --user --map-root-user --net bash "$0" "$@"
fi

tessera=$(realpath "$1")
folder=$(mktemp -d)
trap 'kill -KILL $(jobs -p) 2>/dev/null || true; wait 2>/dev/null; rm -rf "$folder"' EXIT
wrong() { printf 'vanished_host_test: %s\n' "$*" >&2; tail -n 8 "$folder"/*.log >&2 || true; exit 1; }
# digest RUN: in $digest
digest() {
  digest=$("$tessera" inspect "$folder/$1" --digest) && [ ${#digest} = 32 ] || wrong "$1 has the digest '$digest'"
}
# same RUN OTHER WHAT: both have the same bits, which are in $digest then.
same() {
  digest "$1"
  local own=$digest
  digest "$2"
  [ "$own" = "$digest" ] || wrong "$3"
}

# Host i is 10.77.i.2, behind the router 10.77.i.1.
hosts=()
for i in 0 1; do
  unshare --net sleep 600 &
  hosts[i]=$!
  until [ "$(readlink /proc/${hosts[i]}/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.05; done
  ip link add r$i type veth peer name eth0 netns ${hosts[i]}
  ip addr add 10.77.$i.1/24 dev r$i
  ip link set r$i up
done
on() { nsenter --net=/proc/${hosts[$1]}/ns/net "${@:2}"; }
for i in 0 1; do
  on $i ip link set lo up
  on $i ip addr add 10.77.$i.2/24 dev eth0
  on $i ip link set eth0 up
  on $i ip route add default via 10.77.$i.1
done
route() { echo $1 >/proc/sys/net/ipv4/ip_forward; }
route 1

limit=4
for ((i = 0; i < 200; ++i)); do echo "line $i of a text to train on, which is read again and again"; done >"$folder/sample.txt"
train=(train --preset gpt2-tiny --layers 1 --width 32 --context 32 --save-every 10 --keep-last 2 --global-batch-size 8
  --data "$folder/sample.txt" --lr-decay-style constant --tensor-model-parallel-size 2 --zero-1-memory-optimization
  --threads 1 --devices 4 --distributed-timeout $limit)

# begin RUN STEPS [FLAG...]: two hosts of two devices, in the background; their processes are in `ranks`.
begin() {
  local i
  ranks=()
  for i in 0 1; do
    NNODES=2 NODE_RANK=$i MASTER_ADDR=10.77.0.2 MASTER_PORT=4711 on $i "$tessera" "${train[@]}" --steps $2 \
      --output "$folder/$1" "${@:3}" >"$folder/$1.$i.log" 2>&1 &
    ranks[i]=$!
  done
}

begin whole 20
for i in 0 1; do wait ${ranks[i]} || wrong "host $i fails"; done
"$tessera" "${train[@]}" --steps 20 --output "$folder/threads" >"$folder/threads.log" 2>&1 || wrong "threads fail"
same whole threads "two hosts end in other bits than four threads"
whole=$digest

begin cut 1000000
for ((i = 0; ; ++i)); do
  ! ls "$folder/cut/checkpoints" 2>/dev/null | grep -qx 'step-[0-9]*' || break
  [ $i -lt 600 ] || wrong "nothing is saved within a minute"
  sleep 0.1
done
route 0
start=$(date +%s%N)
for i in 0 1; do
  code=0
  wait ${ranks[i]} || code=$?
  took=$((($(date +%s%N) - start) / 1000000))
  echo "host $i ends with the code $code, $took ms after its peer has vanished: $(grep -h '^error: ' "$folder/cut.$i.log" || true)"
  [ $code = 7 ] || wrong "host $i ends with the code $code, not 7"
  # The limit, an eighth of it between two looks, and 2 s for the ranks to leave each other; the rest is for a busy machine.
  [ $took -lt $((2000 * limit + 2000)) ] || wrong "host $i takes $took ms; --distributed-timeout is $limit s"
  grep -q '^error: ' "$folder/cut.$i.log" || wrong "host $i does not say why it ends"
done

# It goes on from what is whole, to the bits of a run that nothing has disturbed.
route 1
saved=$(ls "$folder/cut/checkpoints" | grep -x 'step-[0-9]*' | sort | tail -n 1 | tr -dc 0-9)
[ -n "$saved" ] || wrong "nothing whole is saved"
steps=$((10#$saved + 10))
begin cut $steps --resume auto
for i in 0 1; do wait ${ranks[i]} || wrong "host $i cannot go on"; done
"$tessera" "${train[@]}" --steps $steps --output "$folder/undisturbed" >"$folder/undisturbed.log" 2>&1 || wrong "threads fail"
same cut undisturbed "after a host had vanished the run ends in other bits"
cut=$digest

# A host that cannot be reached at all: both say so in time, and name the address.
route 0
begin never 20
for i in 0 1; do
  code=0
  start=$(date +%s%N)
  wait ${ranks[i]} || code=$?
  echo "host $i, whose peer was never reached, ends with the code $code: $(grep -h '^error: ' "$folder/never.$i.log" || true)"
  [ $code = 7 ] || wrong "host $i, whose peer was never reached, ends with the code $code"
done
grep -q 'error: .*10\.77\.0\.2.*4711' "$folder/never.1.log" || wrong "host 1 does not name the address it cannot reach"
echo "two hosts give $whole; one that vanished at step $saved went on to $cut"
