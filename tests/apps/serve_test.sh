#!/bin/bash
# serve_test.sh TESSERA: other programs get the texts that tessera sample and tessera chat write, from a run, its export and on
# a mesh; strangers get errors, and the server stays.
set -euo pipefail
tessera=$1
golden=$(cd "$(dirname "${BASH_SOURCE[0]}")/../golden/chat" && pwd)
folder=$(mktemp -d)
server=
trap 'if kill -0 "$server" 2>/dev/null; then kill -9 "$server"; fi; rm -rf "$folder"' EXIT
failures=0
wrong() { echo "serve_test: $*" >&2; failures=$((failures + 1)); }

mkdir "$folder/tokenizer"
cp "$golden"/byte_level/tokenizer*.json "$folder/tokenizer"
cp "$golden/chatml.jinja" "$folder/tokenizer/chat_template.jinja"
for _ in $(seq 1 20); do
  echo '{"messages": [{"role": "user", "content": "Where is Ulm?"}, {"role": "assistant", "content": "Danube."}]}'
done >"$folder/chat.jsonl"
for _ in $(seq 1 4000); do printf 'Ulm '; done >"$folder/loop.txt"
train() {  # NAME DATA STEPS CONTEXT
  "$tessera" train --preset llama-tiny --layers 2 --context "$4" --dropout 0 --threads 1 --tokenizer "$folder/tokenizer" \
    --data "$2" --held-out 0 --global-batch-size 2 --lr 1e-2 --steps "$3" --output "$folder/$1" \
    >"$folder/log" 2>&1 || wrong "training $1 ends with $?: $(tail -2 "$folder/log")"
}
train run "$folder/chat.jsonl" 60 96
train loop "$folder/loop.txt" 20 1024
"$tessera" export "$folder/run" --output "$folder/model" >"$folder/log" 2>&1 || wrong "export: $(tail -2 "$folder/log")"

[ $failures = 0 ] || exit 1

until_so() {  # CONDITION...
  for _ in $(seq 1 300); do "$@" && return; sleep 0.1; done
  wrong "not so after 30 s: $*; $(tail -2 "$folder/log")"
  return 1
}
listens() { grep -q '^serving ' "$folder/said" || ! kill -0 $server 2>/dev/null; }
start() {  # PATH FLAG...
  local path=$1
  shift
  : >"$folder/said"
  # What a script starts by & ignores SIGINT.
  env --default-signal=INT "$tessera" serve "$folder/$path" --port 0 "$@" >"$folder/said" 2>"$folder/log" &
  server=$!
  until_so listens
  port=$(sed -n 's|^serving .* at http://127.0.0.1:\([0-9]*\)/v1$|\1|p' "$folder/said")
  [ -n "$port" ] && return
  wrong "serve $path $* says $(cat "$folder/said" "$folder/log")"
  exit 1
}
stop() {  # SIGNAL
  kill -"$1" $server || wrong "the server has ended before SIG$1"
  ends "$1"
}
ends() {  # SIGNAL, that it has got
  local code=0
  wait $server || code=$?
  [ $code = 0 ] || wrong "after SIG$1 the server ends with $code: $(cat "$folder/log")"
  server=
}
never_ends='<the answer does not end>'
say() {  # BYTES: what the server answers
  exec 4<>"/dev/tcp/127.0.0.1/$port"
  printf '%b' "$1" >&4
  timeout 30 cat <&4 || echo "$never_ends"
  exec 4<&- 4>&-
}
get() { say "GET $1 HTTP/1.1\r\nHost: localhost\r\n\r\n"; }
post() {  # PATH JSON [FIELD]: it has neither % nor a backslash
  say "POST $1 HTTP/1.1\r\nHost: localhost\r\n${3-}Content-Length: ${#2}\r\n\r\n$2"
}
shows() {  # WHAT EXPECTED ANSWER: the answer has these words, and an end
  ! grep -qF -- "$never_ends" <<<"$3" || wrong "$1: $3"
  grep -qF -- "$2" <<<"$3" || wrong "$1 is not $2 but: $3"
}
value() { sed -n 's/.*"'"$1"'":"\([^"]*\)".*/\1/p' | tr -d '\n'; }  # of all lines, joined

hot='"prompt": "Where", "max_tokens": 12, "temperature": 1.5, "top_k": 40, "top_p": 0.95, "seed": 7'
sampled() {  # PATH: the same by tessera sample, as JSON has it
  "$tessera" sample "$folder/$1" --prompt Where --tokens 12 --temperature 1.5 --top-k 40 --top-p 0.95 --seed 7 --threads 1 \
    >"$folder/out" 2>"$folder/log" || wrong "sample $1 ends with $?"
  sed -e '1s/^Where//' -e 's/\\/\\\\/g' -e 's/"/\\"/g' "$folder/out"
}
ask='"messages": [{"role": "user", "content": "Where is Ulm?"}], "temperature": 0'
check_texts() {  # PATH
  local expected whole pieces
  expected=$(sampled "$1")
  whole=$(post /v1/completions "{$hot}")
  shows "a completion of $1" "\"text\":\"$expected\",\"logprobs\":null,\"finish_reason\":\"length\"" "$whole"
  shows "its usage" '"completion_tokens":12,' "$whole"
  pieces=$(post /v1/completions "{$hot, \"stream\": true, \"stream_options\": {\"include_usage\": true}}")
  [ "$(value text <<<"$pieces")" = "$expected" ] || wrong "in pieces $1 writes $(value text <<<"$pieces"), not $expected"
  shows "usage at the end of a stream" '"choices":[],"usage":{"prompt_tokens":' "$pieces"
  shows "the end of a stream" 'data: [DONE]' "$pieces"
  shows "an answer of $1" '"message":{"role":"assistant","content":"Danube.","refusal":null},"logprobs":null,"finish_reason":"stop"' \
    "$(post /v1/chat/completions "{$ask}")"
  pieces=$(post /v1/chat/completions "{$ask, \"stream\": true}")
  [ "$(value content <<<"$pieces")" = Danube. ] || wrong "in pieces $1 answers $pieces"
  shows "a text before a stop" '"content":"Dan","refusal":null},"logprobs":null,"finish_reason":"stop"' \
    "$(post /v1/chat/completions "{$ask, \"stop\": \"ube\"}")"
}

start run/ --threads 1
check_texts run
shows "the model" '{"object":"list","data":[{"id":"run","object":"model",' "$(get /v1/models)"
shows "the model by name" '{"id":"run","object":"model",' "$(get /v1/models/run)"
shows "health" '{"status": "ok"}' "$(get /health)"
# Without a seed each text has draws of its own, in order: those of tessera sample --samples.
a=$(post /v1/completions '{"prompt": "W", "temperature": 3}' | value text)
b=$(post /v1/completions '{"prompt": "W", "temperature": 3}' | value text)
[ "$a" != "$b" ] || wrong "two texts without a seed are the same: $a"

refused() {  # STATUS WORDS ANSWER
  shows "the status" "HTTP/1.1 $1 " "$(head -1 <<<"$3")"
  shows "the error" "$2" "$3"
}
refused 400 '{"error":{"message":"n is not supported; leave it out, or give 1","type":"invalid_request_error","param":"n","code":"unsupported_parameter"}}' \
  "$(post /v1/completions '{"prompt": "a", "n": 2}')"
refused 400 'the body is no JSON' "$(post /v1/completions '{"prompt": ')"
refused 400 'the body is no JSON' "$(post /v1/completions $'{"prompt": "\377"}')"
refused 400 'together more than the context of 96' "$(post /v1/completions '{"prompt": "a", "max_tokens": 97}')"
refused 400 'which leaves no room in the context of 96' \
  "$(post /v1/completions "{\"prompt\": \"$(printf 'a%.0s' $(seq 1 3000))\"}")"
refused 400 'prompt has token 99999, the model has' "$(post /v1/completions '{"prompt": [99999]}')"
refused 404 '"code":"model_not_found"' "$(post /v1/completions '{"prompt": "a", "model": "gpt-4"}')"
refused 404 'there is no /v1/embeddings' "$(post /v1/embeddings '{}')"
refused 405 'Allow: POST' "$(get /v1/completions)"
refused 403 'answers only requests to this host' "$(say 'GET /v1/models HTTP/1.1\r\nHost: evil.example\r\n\r\n')"
refused 403 'answers no pages of other hosts' "$(post /v1/completions '{"prompt": "a"}' 'Origin: https://evil.example\r\n')"
refused 411 'Content-Length' "$(say 'POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n\r\n')"
refused 413 'the body has more than 4194304 bytes' \
  "$(say 'POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4194305\r\n\r\n')"
refused 400 'control character' "$(say '\0\0\0\r\n\r\n')"
shows "a prompt with NUL" '"finish_reason":' \
  "$(say 'POST /v1/completions HTTP/1.1\r\nContent-Length: 20\r\n\r\n{"prompt":"\\u0000a"}')"
if "$tessera" serve "$folder/run" --port "$port" >"$folder/out" 2>&1; then wrong "two servers at one port"; fi
shows "a port that is taken" "cannot listen at 127.0.0.1:$port: Address already in use; another program does" "$(cat "$folder/out")"
check_texts run
stop TERM

start model/ --threads 1 --name other --context 64
check_texts model
shows "the name" '"id":"other"' "$(get /v1/models)"
shows "a shorter context" 'the context of 64' "$(post /v1/completions '{"prompt": "a", "max_tokens": 65}')"
stop TERM
for mesh in "--devices 2 --tensor-model-parallel-size 2" "--devices 2 --pipeline-model-parallel-size 2"; do
  start run --threads 1 $mesh
  check_texts run
  stop TERM
done

umask 077
printf '0123456789abcdef0123' >"$folder/token"
start run --threads 1 --token-file "$folder/token"
refused 401 '"code":"invalid_api_key"' "$(post /v1/completions '{"prompt": "a"}')"
refused 401 '"code":"invalid_api_key"' "$(post /v1/completions '{"prompt": "a"}' 'Authorization: Bearer 0123456789abcdef0124\r\n')"
shows "health without a token" '{"status": "ok"}' "$(get /health)"
shows "a text with a token" '"finish_reason":' \
  "$(post /v1/completions '{"prompt": "a"}' 'Authorization: Bearer 0123456789abcdef0123\r\n')"
stop INT

# While one text is written, no other may wait here. A client that goes ends its text; so does a server that ends.
start loop --threads 1 --queue 0
long='{"prompt": "Ulm", "max_tokens": 1000, "temperature": 0, "stream": true}'
begin_long() {
  exec 5<>"/dev/tcp/127.0.0.1/$port"
  printf 'POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s' ${#long} "$long" >&5
  head -c 10 <&5 >/dev/null
}
taken() { post /v1/completions '{"prompt": "a", "max_tokens": 1}' | grep -q '^HTTP/1.1 200'; }
now() { date +%s%N; }
sooner() {  # a client that goes makes the place free in less than half of the time that its text takes
  local began free whole
  began=$(now)
  post /v1/completions "$long" >/dev/null
  whole=$(($(now) - began))
  begin_long
  refused 503 '"code":"queue_full"' "$(post /v1/completions '{"prompt": "a"}')"
  exec 5<&- 5>&-
  began=$(now)
  until_so taken
  free=$(($(now) - began))
  [ $((2 * free)) -lt "$whole" ]
}
sooner || sooner || sooner || wrong "a client that goes does not end its text"
begin_long
kill -TERM $server
shows "a text when the server ends" '"message":"the server is ending","type":"server_error"' "$(timeout 30 cat <&5)"
exec 5<&- 5>&-
ends TERM

refuses() {  # MESSAGE FLAG...
  local message=$1
  shift
  if "$tessera" serve "$@" >"$folder/out" 2>"$folder/log"; then wrong "not refused: $*"; fi
  grep -qF -- "$message" "$folder/log" || wrong "serve $* says $(cat "$folder/log")"
}
refuses "--host 0.0.0.0 can be reached from other hosts, which needs a token: give --token-file FILE" "$folder/run" --host 0.0.0.0
chmod 644 "$folder/token"
refuses "can be read or written by other users" "$folder/run" --token-file "$folder/token"
refuses "--port is 65536; it must be from 0 to 65535" "$folder/run" --port 65536

[ $failures = 0 ] || exit 1
echo "serve_test: done"
