#!/bin/bash
# f32_products_test.sh TESSERA START_RANKS everywhere|amx: how f32 products are made; with a cache folder of the test's own.
# TESSERA_on_lesser_machine is the same command on a machine that has no more than TESSERA_MAX_ISA.
set -euo pipefail
tessera=$1 lesser=$1_on_lesser_machine start_ranks=$2 part=$3
folder=$(mktemp -d)
trap 'kill -KILL $(jobs -p) 2>/dev/null || true; chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
wrong() { printf 'f32_products_test: %s\n' "$*" >&2; tail -n 5 "$folder"/*.log >&2 || true; exit 1; }
export HOME=$folder/home XDG_CACHE_HOME=$folder/cache

for ((i = 0; i < 200; ++i)); do echo "line $i of a text to train on, which is read again and again"; done >"$folder/text.txt"
train() { # RUN STEPS [FLAG...]
  "$tessera" train --preset gpt2-tiny --threads 1 --data "$folder/text.txt" --output "$folder/$1" --steps "$2" "${@:3}" \
    >"$folder/$1.log" 2>&1 || wrong "the run $1 fails"
}
# is RUN fma|amx: what summary.json says, and the last checkpoint
is() {
  grep -q "\"f32_products\": \"$2\"" "$folder/$1/summary.json" || wrong "summary.json of $1 does not say $2"
  local last=("$folder/$1"/checkpoints/step-*)
  grep -q "f32-products[^,]*$2" "${last[-1]}/manifest.json" || wrong "the checkpoint of $1 does not say $2"
}
kept() { find "$folder/$1/tessera/f32-products" -type f 2>/dev/null; }
digest() { "$tessera" inspect "$folder/$1" --digest; }

# Multiply-adds are everywhere, and who asks for them measures nothing; AMX where there is none is refused.
train told 2 --f32-products fma
is told fma
level=$(sed -n 's/^ *"isa": "\(.*\)",*$/\1/p' "$folder/told/summary.json")
[ -z "$(kept cache)" ] || wrong "--f32-products fma measures"
if TESSERA_MAX_ISA=avx2 "$lesser" plan --preset gpt2-tiny --vocab-size 62 >"$folder/plan.log" 2>&1; then
  [ -z "$(kept cache)" ] || wrong "a machine without AMX measures"
  code=0
  TESSERA_MAX_ISA=avx2 "$lesser" plan --preset gpt2-tiny --vocab-size 62 --f32-products amx >"$folder/refused.log" 2>&1 || code=$?
  [ $code = 2 ] || wrong "AMX that the machine lacks has code $code"
  grep -q "f32-products amx needs a processor with AMX, and avx2 is the highest" "$folder/refused.log" \
    || wrong "AMX that the machine lacks is not told"
fi
[ "$part" = amx ] || exit 0
[ "$level" = amx ] || { echo "not run: this machine has no AMX"; exit 77; }

# What was measured decides: 0.5 and 2 stand for two machines.
"$tessera" doctor >"$folder/doctor.log" 2>&1 || true
grep -q 'products, f32 .*, by .* (AMX measured [0-9.]* times as fast as multiply-adds)$' "$folder/doctor.log" \
  || wrong "doctor does not say what it measured"
file=$(kept cache)
[ "$(wc -l <<<"$file")" = 1 ] && [ -s "$file" ] || wrong "what was measured is not kept in one file"
says() { # CACHE SPEEDUP
  mkdir -p "$folder/$1/tessera/f32-products"
  sed "\$s/.*/$2/" "$file" >"$folder/edited"
  cp "$folder/edited" "$folder/$1/tessera/f32-products/${file##*/}"
}
says slow 0.500
says fast 2.000
XDG_CACHE_HOME=$folder/slow train slow 2
is slow fma
grep -q 'products by multiply-adds (AMX measured 0.50 times as fast as multiply-adds)' "$folder/slow.log" \
  || wrong "the start of a run does not say how products are made"
XDG_CACHE_HOME=$folder/fast train fast 2
is fast amx
[ "$(digest slow)" = "$(digest told)" ] || wrong "measured and asked for differ"
[ "$(digest slow)" != "$(digest fast)" ] || wrong "AMX changes no bit"

# A run goes on as it began, whatever is measured there; who asks for something else is told.
XDG_CACHE_HOME=$folder/slow train fast 4 --resume auto
is fast amx
grep -q 'products by AMX (as in the checkpoint)' "$folder/fast.log" || wrong "a resumed run does not say why it takes AMX"
! grep -q 'other kernels' "$folder/fast.log" || wrong "a resumed run has other kernels"
train whole 4 --f32-products amx
[ "$(digest fast)" = "$(digest whole)" ] || wrong "a resumed run differs from one that was never interrupted"
train fast 5 --resume auto --f32-products fma
is fast fma
grep -q 'resuming with other kernels: f32-products is amx there and fma here' "$folder/fast.log" \
  || wrong "other products than before are not told"

# Ranks on machines of which each measured something else do as rank 0, also when they go on.
ranks() { # RUN STEPS CACHE0 CACHE1
  local port i pids=()
  port=$("$start_ranks" --port)
  for i in 0 1; do
    RANK=$i WORLD_SIZE=2 LOCAL_RANK=$i MASTER_ADDR=localhost MASTER_PORT=$port TESSERA_SECRET=0123456789abcdef0123456789abcdef \
      XDG_CACHE_HOME=$folder/$i "$tessera" train --preset gpt2-tiny --threads 1 --data "$folder/text.txt" \
      --output "$folder/$1" --steps "$2" --resume auto --global-batch-size 8 >"$folder/$1.$i.log" 2>&1 &
    pids+=($!)
  done
  for i in "${pids[@]}"; do wait "$i" || wrong "a rank of the run $1 fails"; done
}
link() { ln -sfn "$folder/$1" "$folder/0" && ln -sfn "$folder/$2" "$folder/1"; }
link fast slow && ranks joined 2
is joined amx
link slow fast && ranks joined 4
is joined amx
train threads 4 --devices 2 --global-batch-size 8 --f32-products amx
[ "$(digest joined)" = "$(digest threads)" ] || wrong "ranks that measured different things differ from threads"

# A plan has the choice of the machine that made it.
XDG_CACHE_HOME=$folder/fast "$tessera" plan --auto --preset gpt2-tiny --vocab-size 62 --devices 1 --write-plan "$folder/plan.toml" \
  >"$folder/plan.log" 2>&1 || wrong "no plan"
grep -q '^f32-products = "amx"$' "$folder/plan.toml" || wrong "the plan does not say how f32 products are made"
XDG_CACHE_HOME=$folder/slow train planned 2 --plan "$folder/plan.toml"
is planned amx

# A cache that cannot be written costs nothing but measuring again.
touch "$folder/none"
XDG_CACHE_HOME=$folder/none train unkept 2
grep -q 'AMX measured .*; measured at each start, because ' "$folder/unkept.log" || wrong "a cache that cannot be written is not told"
