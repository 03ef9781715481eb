#!/usr/bin/env python3
"""The time of a training step of each decoder family, beside PyTorch on the same model of transformers.

    ./dev bench families [--family NAME]... [--bf16] [--turns N] [FLAG...]      builds, then runs this

Each family is a model of eight layers of width 640 and 32,000 tokens, 54 to 81 million parameters, with the attention, norms
and feed-forward layers that its folders have. transformers draws the weights; `tessera train` and PyTorch begin with them,
and train on the same batch with AdamW, without dropout, on one process. Both must have the same number of parameters, and
losses that differ by less than a thousandth (in bf16, two hundredths). In turns: each side once a round, every other round
in reverse order; ratios are taken within a round. --peer PYTHON names a Python with torch and transformers. --compile adds
PyTorch compiled, which takes a minute more a turn. Writes a table and a JSON file, named by date and CPU, to bench/results.
"""
import argparse
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import time

import turns

WORK = pathlib.Path("runs/bench/families")
LR, BETA2, DECAY, CLIP = 1e-4, 0.95, 0.1, 1.0
NAMES = {"tessera": "Tessera", "pytorch": "PyTorch", "compiled": "PyTorch compiled"}
MOST_APART = {"f32": 1e-3, "bf16": 2e-2}  # losses, relative; bf16 keeps 8 bits
DISAGREE = 0.15  # ratios of rounds further apart than this tell of the machine


def main():
    os.chdir(pathlib.Path(__file__).resolve().parent.parent)
    args = parse_args()
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    make_tokens(args)
    each_turn = len(args.dtypes) * (1 + len(args.beside))
    turns.say(f"{len(args.family)} families, {args.rounds * each_turn} turns of {args.warmup + args.steps} steps each; the time "
              "that is left is told after each family")
    begin, result, rows = time.time(), None, []
    for number, family in enumerate(args.family):
        found = measure(args, family)
        result = found if result is None else joined(result, found)
        rows = rows_of(args, result)
        print("\n".join([*head(args), *rows] if number == 0 else rows[-len(args.dtypes):]), flush=True)
        each = (time.time() - begin) / (number + 1)
        turns.say(f"{number + 1} of {len(args.family)} families; about {each * (len(args.family) - number - 1) / 60:.0f} "
                  "minutes more")
    shutil.rmtree(WORK)
    turns.save(args.output / turns.name_of(result, "families"), result, table(args, result))
    sys.exit(any(difference(*pair) for pair in pairs_of(args, result)))


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--family", action="append", choices=sorted(FAMILIES), metavar="NAME",
                        help=f"one of {', '.join(FAMILIES)}; several may be given [all]")
    parser.add_argument("--bf16", action="store_true", help="in bf16 too")
    parser.add_argument("--turns", dest="rounds", type=int, default=2, help="of each side [2]")
    parser.add_argument("--steps", type=int, default=3, help="timed steps of a turn [3]")
    parser.add_argument("--warmup", type=int, default=1, help="untimed steps before them [1]")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="of each side [all cores]")
    parser.add_argument("--compile", action="store_true", help="PyTorch compiled too")
    for name, value, about in (("layers", 8, ""), ("width", 640, ""), ("heads", 10, "of which some families have fewer for "
                               "keys and values"), ("vocabulary", 32000, "tokens"), ("context", 256, "tokens of a sample"),
                               ("batch", 2, "samples of a step")):
        parser.add_argument(f"--{name}", type=int, default=value, help=f"{about} [{value}]".strip())
    turns.add_common_flags(parser)
    args = parser.parse_args()
    if min(args.rounds, args.steps, args.layers, args.batch) < 1 or args.warmup < 0 or args.context < 2:
        parser.error("--turns, --steps, --layers and --batch must be at least 1, --context 2, --warmup 0")
    if args.heads < 2 or args.heads % 2 or args.width % (16 * args.heads):
        parser.error("--heads must be even, and --width a multiple of 16 x heads")
    turns.require_programs(parser, args, "tessera")
    args.family = args.family or list(FAMILIES)
    args.dtypes = ["f32", "bf16"] if args.bf16 else ["f32"]
    args.output = pathlib.Path(args.output or "bench/results")
    args.beside = []
    if turns.has_torch(args, "transformers"):
        args.beside = ["pytorch", "compiled"] if args.compile else ["pytorch"]
    return args


# ---- the models, by transformers' keys ---------------------------------------------------------------------------

def gated(a, kv=1, **more):
    """Of LLaMA's kind; `kv`: heads that share a head of keys and values."""
    hidden = (8 * a.width // 3 + 63) // 64 * 64
    return sizes(a) | {"intermediate_size": hidden, "num_key_value_heads": a.heads // kv, "rope_parameters": rope()} | more


def plain(a, hidden="intermediate_size", **more):
    return sizes(a) | {hidden: 4 * a.width} | more


def sizes(a):
    return {"hidden_size": a.width, "num_hidden_layers": a.layers, "num_attention_heads": a.heads,
            "max_position_embeddings": a.context}


def of_gpt2(a, **more):
    return {"n_embd": a.width, "n_layer": a.layers, "n_head": a.heads, "n_positions": a.context, "embd_pdrop": 0.0,
            "attn_pdrop": 0.0, "resid_pdrop": 0.0} | more


def rope(**more):
    return {"rope_type": "default", "rope_theta": 10000.0} | more


def of_gemma(a, kv, **more):
    return gated(a, kv, head_dim=a.width // a.heads, tie_word_embeddings=True, **more)


def windows(a, every):
    """The last of `every` layers sees all tokens, the others half a sample."""
    return {"sliding_window": a.context // 2, "query_pre_attn_scalar": a.width // a.heads,
            "layer_types": ["full_attention" if (i + 1) % every == 0 else "sliding_attention" for i in range(a.layers)]}


FAMILIES = {
    "llama": ("Llama", lambda a: gated(a)),
    "mistral": ("Mistral", lambda a: gated(a, 2, sliding_window=a.context // 2)),
    "qwen2": ("Qwen2", lambda a: gated(a, 2)),
    "qwen3": ("Qwen3", lambda a: gated(a, 2, head_dim=a.width // a.heads)),
    "phi3": ("Phi3", lambda a: gated(a, sliding_window=None, original_max_position_embeddings=a.context)),
    "gemma": ("Gemma", lambda a: of_gemma(a, a.heads)),
    "gemma2": ("Gemma2", lambda a: of_gemma(a, 2, **windows(a, 2))),
    "gemma3_text": ("Gemma3", lambda a: of_gemma(a, 2, **windows(a, 6), rope_parameters={
        "full_attention": rope(rope_theta=1e6), "sliding_attention": rope()})),
    "gpt2": ("GPT2LMHead", lambda a: of_gpt2(a)),
    "gptj": ("GPTJ", lambda a: of_gpt2(a, rotary_dim=a.width // a.heads // 2, tie_word_embeddings=False)),
    "gpt_neox": ("GPTNeoX", lambda a: plain(a, rope_parameters=rope(partial_rotary_factor=0.25))),
    "phi": ("Phi", lambda a: plain(a, rope_parameters=rope(partial_rotary_factor=0.5))),
    "opt": ("OPT", lambda a: plain(a, "ffn_dim", word_embed_proj_dim=a.width, dropout=0.0)),
    "bloom": ("Bloom", lambda a: {"hidden_size": a.width, "n_layer": a.layers, "n_head": a.heads}),
    "falcon": ("Falcon", lambda a: plain(a, "ffn_hidden_size", rope_parameters=rope())),
    "starcoder2": ("Starcoder2", lambda a: plain(a, num_key_value_heads=a.heads // 2, sliding_window=None,
                                                 embedding_dropout=0.0, residual_dropout=0.0, rope_parameters=rope())),
}


def config_of(args, family):
    name, keys = FAMILIES[family]
    kind = name if name.endswith("Model") else f"{name}Model" if name.endswith("LMHead") else f"{name}ForCausalLM"
    return {"model_type": family, "architectures": [kind], "vocab_size": args.vocabulary, "dtype": "float32",
            "bos_token_id": None, "eos_token_id": None, "pad_token_id": None} | keys(args)


# ---- turns -------------------------------------------------------------------------------------------------------

def make_tokens(args):
    """A text that repeats itself after each sample, epoch after epoch: whichever samples are drawn, all are alike."""
    draw = random.Random(1)
    sample = [draw.randrange(args.vocabulary) for _ in range(args.context)]
    (WORK / "ids.json").write_text(json.dumps([*sample, sample[0]]))
    text = " ".join(map(str, sample * (4 * args.batch)))
    (WORK / "text.jsonl").write_text(json.dumps({"text": text}) + "\n")
    turns.told_by([f"{args.build}/tessera", "preprocess_data", "--input", WORK / "text.jsonl", "--output-prefix",
                   WORK / "tokens", "--tokenizer-type", "NullTokenizer", "--vocab-size", args.vocabulary - 1])


def measure(args, family):
    folder = WORK / family
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config_of(args, family), indent=1))
    if args.beside:
        lines_of([args.peer, "bench/peers/torch_family.py", folder, "--make"], ())
    names, tasks = {}, {}
    for dtype in args.dtypes:
        for who in ["tessera", *args.beside]:
            key = f"{family} {dtype} {who}"
            names[key] = f"{family} in {dtype}, {NAMES[who]}"
            run = tessera if who == "tessera" else peer
            tasks[key] = lambda run=run, who=who, dtype=dtype: about_turn(args, run(args, folder, dtype, who))
    result = turns.take_turns(args, names, tasks, lambda found: f"{1e3 * found['median']:.0f} ms a step",
                              threads=args.threads, dtypes=args.dtypes)
    shutil.rmtree(folder)
    return result


def about_turn(args, found):
    seconds = found["seconds"][args.warmup:]
    return found | {"median": turns.median(seconds), "least": min(seconds), "most": max(seconds)}


def tessera(args, folder, dtype, _):
    """Killed behind the last step: a run that ends writes a checkpoint, and the disk would be busy in the next turn."""
    output, steps = WORK / "run", args.warmup + args.steps
    shutil.rmtree(output, ignore_errors=True)
    words = [f"{args.build}/tessera", "train", "--init-from", folder, "--data", WORK / "tokens_text_document", "--split",
             "1,0,0", "--output", output, "--context", args.context, "--global-batch-size", args.batch, "--steps", steps + 1000,
             "--lr", LR, "--lr-decay-style", "constant", "--lr-warmup-steps", 0, "--adam-beta2", BETA2, "--weight-decay",
             DECAY, "--clip-grad", CLIP, "--dropout", 0, "--no-eval-at-end", "--threads", args.threads]
    words = [str(word) for word in words + (["--bf16"] if dtype == "bf16" else []) +
             ([] if args.beside else ["--init-from-config"])]
    with open(WORK / "tessera.log", "w") as log:
        run = subprocess.Popen([*args.under, *words], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        while len(told := trained(output / "metrics.jsonl")) < steps:
            if run.poll() is not None:
                sys.exit(f"bench: this ended with {run.returncode} after {len(told)} steps: {turns.line_of(words)}\n"
                         f"{(WORK / 'tessera.log').read_text()[-4000:]}")
            time.sleep(0.05)
        peak = peak_of(run.pid)
    finally:
        run.send_signal(signal.SIGKILL)
        run.wait()
    return {"command": turns.line_of(words), "parameters": parameters_in((WORK / "tessera.log").read_text()),
            "seconds": [line["step_seconds"] for line in told[:steps]], "losses": [line["loss"] for line in told[:steps]],
            "peak_rss": peak}


def trained(metrics):
    """The steps whose lines are whole."""
    if not metrics.exists():
        return []
    lines = metrics.read_text().split("\n")[:-1]
    return [line for line in map(json.loads, lines) if line["kind"] == "train"]


def parameters_in(log):
    return int(re.search(r"([0-9,]+) parameters", log)[1].replace(",", ""))


def peak_of(pid):
    lines = pathlib.Path(f"/proc/{pid}/status").read_text(errors="replace").splitlines()
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM:")), 0)


def peer(args, folder, dtype, who):
    words = [*turns.KEEP_MEMORY, args.peer, "bench/peers/torch_family.py", folder, "--ids", WORK / "ids.json", "--batch",
             args.batch, "--steps", args.warmup + args.steps, "--threads", args.threads, "--dtype", dtype, "--mode",
             "compile" if who == "compiled" else "eager", "--lr", LR, "--beta2", BETA2, "--decay", DECAY, "--clip", CLIP]
    (start, *steps, end), command = lines_of(words, args.under)
    return {"command": command, "seconds": [step["seconds"] for step in steps], "losses": [step["loss"] for step in steps],
            "peak_rss": end["peak_rss"]} | start


def lines_of(words, under):
    """What a peer tells, if it came to its end."""
    told, command = turns.told_by(words, under)
    lines = [json.loads(line) for line in told.splitlines() if line.startswith("{")]
    if not lines or lines[-1].get("code") != 0:
        sys.exit(f"bench: {command}\n{lines[-1].get('message') if lines else told}")
    return lines, command


# ---- the table ---------------------------------------------------------------------------------------------------

def joined(before, found):
    return before | {"runs": before["runs"] + found["runs"], "seconds": round(before["seconds"] + found["seconds"], 1),
                     "machine": before["machine"] | {"load_after": found["machine"]["load_after"]}}


def head(args):
    cells = ["family", "floats", "parameters", "PyTorch's attention", "Tessera, ms", "MiB"]
    for who in args.beside:
        cells += [f"{NAMES[who]}, ms", "MiB", f"Tessera / {NAMES[who]}", "beside LLaMA's"]
    return ["| " + " | ".join(cells) + " |", "|---" * len(cells) + "|"]


def rows_of(args, result):
    """A row a family and precision, as far as they were measured."""
    done = [family for family in args.family if turns.of_contestant(result, f"{family} f32 tessera")]
    return [row(args, result, family, dtype) for family in done for dtype in args.dtypes]


def row(args, result, family, dtype):
    def runs(of, who):
        return turns.of_contestant(result, f"{of} {dtype} {who}")

    ours = runs(family, "tessera")
    attention = next((run["attention"] for who in args.beside for run in runs(family, who)), "-")
    cells = [family, dtype, f"{ours[0]['parameters']:,}", attention, ms(ours), mib(ours)]
    for who in args.beside:
        theirs = runs(family, who)
        cells += [ms(theirs), mib(theirs), difference(ours, theirs, dtype) or ratio_text(ours, theirs)]
        llama = runs("llama", "tessera"), runs("llama", who)
        cells.append(f"{ratio(ours, theirs) / ratio(*llama):.2f}" if all(llama) else "-")
    return "| " + " | ".join(cells) + " |"


def ms(runs):
    """Of all timed steps: the median of rounds, the shortest and the longest step."""
    least, most = min(run["least"] for run in runs), max(run["most"] for run in runs)
    return f"{1e3 * turns.median(run['median'] for run in runs):.0f} ({1e3 * least:.0f} to {1e3 * most:.0f})"


def mib(runs):
    return f"{max(run['peak_rss'] for run in runs) >> 20}"


def ratio(ours, theirs):
    return turns.median(a["median"] / b["median"] for a, b in zip(ours, theirs))


def ratio_text(ours, theirs):
    quotients = [a["median"] / b["median"] for a, b in zip(ours, theirs)]
    disagree = max(quotients) - min(quotients) > DISAGREE * turns.median(quotients)
    return turns.spread(ours, theirs) + (", disagree" if disagree else "")


def pairs_of(args, result):
    """Both sides of each comparison, and its precision."""
    for dtype in args.dtypes:
        for who in args.beside:
            for family in args.family:
                yield *(turns.of_contestant(result, f"{family} {dtype} {side}") for side in ("tessera", who)), dtype


def difference(ours, theirs, dtype):
    """Why the two did not do the same work; empty: they did."""
    a, b = ours[0], theirs[0]
    if a["parameters"] != b["parameters"]:
        return f"parameters are {a['parameters']:,} and {b['parameters']:,}"
    for step, (x, y) in enumerate(zip(a["losses"], b["losses"])):
        if x is None or y is None or abs(x - y) > MOST_APART[dtype] * abs(y):
            return f"losses of step {step + 1} are {x} and {y}"
    return ""


def table(args, result):
    lines = [f"# {result['date']}: {result['machine']['cpu']}, families of decoders with {args.threads} threads", "",
             *turns.about(result), "",
             f"{args.layers} layers of width {args.width}, {args.heads} heads, {args.vocabulary} tokens; a step is "
             f"{args.batch} x {args.context} tokens. {args.steps} timed steps a turn, {args.warmup} before them. Steps: median "
             "(shortest to longest); ratios of a round: median (least to most), below 1 Tessera is faster; *beside LLaMA's*: "
             "that ratio over LLaMA's. Rounds that disagree by more than 15 % tell of the machine.", "",
             *head(args), *rows_of(args, result), "", "## Commands", "", "```sh"]
    lines += dict.fromkeys(run["command"] for run in result["runs"] if run["round"] == 0)
    return "\n".join(lines + ["```", ""])


if __name__ == "__main__":
    main()
