#!/usr/bin/env python3
"""Makes of a checkpoint of Megatron-LM a folder that Tessera reads.

    python3 tools/convert_megatron.py runs/gpt OUT
    tessera train --init-from OUT ...

The checkpoint is a run's folder (its newest iteration is taken), a folder iter_0001000, or one file. Tensor-parallel
shards are joined and pipeline stages numbered through; the output keeps Megatron-LM's names, and its config.json the
arguments that say what the model is. Weights alone are taken: no optimizer, no tokenizer. Needs PyTorch.
"""
import argparse
import collections
import json
import pathlib
import re

import torch

from pickled import Refused, flat, load, require, run, write_folder

# Arguments that Tessera reads or judges, with the names that they had before.
KEPT = {name: (name,) for name in (
    "num_layers hidden_size ffn_hidden_size num_attention_heads kv_channels group_query_attention num_query_groups "
    "max_position_embeddings padded_vocab_size init_method_std hidden_dropout attention_dropout normalization "
    "untie_embeddings_and_output_weights bias_gelu_fusion openai_gelu position_embedding_type add_bias_linear swiglu "
    "apply_layernorm_1p apply_residual_connection_post_layernorm multi_latent_attention qk_layernorm squared_relu "
    "num_experts bert_binary_head add_qkv_bias rotary_base rotary_percent").split()}
KEPT["layernorm_epsilon"] = ("layernorm_epsilon", "norm_epsilon")
# Others by which numbers differ: none of them may be on.
OFF = """
activation_func_clamp_value attention_output_gate embedding_multiplier experimental_attention_variant glu_linear_offset
heterogeneous_layers_config_path heterogeneous_layers_config_encoded_json hybrid_override_pattern is_hybrid_model
linear_attention_freq log_scaling mtp_num_layers no_rope_freq quick_geglu retro_add_retriever rotary_interleaved
rotary_seq_len_interpolation_factor use_rope_scaling window_size
""".split()

# By the end of a name, along which dim tensor parallelism splits it. Others are the same on all ranks.
ROWS, COLUMNS = 0, 1
SPLIT = {
    "word_embeddings.weight": ROWS, "word_embeddings_for_head.weight": ROWS, "output_layer.weight": ROWS,
    "output_layer.bias": ROWS, "lm_head.bias": ROWS,
    "query_key_value.weight": ROWS, "query_key_value.bias": ROWS, "linear_qkv.weight": ROWS, "linear_qkv.bias": ROWS,
    "dense_h_to_4h.weight": ROWS, "dense_h_to_4h.bias": ROWS, "linear_fc1.weight": ROWS, "linear_fc1.bias": ROWS,
    "attention.dense.weight": COLUMNS, "linear_proj.weight": COLUMNS, "dense_4h_to_h.weight": COLUMNS,
    "linear_fc2.weight": COLUMNS,
}
QKV = ("query_key_value.weight", "query_key_value.bias", "linear_qkv.weight", "linear_qkv.bias")
LAYER = re.compile(r"(.*\blayers\.)(\d+)(\..*)")


def main():
    parser = argparse.ArgumentParser(prog="convert_megatron.py", description=__doc__.split("\n")[0])
    parser.add_argument("checkpoint", help="a run, a folder iter_0001000, or a file")
    parser.add_argument("--arg", action="append", default=[], metavar="NAME=VALUE",
                        help="an argument of Megatron-LM that the checkpoint lacks, like num_layers=24")
    parser.add_argument("--first-of-replicas", action="store_true",
                        help="where ranks disagree about a tensor that they share, take the first rank's")
    run(convert, parser)


def convert(given, output):
    files = shard_files(pathlib.Path(given.checkpoint))
    shards = {at: load(path, given.trust) for at, path in files.items()}
    first = shards[0, 0]
    require(isinstance(first, dict), f"'{files[0, 0]}' is no checkpoint of Megatron-LM: it holds a {type(first).__name__}")
    args = first.get("args", {})
    args = dict(args if isinstance(args, dict) else vars(args))
    for each in given.arg:
        name, equals, value = each.partition("=")
        require(equals, f"--arg {each} has no value; give NAME=VALUE")
        known = {spelling for names in KEPT.values() for spelling in names}
        require(name in known, f"--arg {name} is no argument that Tessera reads; they are {', '.join(sorted(known))}")
        require(args.get(name) is None, f"--arg {each}: the checkpoint says {args.get(name)}; leave it out")
        try:
            args[name] = json.loads(value)
        except ValueError:
            args[name] = value
    if args.get("use_rotary_position_embeddings"):  # as earlier versions said it
        args["position_embedding_type"] = "rope"
    version = float(first.get("checkpoint_version", 0))
    tp = 1 + max(t for t, _ in files)
    stages = chunks(shards, files)
    check_args(args, tp, 1 + max(p for _, p in files))
    names = joined(stages, args, version, tp, given.first_of_replicas)
    config, kept = folder(names, args)
    write_folder(output, config, [(name, each.shape, each.dtype, each.make) for name, each in kept.items()])


def shard_files(path):
    """By rank of tensor and of pipeline parallelism."""
    require(path.exists(), f"'{path}' is not there")
    if path.is_file():
        return {(0, 0): path}
    tracker = path / "latest_checkpointed_iteration.txt"
    if tracker.is_file():
        newest = tracker.read_text(errors="replace").strip()
        require(newest == "release" or newest.isascii() and newest.isdigit(),
                f"'{tracker}' says '{newest[:40]}', not an iteration; give the folder iter_... itself")
        path = path / (newest if newest == "release" else f"iter_{int(newest):07d}")
    require(not any(path.glob("*.distcp")) and not (path / "metadata.json").exists(),
            f"'{path}' is a distributed checkpoint; save it with --ckpt-format torch "
            "(--ckpt-convert-format torch makes it of one that is there)")
    require(not any(path.glob("layer_*-model_*")), f"'{path}' is a checkpoint of DeepSpeed's pipelines, which is not read")
    out = {}
    for shard in sorted(path.glob("mp_rank_*")):
        ranks = [int(each) for each in shard.name[len("mp_rank_"):].split("_")]
        require(len(ranks) <= 2, f"'{shard}' is a shard of experts; there are none here")
        found = [shard / name for name in ("model_optim_rng.pt", "model_rng.pt") if (shard / name).is_file()]
        require(len(found) == 1, f"'{shard}' must have model_optim_rng.pt or model_rng.pt")
        out[ranks[0], ranks[1] if len(ranks) > 1 else 0] = found[0]
    require(out, f"'{path}' has no folders mp_rank_00")
    tp, pp = 1 + max(t for t, _ in out), 1 + max(p for _, p in out)
    lacking = [f"mp_rank_{t:02d}" + (f"_{p:03d}" if pp > 1 else "") for p in range(pp) for t in range(tp)
               if (t, p) not in out]
    require(not lacking, f"'{path}' lacks {', '.join(lacking)}")
    return out


def chunks(shards, files):
    """Parts of the model in the order of layers, each a list of the tensors of tensor-parallel ranks."""
    tp, pp = 1 + max(t for t, _ in shards), 1 + max(p for _, p in shards)
    keys = ["model"] if "model" in shards[0, 0] else sorted(
        (key for key in shards[0, 0] if re.fullmatch(r"model\d+", key)), key=lambda key: int(key[5:]))
    require(keys, f"'{files[0, 0]}' has no model: its keys are {', '.join(map(str, list(shards[0, 0])[:10]))}")
    out = []
    for key in keys:
        for p in range(pp):
            for t in range(tp):
                require(key in shards[t, p], f"'{files[t, p]}' lacks {key}")
            out.append([weights(shards[t, p][key]) for t in range(tp)])
            for t, other in enumerate(out[-1]):
                require(other.keys() == out[-1][0].keys(), f"'{files[t, p]}' has other tensors than '{files[0, p]}': "
                        f"{some(other.keys() ^ out[-1][0].keys())}")
    return out


def weights(tree):
    """Without what Transformer Engine says of its layers, and rates of positions."""
    tensors = flat(tree, unread=("_extra_state", "inv_freq"))
    return {name.removeprefix("module."): value for name, value in tensors.items()}


def some(names):
    names = sorted(names)
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def check_args(args, tp, pp):
    for name in ("num_layers", "hidden_size", "num_attention_heads"):
        require(args.get(name) is not None, f"the checkpoint's arguments lack {name}; give --arg {name}=N")
    said = args.get("tensor_model_parallel_size", args.get("model_parallel_size", tp))
    require(said == tp, f"tensor_model_parallel_size is {said}, but there are shards of {tp} ranks")
    said = args.get("pipeline_model_parallel_size", pp)
    require(said == pp, f"pipeline_model_parallel_size is {said}, but there are {pp} stages")
    for name in OFF:
        value = args.get(name)
        require(value is None or value is False or value == 0, f"{name} is {value}: Tessera does not compute that")
    require(args.get("softmax_type", "vanilla") == "vanilla", f"softmax_type is {args.get('softmax_type')}; it must be vanilla")


Made = collections.namedtuple("Made", "shape dtype make parts")


def joined(stages, args, version, tp, first_of_replicas):
    """Every tensor of the model, by its name in the whole."""
    out, layers = {}, 0
    for shards in stages:
        numbers = sorted({int(found.group(2)) for found in map(LAYER.fullmatch, shards[0]) if found})
        require(numbers == list(range(len(numbers))), f"a stage has layers {numbers}; expected are all from 0 on")
        for name in shards[0]:
            found = LAYER.fullmatch(name)
            target = f"{found[1]}{layers + int(found[2])}{found[3]}" if found else name
            one = made(name, [shard[name] for shard in shards], args, version, tp, first_of_replicas)
            if target in out:
                require(torch.equal(out[target].make(), one.make()), f"two stages have {target}, and not the same")
            out[target] = one
        layers += len(numbers)
    require(layers == args["num_layers"], f"num_layers is {args['num_layers']}, but the stages have {layers} layers; "
            "is a file of a stage missing?")
    return out


def made(name, parts, args, version, tp, first_of_replicas):
    dim = next((dim for end, dim in SPLIT.items() if name.endswith(end)), None)
    shape = list(parts[0].shape)
    if dim is None:
        for rank, part in enumerate(parts):
            if not torch.equal(part, parts[0]) and not first_of_replicas:
                apart = (part.double() - parts[0].double()).abs().max().item() if part.shape == parts[0].shape else "shapes"
                raise Refused(f"tensor-parallel ranks 0 and {rank} have different {name} (by {apart}); they must share it. "
                              "--first-of-replicas takes rank 0's")
        return Made(shape, parts[0].dtype, lambda: parts[0], parts)
    for rank, part in enumerate(parts):
        require(list(part.shape) == shape, f"{name} is {list(part.shape)} on rank {rank}, and {shape} on rank 0")
    shape[dim] *= tp
    if args.get("swiglu") and name.endswith(("dense_h_to_4h.weight", "linear_fc1.weight")):  # of each rank, gate and up
        return Made(shape, parts[0].dtype,
                    lambda: torch.cat([part.chunk(2)[half] for half in range(2) for part in parts]), parts)
    turned = [(lambda part=part: by_heads(name, part, args, version, tp)) for part in parts]
    return Made(shape, parts[0].dtype, lambda: torch.cat([each() for each in turned], dim), parts)


def by_heads(name, part, args, version, tp):
    """Rows of each head's query, key and value, as since version 2: before, all queries came first (version 0), or the
    three stood side by side in each channel (version 1)."""
    if version >= 2 or not name.endswith(QKV):
        return part
    require(version in (0, 1), f"checkpoint_version is {version}; known are 0, 1, 2 and 3")
    heads = args["num_attention_heads"] // tp
    width = part.shape[0] // 3 // heads
    require(3 * heads * width == part.shape[0], f"{name} has {part.shape[0]} rows, and not 3 for each of {heads} heads' channels")
    shape = (3, heads, width) if version == 0 else (heads, width, 3)
    order = (1, 0, 2) if version == 0 else (0, 2, 1)
    return part.reshape(*shape, *part.shape[1:]).permute(*order, *range(3, 2 + part.dim())).reshape(part.shape)


def folder(names, args):
    """config.json, and the tensors without copies of the table."""
    core = any(".linear_qkv." in name for name in names)
    tables = [name for name in names if name.endswith("embedding.word_embeddings.weight")]
    require(tables, "the checkpoint has no embedding.word_embeddings.weight; is a file of the first stage missing?")
    require(len(tables) == 1, f"the checkpoint has {len(tables)} tables of tokens: {', '.join(sorted(tables))}")
    table = tables[0]
    bert = any(name.startswith("lm_head.") for name in names)
    strange = [name for name in names if re.search(r"experts|router|mixer|language_model\.decoder|vision|eh_proj", name)]
    require(not strange, f"no dense GPT or BERT: it has {some(strange)}")
    copies = [name for name in names if name.endswith("word_embeddings_for_head.weight")]
    if not args.get("untie_embeddings_and_output_weights"):
        copies += [name for name in names if name.endswith("output_layer.weight")]
    for copy in copies:
        require(torch.equal(names[copy].make(), names[table].make()),
                f"{copy} differs from {table}, and the two are one in a model with tied embeddings")
    kept = {name: each for name, each in names.items() if name not in copies}
    rotary = args.get("position_embedding_type") == "rope" or args.get("normalization") == "RMSNorm"
    config = {"model_type": "megatron-lm-" + ("bert" if bert else "llama" if rotary else "gpt"), "checkpoint_version": 3,
              "architectures": ["BertModel" if bert else "GPTModel"], "use_legacy_models": not core}
    for name, known in KEPT.items():
        values = [args[each] for each in known if args.get(each) is not None]
        if values:
            config[name] = values[0]
    if not bert:
        config.pop("bert_binary_head", None)
    if not rotary:
        for name in ("add_qkv_bias", "rotary_base", "rotary_percent"):
            config.pop(name, None)
    if core:  # which has no other GELU by tanh than the fused one
        config.pop("openai_gelu", None)
    if not config.get("group_query_attention"):
        config.pop("num_query_groups", None)
    rows = names[table].shape[0]
    require(config.setdefault("padded_vocab_size", rows) == rows,
            f"padded_vocab_size is {config['padded_vocab_size']}, but {table} has {rows} rows")
    return config, kept


if __name__ == "__main__":
    main()
