# Small inputs under the names that documents use; read by world.sh.
number() { echo $(($1 * 7919 % 997)); }
texts() {  # COUNT
  local i
  for ((i = 0; i < $1; i++)); do echo "The line $(number $i) of a text says that $(number $((i + 5))) is a word, In the beginning."; done
}

texts 200 >my.txt
cp my.txt a.txt && cp my.txt other.txt && mkdir more && cp my.txt more/b.txt
for ((i = 0; i < 40; i++)); do printf 'a source %d of words\ta target %d\n' "$(number $i)" $i; done >pairs.txt
cut -f1 pairs.txt | head -4 >sources.txt
printf "the\nand\n" >prompts.txt
cp sources.txt french.txt
cut -f2 pairs.txt | head -4 | tee hypotheses.txt >references.txt

# Tables: GLUE's MRPC has this form of columns, a text and its label in a row.
rows() {  # COUNT
  local i
  printf 'text\tlabel\n'
  for ((i = 0; i < $1; i++)); do printf 'the words %d are %s\t%d\n' "$(number $i)" "$([ $((i % 2)) = 0 ] && echo good || echo bad)" $((i % 2)); done
}
rows 24 >train.tsv && rows 8 | tee dev.tsv >test.tsv && rows 8 | cut -f1 >texts.tsv
mrpc() {  # COUNT, in GLUE's own form
  local i
  printf 'Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n'
  for ((i = 0; i < $1; i++)); do printf '%d\t%d\t%d\tthe word %d\tthe words %d\n' $((i % 2)) $i $((i + 50)) $i $((i + i % 2)); done
}
mkdir -p glue/mrpc && mrpc 24 >glue/mrpc/train.tsv && mrpc 8 >glue/mrpc/dev.tsv
{ echo 'review,stars'; for ((i = 0; i < 40; i++)); do echo "\"a review $(number $i), of some words that are long enough\",$((i % 5))"; done; } >reviews.csv
for ((i = 0; i < 40; i++)); do echo "{\"dialogue\": \"A: are there $(number $i) words? B: yes\", \"summary\": \"$(number $i) words\"}"; done >train.jsonl
for ((i = 0; i < 20; i++)); do
  echo "{\"messages\": [{\"role\": \"user\", \"content\": \"Is $(number $i) odd?\"}, {\"role\": \"assistant\", \"content\": \"Ask $i.\"}]}"
done >chat.jsonl
for ((i = 0; i < 40; i++)); do echo "{\"anchor\": \"where is $(number $i)\", \"positive\": \"$(number $i) is there\"}"; done >questions.jsonl
{ echo sent1,sent2,ending0,ending1,label; for ((i = 0; i < 24; i++)); do echo "the word $(number $i) is,it,here,there,$((i % 2))"; done; } >swag.csv
for ((i = 0; i < 20; i++)); do
  echo "{\"prompt\": \"Is $(number $i) odd?\", \"chosen\": \" Ask $i.\", \"rejected\": \" No.\"}"
done >pairs.jsonl
for ((i = 0; i < 60; i++)); do echo "{\"text\": \"The words $(number $i) are in a book. Others $i are not. It goes on so.\"}"; done >books.jsonl
for file in eng.train eng.testa; do
  for ((i = 0; i < 12; i++)); do printf -- 'Anna NNP B-NP B-PER\nsees VBZ B-VP O\nword NN B-NP O\nin IN B-PP O\nRome NNP B-NP B-LOC\n. . O O\n\n'; done >$file
done
for file in train-v1.1.json dev-v1.1.json; do
  printf '{"version": "1.1", "data": [{"title": "t", "paragraphs": [' >$file
  for ((i = 0; i < 8; i++)); do
    [ $i = 0 ] || printf ', ' >>$file
    printf '{"context": "the word is here", "qas": [{"id": "q%d", "question": "where is the word?", "answers": [{"text": "here", "answer_start": 12}]}]}' $i >>$file
  done
  printf ']}]}\n' >>$file
done
printf 'id,lower,upper,size\na,0,4,1000\nb,2,6,1000\nc,4,8,2000\n' >buffers.csv

# 20 pictures of 3 x 32 x 32, all bits zero, and their ten labels (i32).
header='{"pixel_values":{"dtype":"F16","shape":[20,3,32,32],"data_offsets":[0,122880]},"labels":{"dtype":"I32","shape":[20],"data_offsets":[122880,122960]}}'
{
  printf '\\x%02x\\0\\0\\0\\0\\0\\0\\0' ${#header} | xargs -0 printf
  printf %s "$header"
  head -c 122880 /dev/zero
  for ((i = 0; i < 20; i++)); do printf "\\x$(printf %02x $((i % 10)))\\0\\0\\0"; done
} >train.safetensors

# Folders of pictures: of 5 x 4 pixels.
for part in train valid test; do
  for class in daisy rose; do
    mkdir -p flowers/$part/$class
    for i in 1 2 3; do base64 -d <<<"iVBORw0KGgoAAAANSUhEUgAAAAUAAAAECAIAAADJUWIXAAAARklEQVR42gXBwQ1AMABA0TYqDr6Ig0jjICK26AYWMphNOoEp/pH3YvgCRmywxS6VmrHHAUecUqkXzrhgxjU+94sb7njg+QO+kRb5DgSNKwAAAABJRU5ErkJggg==" >flowers/$part/$class/$i.png; done
  done
done

# A run for the ways to start processes.
printf 'preset = "gpt2-tiny"\ndata = ["a.txt"]\nsteps = 2\nthreads = 1\n' >run.toml
mkdir -p runs shared
cp examples/rapidformer/*.cpp .

# Tokenizers: words of BERT, bytes and a merge of GPT-2, pieces of T5.
{ printf '[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n'; printf '%s\n' {a..z} {0..9} '##'{a..z} '##'{0..9} . , ? the word words here; } >vocab.txt
mkdir gpt2
{
  printf '{'
  for ((i = 0, other = 0; i < 256; i++)); do
    code=$i
    ((i >= 33 && i <= 126 || i >= 161 && i <= 172 || i >= 174)) || { code=$((256 + other)); other=$((other + 1)); }
    printf '"\\u%04x": %d, ' $code $i
  done
  printf '"th": 256, "<|endoftext|>": 257}\n'
} >gpt2/vocab.json
printf '#version: 0.2\nt h\n' >gpt2/merges.txt
mkdir "$WORLD/t5"
{
  printf '{"version": "1.0", "added_tokens": ['
  printf '{"id": %d, "content": "%s", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}' 0 '<pad>'
  printf ', {"id": %d, "content": "%s", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}' 1 '</s>' 2 '<unk>'
  printf '], "normalizer": null, "pre_tokenizer": {"type": "Metaspace", "replacement": "\\u2581", "prepend_scheme": "always", "split": true}, '
  printf '"post_processor": {"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "</s>", "type_id": 0}}], '
  printf '"pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "</s>", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}, {"SpecialToken": {"id": "</s>", "type_id": 0}}], '
  printf '"special_tokens": {"</s>": {"id": "</s>", "ids": [1], "tokens": ["</s>"]}}}, '
  printf '"decoder": {"type": "Metaspace", "replacement": "\\u2581", "prepend_scheme": "always", "split": true}, '
  printf '"model": {"type": "Unigram", "unk_id": 2, "byte_fallback": false, "vocab": [["<pad>", 0.0], ["</s>", 0.0], ["<unk>", 0.0], ["\\u2581", -2.0]'
  printf ', ["%s", -4.0]' {a..z} {A..Z} {0..9} : . , '?'
  printf ']}}\n'
} >"$WORLD/t5/tokenizer.json"

# hub NAME FLAG...: a model of that name as Hugging Face's programs leave it on the disk; its weights are random.
hub() {
  local name=$1 at="$HOME/.cache/huggingface/hub/models--${1//\//--}"
  shift
  "$BUILD/tessera" train --steps 0 --threads 1 --layers 1 --heads 2 --width 16 --ffn-width 32 --vocab-size 0 --no-eval-at-end \
    --global-batch-size 1 --output "$WORLD/hub-run" "$@" >"$WORLD/hub" 2>&1 &&
    "$BUILD/tessera" export "$WORLD/hub-run" --output "$at/snapshots/0123" >>"$WORLD/hub" 2>&1 ||
    { echo "the stand-in for $name cannot be made:"; cat "$WORLD/hub"; return 1; }
  rm -rf "$WORLD/hub-run"
  mkdir "$at/refs" && printf 0123 >"$at/refs/main"
}
of_hub() { echo "$HOME/.cache/huggingface/hub/models--$1/snapshots/0123"; }
hub gpt2 --family gpt2 --context 256 --data my.txt --tokenizer-name-or-path gpt2/ || return 1
cp gpt2/* "$(of_hub gpt2)"
hub Qwen/Qwen2.5-0.5B-Instruct --family qwen2 --context 512 --data my.txt --tokenizer-name-or-path gpt2/ || return 1
cp gpt2/* "$(of_hub Qwen--Qwen2.5-0.5B-Instruct)"
echo "{% for m in messages %}{{ m.role + ': ' + m.content + '\n' }}{% endfor %}{% if add_generation_prompt %}{{ 'assistant: ' }}{% endif %}" \
  >"$(of_hub Qwen--Qwen2.5-0.5B-Instruct)/chat_template.jinja"
# A folder would hide the model of that name: only pages that name its files have it.
[ "${TOKENIZER_GPT2-}" = yes ] || rm -r gpt2
for name in bert-base-uncased bert-base-cased; do
  hub $name --family bert --context 512 --data my.txt --tokenizer-name-or-path vocab.txt || return 1
  cp vocab.txt "$(of_hub $name)"
  printf '{"do_lower_case": %s}\n' $([ $name = bert-base-cased ] && echo false || echo true) >"$(of_hub $name)/tokenizer_config.json"
done
hub google-t5/t5-small --family t5 --source-context 64 --context 64 --data pairs.txt --tokenizer-name-or-path "$WORLD/t5/tokenizer.json" || return 1
cp "$WORLD/t5/tokenizer.json" "$(of_hub google-t5--t5-small)"
