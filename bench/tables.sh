#!/usr/bin/env bash
# Tables of training speed and memory, by `tessera bench`, on the models that our documents tell of.
#
#   bench/tables.sh TABLE [FLAG...]        ./dev bench TABLE [FLAG...] builds first
#
# Tables:
#   gpt2-step, bert-step, nanogpt-step
#              a training step on all cores, in f32 and, where the processor multiplies it, bf16; beside the matrix products
#              alone (not of nanoGPT), PyTorch and JAX
#   scaling    GPT-2 small on two devices of one core with each kind of parallelism, and on one; beside PyTorch, and the
#              products alone on one core and on two
#   pipeline   two stages with each schedule, data and tensor parallel on two cores, beside one device on one core. Eight
#              equal blocks and micro-batches: two stages can be 16/9 times as fast as one device where two are twice
#   memory     GPT-2 small: recomputing and each kind of offloading, beside keeping everything
#   large      a GPT of 1.3 billion parameters on four devices: planned only
#   curves     losses of the nanoGPT recipe over 500 steps with each switch, and PyTorch's
#   noise      the same program eleven times: how far apart ratios are that should be 1
#   f32-products
#              BERT-base and GPT-2 small in f32 with products by AMX, by multiply-adds, and as Tessera chooses: two tables,
#              f32-products-bert and f32-products-gpt2. They need a processor with AMX
#   accelerator
#              a step on the devices of a plugin, XLA's for processors unless --device names another, beside JAX on the same
#              file: a tiny and a small GPT-2, each on one device and on two, so four tables
#   gpu        on NVIDIA's GPUs: GPT-2 124M and a GPT of 1.3 billion parameters in bf16 beside PyTorch and JAX, each on one
#              and, if there are more, on all; and losses of 500 steps beside the processor's: tables gpu-gpt2-1, gpu-1.3b-1,
#              gpu-gpt2-N, gpu-1.3b-N, gpu-losses. --device names another plugin
#   bert, gpt  mixed precision, graph optimization, ZeRO, tensor parallel and stages, alone and together, on two devices
#   quick      a smoke run of seconds, whose figures mean nothing; into runs/bench
#
# Writes DATE-CPU-TABLE.txt and .json into bench/results, and a page into runs/bench. FLAGs are those of tessera bench, by
# the names that its help lists first; they are added to those of the table, or take their place. The preset is the
# table's.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() { sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' bench/tables.sh; }
stop() {
  printf '%s\n' "$*" >&2
  exit 2
}

# "amd-epyc-25-17": name, family and model, as a hypervisor may hide the name.
processor() {
  awk -F': *' '/^model name/ && !n {n = $2} /^cpu family/ && !f {f = $2} /^model\t/ && !m {m = $2} END {print n, f, m}' \
    /proc/cpuinfo | sed -E 's/\([RTMrtm]+\)|CPU|Processor|@.*//g' | slug
}
slug() { tr 'A-Z' 'a-z' | sed -E 's/[^a-z0-9]+/-/g; s/^-|-$//g'; }

# "nvidia-h100-80gb-hbm3"
gpu() { nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -1; }

# A machine whose devices have the peak of this GPU, by its name. Those of PCIe and NVL cards are lower.
peaks_of() {
  case $1 in
    'NVIDIA H100 80GB HBM3' | 'NVIDIA H200' | 'NVIDIA GH200'*) echo h100-256 ;;
    *A100*) echo a100-1024 ;;
  esac
}

# What table gpu needs that is not here, on one line.
need_gpu() {
  local lacking=()
  nvidia-smi -L 2>/dev/null | grep -q '^GPU' || lacking+=("a GPU with NVIDIA's driver (nvidia-smi -L lists none)")
  compgen -G 'build/plugins/cuda1[23]' >/dev/null || lacking+=("its plugin (./dev accelerator cuda13 --runtime)")
  compgen -G 'build/plugins/cuda1[23]/nvidia' >/dev/null || (PATH=$PATH:/sbin ldconfig -p | grep -q libcudnn) ||
    lacking+=("NVIDIA's libraries (./dev accelerator cuda13 --runtime)")
  [ ${#lacking[@]} -gt 0 ] || return 0
  stop "table $table lacks $(printf '%s; ' "${lacking[@]}")tessera doctor says more, --device names another plugin"
}

# tokens PREFIX: token files of a million ids of GPT-2's, small ones as often as words are in texts: a text of characters
# would use 65 rows of the embedding.
tokens() {
  [ ! -s "$1_text_document.idx" ] || return 0
  mkdir -p "$(dirname "$1")"
  awk 'BEGIN { srand(1); for (d = 0; d < 2000; ++d) {
    printf "{\"text\": \""; for (i = 0; i < 500; ++i) printf "%d ", exp(rand() * log(50256)) - 1; print "\"}" } }' >"$1.jsonl"
  build/tessera preprocess_data --input "$1.jsonl" --output-prefix "$1" --tokenizer-type NullTokenizer --vocab-size 50256 \
    --append-eod >&2
}

joined() { local IFS=,; echo "$*"; }

table=${1-}
shift || stop "$(usage)"
own=("$@")
for word in "$table" "$@"; do
  if [[ $word == -h || $word == --help ]]; then
    usage
    exit
  fi
  [ "${word%%=*}" != --preset ] || stop "table $table says which preset it is of; tessera bench measures any"
done

# given FLAG: whether the caller gives it
given() {
  local word
  for word in "${own[@]}"; do [ "${word%%=*}" != "$1" ] || return 0; done
  return 1
}

# value FLAG DEFAULT
value() {
  local i
  for ((i = 0; i < ${#own[@]}; ++i)); do
    case ${own[i]} in
      "$1") printf %s "${own[i + 1]-}" && return ;;
      "$1"=*) printf %s "${own[i]#*=}" && return ;;
    esac
  done
  printf %s "$2"
}

if [[ $table == f32-products* ]] && ! grep -qw amx_bf16 "${CPUINFO:-/proc/cpuinfo}"; then
  stop "table $table waits for a processor with AMX, which this one has not: elsewhere there is one way to multiply f32"
fi
if [ "$table" = f32-products ]; then
  code=0
  for model in bert gpt2; do bench/tables.sh f32-products-$model "$@" || code=$?; done
  exit $code
fi

if [ "$table" = accelerator ]; then
  code=0
  for part in {tiny,small}-{1,2}; do bench/tables.sh accelerator-$part "$@" || code=$?; done
  exit $code
fi

device=$(value --device pjrt:cuda)
if [[ $table == gpu* && $device == pjrt:cuda* ]]; then need_gpu; fi
if [ "$table" = gpu ]; then
  # --ready: only what is lacking is told.
  if [ "${*: -1}" = --ready ]; then exit; fi
  several=()
  count=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU' || true)
  if [ "$count" -gt 1 ]; then several=(gpu-gpt2-"$count" gpu-1.3b-"$count"); fi
  code=0
  for part in gpu-gpt2-1 gpu-1.3b-1 ${several[@]+"${several[@]}"} gpu-losses; do bench/tables.sh "$part" "$@" || code=$?; done
  exit $code
fi

peer=()
if [ -x build/peers/bin/python ]; then peer=(--peer build/peers/bin/python); fi
flags=()
two=devices=2
threads=$(value --threads "$(nproc)")
bf16=()
if grep -qwE 'avx512_bf16|amx_bf16' /proc/cpuinfo; then bf16=(bf16); fi

# products MODEL THREADS [FLAG...]: of a step, in each precision
products() {
  local dtype
  for dtype in f32 "${bf16[@]}"; do
    flags+=(--beside "products alone, $dtype, $2 threads=build/gemm_floor --model $1 --threads $2 --dtype $dtype ${*:3} --steps \$TESSERA_STEPS")
  done
}

case $table in
  gpt2-step | bert-step | nanogpt-step)
    declare -A presets=([gpt2-step]=gpt2-small [bert-step]=bert-base-pretrain [nanogpt-step]=nanogpt-shakespeare-cpu)
    flags=(--preset "${presets[$table]}" --threads "$threads" "${peer[@]}")
    case $table in
      gpt2-step) flags+=(--steps 3) && products gpt2-small "$threads" ;;
      bert-step) flags+=(--steps 3) && products bert-base "$threads" ;;
      nanogpt-step) flags+=(--warmup 10 --steps 90) ;;
    esac
    if [ ${#bf16[@]} -gt 0 ]; then flags+=(--switches bf16); fi ;;
  f32-products-bert | f32-products-gpt2)
    preset=bert-base-pretrain
    if [ "$table" = f32-products-gpt2 ]; then preset=gpt2-small; fi
    flags=(--preset $preset --threads "$threads" --steps 3 --switches "$(joined f32-products={amx,fma})") ;;
  scaling)
    flags=(--preset gpt2-small --devices 2 --threads 1 --global-batch-size 8 --steps 2 "${peer[@]}" --switches
      "$(joined devices=1 zero-3 tp=2 pp=2+micro-batch-size=1)")
    bf16=()
    products gpt2-small 1 --batch 8
    products gpt2-small 2 --batch 8 ;;
  accelerator-tiny-[12] | accelerator-small-[12])
    flags=(--preset gpt2-tiny --device pjrt:cpu --devices "${table##*-}" --warmup 3 --turns 5 "${peer[@]}")
    case $table in
      *tiny*) flags+=(--steps 40) ;;
      *small*) flags+=(--layers 4 --width 256 --heads 8 --context 256 --steps 8) ;;
    esac ;;
  gpu-losses)
    flags=(--preset nanogpt-shakespeare-cpu --device pjrt:cuda --warmup 0 --steps 500 --turns 1 --switches
      device=cpu,bf16,bf16+device=cpu) ;;
  gpu-gpt2-* | gpu-1.3b-*)
    devices=${table##*-}
    flags=(--device pjrt:cuda --devices "$devices" --bf16 --dropout 0 --warmup 5 "${peer[@]}")
    case $table in
      *gpt2*) flags+=(--preset gpt2-small --vocab-size 50304 --context 1024 --global-batch-size $((32 * devices)) --steps 30) ;;
      *1.3b*) flags+=(--preset gpt-1.3b --heads 16 --context 2048 --global-batch-size $((4 * devices)) --micro-batch-size 0
        --steps 15) ;;
    esac
    peaks=$(peaks_of "$(gpu)")
    if [ -n "$peaks" ]; then
      flags+=(--peak-of "$peaks")
    elif ! given --peak-of; then
      echo "the peak of '$(gpu)' is not known: for MFU give --peak-of with a machine or a machine file" >&2
    fi
    if ! given --data; then
      tokens runs/bench/tokens
      flags+=(--data runs/bench/tokens_text_document --eod-token 50256)
    fi ;;
  quick)
    flags=(--preset gpt2-tiny --threads "$threads" --steps 2 --turns 2 "${peer[@]}" --switches bf16) ;;
  pipeline)
    stages=$two+pp=2
    flags=(--preset gpt2-small --layers 8 --vocabulary bytes --vocab-size 256 --threads 1 --global-batch-size 8
      --micro-batch-size 1 --steps 3 --switches
      "$(joined $two $two+tp=2 $stages+schedule={1f1b,gpipe,interleaved,zb-h1,zb-v})") ;;
  memory)
    all=offload-optimizer+offload-gradients+offload-parameters+offload-activations+recompute
    flags=(--preset gpt2-small --recompute-granularity none --steps 3 --switches
      "$(joined recompute-granularity={elementwise,selective,full} offload-{optimizer,gradients,parameters,activations} $all)") ;;
  large)
    meshes=(zero-1 zero-2 zero-3 tp=2 tp=4 pp=2 pp=4 tp=2+pp=2)
    flags=(--preset gpt-1.3b --devices 4 --planned --switches
      "$(joined "${meshes[@]}" recompute "${meshes[@]/%/+recompute}" bf16 "${meshes[@]/%/+bf16}" "${meshes[@]/%/+bf16+recompute}")") ;;
  curves)
    flags=(--preset nanogpt-shakespeare-cpu --warmup 0 --steps 500 --turns 1 "${peer[@]}" --switches
      "$(joined bf16 fp16 no-graph-optimization recompute offload $two $two+{zero-1,zero-2,zero-3,fsdp,tp=2,pp=2,bf16+zero-1,fp16+zero-3})") ;;
  noise)
    # A switch that changes nothing of a step.
    flags=(--preset nanogpt-shakespeare-cpu --steps 100 --switches "$(joined log-every={1,2,3,4,5,6,7,8,9,20})") ;;
  bert | gpt)
    preset=bert-base-pretrain batch=8
    if [ "$table" = gpt ]; then preset=gpt2-small batch=4; fi
    flags=(--preset $preset --global-batch-size $batch --devices 2 --threads 1 --steps 2 --warmup 2 --turns 2 --switches
      "$(joined no-graph-optimization bf16 bf16+no-graph-optimization zero-1 zero-2 zero-3 tp=2 pp=2 \
        bf16+{zero-1,zero-2,zero-3,tp=2,pp=2})") ;;
  *) stop "$(usage)" ;;
esac
kept=()
for ((i = 0; i < ${#flags[@]}; ++i)); do
  if [[ ${flags[i]} == --* && ${flags[i]} != --beside ]] && given "${flags[i]}"; then
    [[ ${flags[i + 1]-} == --* ]] || i=$((i + 1))
  else
    kept+=("${flags[i]}")
  fi
done

# What was measured before stays until there is more, be it with errors.
new=runs/bench/new
results=bench/results
if [ "$table" = quick ]; then results=runs/bench; fi
name=$(date +%F)-$(processor)-$table
if [[ $table == gpu* && $device == pjrt:cuda* ]]; then name=$(date +%F)-$(gpu | slug)-$table; fi
rm -rf $new
mkdir -p $new $results
code=0
build/tessera bench "${kept[@]}" "$@" --results $new/table.json --html $new/table.html | tee $new/table.txt || code=$?
if [ -s $new/table.json ]; then
  mv $new/table.txt "$results/$name.txt"
  mv $new/table.json "$results/$name.json"
  [ ! -s $new/table.html ] || mv $new/table.html "runs/bench/$name.html"
  echo "wrote $results/$name.txt, $results/$name.json and runs/bench/$name.html" >&2
fi
exit $code
