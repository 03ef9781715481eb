#!/bin/bash
# accelerator_check_test.sh SCRIPT TESSERA: tools/accelerator_check.sh with a compiler of our own: its flags are those of
# `tessera plan`, and it fails where a model does not compile or does not fit.
set -euo pipefail
script=$1 tessera=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
wrong() { printf 'accelerator_check_test: %s\n' "$*" >&2; cat "$scratch/said" >&2; exit 1; }

# Plans as the command does, without a GPU. A model called FAILS does not compile; all take PEAK bytes.
cat >"$scratch/tessera" <<END
#!/bin/bash
set -euo pipefail
words=" \$* "
case \$words in *" --preset \${FAILS-none} "*)
  echo "W1129 08:00:00.000000 1 xla.cc:1] slow" >&2; echo "error: XLA cannot" >&2; echo "W1129 more" >&2; exit 1 ;;
esac
words=\${words/ --device pjrt:cuda / }
words=\${words/ --gpu NVIDIA H100 80GB HBM3 / }
"$tessera" \$words >"$scratch/real.json"
sed '/^  "planned_peak_bytes"/a\  "compiled": {\n    "peak_bytes": '\$PEAK',\n    "text_bytes": 1234567,\n    "seconds": 7.5\n  },' \
  "$scratch/real.json"
END
chmod +x "$scratch/tessera"
check() { bash "$script" "$scratch/tessera" "$@" >"$scratch/said" 2>&1; }
export PEAK=12345678901

check || wrong "models that compile and fit are refused"
[ "$(wc -l <"$scratch/said")" = 9 ] || wrong "other than eight models"
grep -qE '^llama-7b +256 dp=32 tp=8 +1\.23 +8 +12\.35 +[0-9]+\.[0-9]+ ' "$scratch/said" || wrong "no line of llama-7b"
check gpt2-small bert-large || wrong "two models are refused"
[ "$(wc -l <"$scratch/said")" = 5 ] || wrong "other than two models on 8 and 256"
! check gpt9 || wrong "gpt9 is a model"
grep -q "no model gpt9; there are gpt2-small, bert-large, llama-7b, llama-70b" "$scratch/said" || wrong "models are not named"
! FAILS=bert-large check gpt2-small bert-large || wrong "what does not compile is passed"
[ "$(grep -c '^bert-large .* does not compile (status 1): error: XLA cannot  ' "$scratch/said")" = 2 ] ||
  wrong "the reason is not said"
[ "$(grep -c '^gpt2-small .* 12.35 ' "$scratch/said")" = 2 ] || wrong "the others are not compiled"
! PEAK=80000000001 check llama-70b || wrong "what does not fit is passed"
grep -q "it takes 80000000001 bytes, and the GPU has 80000000000" "$scratch/said" || wrong "it is not said that it does not fit"
