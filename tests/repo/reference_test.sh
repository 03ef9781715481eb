#!/bin/bash
# reference_test.sh BUILD SOURCE: flags.md and families.md in docs/reference are what the commands say; manual pages and completions
# are what man and shells read, as far as they are installed here.
set -euo pipefail
build=$1 source=$2
t=$(mktemp -d)
trap 'rm -rf "$t"' EXIT
wrong() { echo "WRONG: $*"; exit 1; }

"$build/reference" "$t"
for page in flags families; do
  diff "$t/docs/$page.md" "$source/docs/reference/$page.md" || wrong "docs/reference/$page.md is out of date: ./dev reference writes it"
done
for command in $("$build/tessera" help | sed -n 's/^  tessera \([a-z_]*\)   *.*/\1/p'); do
  [ "$command" = version ] || [ -s "$t/man/man1/tessera-$command.1" ] || wrong "no manual page of tessera $command"
done
grep -q '^\\fB\\-\\-steps\\fR \\fIN\\fR$' "$t/man/man1/tessera-train.1" || wrong "tessera-train.1 has no --steps"

# completes WORD...: what bash offers for the last word.
completes() {
  bash -c '. "$1"; shift; COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)); _$1; printf "%s\n" "${COMPREPLY[@]}"' - \
    "$t/bash-completion/completions/$1" "$@"
}
expect() {  # WORD OFFERED: among what is offered
  local offered=$1
  shift
  completes "$@" | grep -x -- "$offered" >/dev/null || wrong "bash does not complete '$*' to $offered: $(completes "$@" | head -5 | tr '\n' ' ')"
}
expect train tessera tr
expect --steps tessera train --ste
expect --train-iters tessera train --train-i
expect adamw tessera train --optimizer a
expect none tessera train --output runs/x --resume n
expect --beams tessera sample runs/x --b
expect --help tessera plan --hel
expect --micro-batch-size rapidformer --task pretraining --micro-b
touch "$t/model.txt"
(cd "$t" && expect model.txt tessera train --data mod)
(cd "$t" && expect model.txt tessera train --resume mod)
! completes tessera sample --ste | grep . >/dev/null || wrong "bash offers --steps of tessera sample"

for program in tessera rapidformer; do
  if command -v zsh >/dev/null; then zsh -n "$t/zsh/vendor-completions/_$program" || wrong "zsh refuses _$program"; fi
  if command -v fish >/dev/null; then
    fish --no-config --no-execute "$t/fish/vendor_completions.d/$program.fish" || wrong "fish refuses $program.fish"
  fi
done
if command -v fish >/dev/null; then
  HOME=$t fish --no-config -c "source $t/fish/vendor_completions.d/tessera.fish; complete -C 'tessera train --ste'" |
    grep -q '^--steps' || wrong "fish does not complete --ste"
fi
if command -v groff >/dev/null; then
  for page in "$t"/man/man1/*; do
    said=$(groff -man -Tutf8 -ww "$page" 2>&1 >/dev/null)
    [ -z "$said" ] || wrong "groff warns: $said"
  done
fi
echo "the reference is what the commands print"
