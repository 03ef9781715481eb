#!/usr/bin/env python3
"""Makes of FairSeq's model.pt of a RoBERTa or a BART a folder as transformers has it, which Tessera reads.

    python3 tools/convert_fairseq.py roberta.base/model.pt OUT
    tessera train --init-from OUT ...

Tokens keep their numbers of dict.txt; a tokenizer is not made. Needs PyTorch.
"""
import argparse
import pathlib
import re

import torch

from pickled import Refused, flat, load, require, run, whole, write_folder

# Parts of names, there and here; ROBERTA and BART have the layers below their own prefixes.
ROBERTA = [
    (r"encoder\.sentence_encoder\.embed_tokens\.", "roberta.embeddings.word_embeddings."),
    (r"encoder\.sentence_encoder\.embed_positions\.", "roberta.embeddings.position_embeddings."),
    (r"encoder\.sentence_encoder\.(layernorm_embedding|emb_layer_norm)\.", "roberta.embeddings.LayerNorm."),
    (r"encoder\.sentence_encoder\.layers\.(\d+)\.self_attn\.q_proj\.", r"roberta.encoder.layer.\1.attention.self.query."),
    (r"encoder\.sentence_encoder\.layers\.(\d+)\.self_attn\.k_proj\.", r"roberta.encoder.layer.\1.attention.self.key."),
    (r"encoder\.sentence_encoder\.layers\.(\d+)\.self_attn\.v_proj\.", r"roberta.encoder.layer.\1.attention.self.value."),
    (r"encoder\.sentence_encoder\.layers\.(\d+)\.self_attn\.out_proj\.", r"roberta.encoder.layer.\1.attention.output.dense."),
    (r"encoder\.sentence_encoder\.layers\.(\d+)\.self_attn_layer_norm\.",
     r"roberta.encoder.layer.\1.attention.output.LayerNorm."),
    (r"encoder\.sentence_encoder\.layers\.(\d+)\.fc1\.", r"roberta.encoder.layer.\1.intermediate.dense."),
    (r"encoder\.sentence_encoder\.layers\.(\d+)\.fc2\.", r"roberta.encoder.layer.\1.output.dense."),
    (r"encoder\.sentence_encoder\.layers\.(\d+)\.final_layer_norm\.", r"roberta.encoder.layer.\1.output.LayerNorm."),
    (r"encoder\.lm_head\.(dense|layer_norm|bias)", r"lm_head.\1"),
]
BART = [(r"(encoder|decoder)\.(embed_positions|layernorm_embedding)\.", r"model.\1.\2."),
        (r"(encoder|decoder)\.layers\.(\d+)\.(self_attn|encoder_attn)\.([qkv]_proj|out_proj)\.", r"model.\1.layers.\2.\3.\4."),
        (r"(encoder|decoder)\.layers\.(\d+)\.(self_attn_layer_norm|encoder_attn_layer_norm|fc1|fc2|final_layer_norm)\.",
         r"model.\1.layers.\2.\3.")]
NOTHING = re.compile(r"(.*\.)?(version|_float_tensor)$")  # of which nothing is learned

# Arguments by which numbers differ, and what each must be; those that are missing are so.
SAME = {"untie_weights_roberta": False, "encoder_normalize_before": False, "decoder_normalize_before": False,
        "layernorm_embedding": True, "no_scale_embedding": True, "encoder_learned_pos": True, "decoder_learned_pos": True,
        "share_all_embeddings": True, "no_token_positional_embeddings": False, "adaptive_input": False,
        "adaptive_softmax_cutoff": None, "encoder_layers_to_keep": None, "decoder_layers_to_keep": None,
        "cross_self_attention": False, "no_cross_attention": False}
ONLY_BART = {"share_all_embeddings", "decoder_normalize_before", "decoder_learned_pos"}
ONLY_ROBERTA = {"untie_weights_roberta", "no_scale_embedding"}
PAD = 1  # in every dictionary of FairSeq: <s>, <pad>, </s>, <unk>


def main():
    parser = argparse.ArgumentParser(prog="convert_fairseq.py", description=__doc__.split("\n")[0])
    parser.add_argument("checkpoint", help="model.pt, or a checkpoint that FairSeq saved while it trained")
    parser.add_argument("--head", metavar="NAME", help="of a RoBERTa, the head of classification_heads to take")
    run(convert, parser)


def convert(given, output):
    path = pathlib.Path(given.checkpoint)
    checkpoint = load(path, given.trust)
    require(isinstance(checkpoint, dict) and isinstance(checkpoint.get("model"), dict),
            f"'{path}' is no checkpoint of FairSeq: it has no 'model'")
    args = arguments(checkpoint, path)
    architecture = str(args.get("arch") or args.get("_name") or "")
    weights = {name: value for name, value in flat(checkpoint["model"]).items() if not NOTHING.match(name)}
    if architecture.startswith(("roberta", "xlmr", "camembert")) or architecture == "xlm":
        config, tensors = roberta(args, split(weights, r"^decoder\.(?=sentence_encoder|lm_head)"), given.head)
    elif architecture.startswith("bart"):
        require(not given.head, "--head is of RoBERTa: a BART does not classify here")
        config, tensors = bart(args, split(weights, None))
    else:
        raise Refused(f"'{path}' is a model of architecture '{architecture}'; roberta and bart are converted")
    write_folder(output, config, [whole(name, value) for name, value in sorted(tensors.items())])


def arguments(checkpoint, path):
    """Those of the model: of later versions a part of cfg."""
    cfg = checkpoint.get("cfg")
    found = cfg.get("model") if isinstance(cfg, dict) else None
    found = found if found is not None else checkpoint.get("args")
    require(found is not None, f"'{path}' has neither cfg.model nor args, which say what the model is")
    return dict(found) if isinstance(found, dict) else dict(vars(found))


def split(weights, decoder):
    """The first versions had queries, keys and values in one tensor; and RoBERTa's called their encoder a decoder."""
    out = {}
    for name, value in weights.items():
        name = re.sub(decoder, "encoder.", name) if decoder else name
        found = re.fullmatch(r"(.*)in_proj_(weight|bias)", name)
        if found:
            for part, rows in zip("qkv", value.chunk(3)):
                out[f"{found[1]}{part}_proj.{found[2]}"] = rows
        else:
            out[name] = value
    return out


def renamed(weights, table):
    out = {}
    for name in list(weights):
        for there, here in table:
            if re.match(there, name):
                out[re.sub("^" + there, here, name)] = weights.pop(name)
                break
    return out


def check(args, bart_too):
    for name, must in SAME.items():
        if args.get(name) is None or name in (ONLY_ROBERTA if bart_too else ONLY_BART):
            continue
        require(bool(args[name]) == bool(must), f"{name} is {args[name]}; it must be {must}: transformers and Tessera have "
                "no such model")


def take(weights, name):
    require(name in weights, f"the checkpoint lacks {name}")
    return weights.pop(name)


def needed(args, name):
    require(args.get(name) is not None, f"the checkpoint's arguments lack {name}")
    return args[name]


def rest(weights):
    names = sorted(weights)
    require(not names, f"{len(names)} tensors have no place in the model: {', '.join(names[:5])}"
            f"{' and others' if len(names) > 5 else ''}")


def equal(weights, table, copies):
    for copy in copies:
        if copy in weights:
            require(torch.equal(weights.pop(copy), table), f"{copy} differs from the table of tokens, and the two are one "
                    "here; the head of such a model is not read")


def roberta(args, weights, head):
    check(args, bart_too=False)
    require(args.get("activation_fn", "gelu") == "gelu", f"activation_fn is {args.get('activation_fn')}; it must be gelu")
    table = weights.get("encoder.sentence_encoder.embed_tokens.weight")
    require(table is not None, "the checkpoint lacks encoder.sentence_encoder.embed_tokens.weight")
    equal(weights, table, ["encoder.lm_head.weight"])
    heads = {}
    for name in list(weights):
        found = re.fullmatch(r"classification_heads\.([^.]+)\.(dense|out_proj)\.(weight|bias)", name)
        if found:
            heads.setdefault(found[1], {})[f"classifier.{found[2]}.{found[3]}"] = weights.pop(name)
    tensors = renamed(weights, ROBERTA)
    rest(weights)
    config = {"architectures": ["RobertaForMaskedLM"]}
    if head:
        require(head in heads, f"there is no head '{head}'; there are {', '.join(heads) or 'none'}")
        labels = heads[head]["classifier.out_proj.weight"].shape[0]
        require(args.get("pooler_activation_fn", "tanh") == "tanh", f"pooler_activation_fn is "
                f"{args.get('pooler_activation_fn')}; it must be tanh")
        tensors = {name: value for name, value in tensors.items() if not name.startswith("lm_head.")} | heads[head]
        config = {"architectures": ["RobertaForSequenceClassification"], "classifier_dropout": args.get("pooler_dropout", 0.0),
                  "id2label": {str(i): f"LABEL_{i}" for i in range(labels)},
                  "label2id": {f"LABEL_{i}": i for i in range(labels)}}
    elif heads:
        print(f"left out: classification_heads {', '.join(heads)}; --head NAME takes one in place of the masked tokens'")
    position = tensors["roberta.embeddings.position_embeddings.weight"]
    tensors["roberta.embeddings.token_type_embeddings.weight"] = torch.zeros(1, table.shape[1], dtype=table.dtype)
    return config | {
        "model_type": "roberta", "hidden_act": "gelu", "vocab_size": table.shape[0], "hidden_size": table.shape[1],
        "num_hidden_layers": layers(tensors, "roberta.encoder.layer."),
        "num_attention_heads": needed(args, "encoder_attention_heads"),
        "intermediate_size": tensors["roberta.encoder.layer.0.intermediate.dense.weight"].shape[0],
        "max_position_embeddings": position.shape[0], "type_vocab_size": 1, "layer_norm_eps": 1e-5,
        "hidden_dropout_prob": args.get("dropout", 0.1), "attention_probs_dropout_prob": args.get("attention_dropout", 0.1),
        "bos_token_id": 0, "pad_token_id": PAD, "eos_token_id": 2}, tensors


def layers(tensors, prefix):
    numbers = {int(name[len(prefix):].split(".")[0]) for name in tensors if name.startswith(prefix)}
    require(numbers == set(range(len(numbers))) and numbers, f"the checkpoint has layers {sorted(numbers)}")
    return len(numbers)


def bart(args, weights):
    check(args, bart_too=True)
    table = take(weights, "encoder.embed_tokens.weight")
    equal(weights, table, ["decoder.embed_tokens.weight", "decoder.output_projection.weight"])
    left = sorted({name.split(".")[1] for name in weights if name.startswith("classification_heads.")})
    for name in [name for name in weights if name.startswith("classification_heads.")]:
        weights.pop(name)
    if left:
        print(f"left out: classification_heads {', '.join(left)}: a BART does not classify here")
    tensors = renamed(weights, BART) | {"model.shared.weight": table}
    rest(weights)
    positions = {f"model.{stack}.embed_positions.weight": None for stack in ("encoder", "decoder")}
    for name in positions:
        require(name in tensors, f"the checkpoint lacks {name.removeprefix('model.')}")
        positions[name] = tensors[name].shape[0]
    lengths = set(positions.values())
    require(len(lengths) == 1, f"encoder and decoder have tables of {sorted(lengths)} positions; they must be of one length")
    out = {"architectures": ["BartForConditionalGeneration"], "model_type": "bart", "is_encoder_decoder": True,
           "d_model": table.shape[1], "vocab_size": table.shape[0], "scale_embedding": args.get("no_scale_embedding") is False,
           "activation_function": args.get("activation_fn", "gelu"),
           "max_position_embeddings": lengths.pop() - 2, "dropout": args.get("dropout", 0.1),
           "attention_dropout": args.get("attention_dropout", 0.0),
           "activation_dropout": args.get("activation_dropout") or args.get("relu_dropout") or 0.0,
           "bos_token_id": 0, "pad_token_id": PAD, "eos_token_id": 2, "decoder_start_token_id": 2,
           "forced_eos_token_id": 2, "tie_word_embeddings": True}
    for stack in ("encoder", "decoder"):
        out[f"{stack}_layers"] = layers(tensors, f"model.{stack}.layers.")
        out[f"{stack}_ffn_dim"] = tensors[f"model.{stack}.layers.0.fc1.weight"].shape[0]
        out[f"{stack}_attention_heads"] = needed(args, f"{stack}_attention_heads")
    return out, tensors


if __name__ == "__main__":
    main()
