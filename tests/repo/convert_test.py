"""convert_test.py ROOT TESSERA: tools/convert_megatron.py and tools/convert_fairseq.py on checkpoints that are made here of
golden folders: what they write is the golden folder again, and what is wrong is refused by its name."""
import argparse
import enum
import json
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import types

import numpy
import torch

ROOT, TESSERA = pathlib.Path(sys.argv[1]), sys.argv[2]
FAMILIES = ROOT / "tests" / "golden" / "families"
failures = []

# An object of Megatron-LM's among its arguments, which the scripts know nothing of.
enums = types.ModuleType("megatron.core.enums")
sys.modules["megatron"] = sys.modules["megatron.core"] = sys.modules["megatron.core.enums"] = enums
ModelType = enums.ModelType = enum.Enum("ModelType", "encoder_or_decoder", module="megatron.core.enums")


def expect(true, *words):
    if not true:
        failures.append(" ".join(map(str, words)))
        print("FAILED", *words)


def tensors_of(path):
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    dtypes = {"F32": torch.float32, "BF16": torch.bfloat16}
    out = {}
    for name, each in json.loads(data[8:8 + length]).items():
        if name != "__metadata__":
            begin, end = (8 + length + offset for offset in each["data_offsets"])
            out[name] = torch.frombuffer(bytearray(data[begin:end]), dtype=dtypes[each["dtype"]]).reshape(each["shape"])
    return out


def nested(tensors, depth):
    """The first versions have dicts within dicts, and below these names with dots."""
    out = {}
    for name, value in tensors.items():
        *path, last = name.split(".", depth)
        at = out
        for each in path:
            at = at.setdefault(each, {})
        at[last] = value.clone()
    return out


def shard_of(name, value, config, rank, tp, version):
    """What a tensor-parallel rank has, in the layout of a version: rows by hand, one head after another."""
    heads = config["num_attention_heads"]
    if re.search(r"(query_key_value|linear_qkv)\.(weight|bias)$", name):
        groups = config.get("num_query_groups") or heads
        each = value.shape[0] // groups
        own = value[rank * (groups // tp) * each:(rank + 1) * (groups // tp) * each]
        if version >= 2:
            return own
        width, mine, rows = each // 3, groups // tp, []
        if version == 0:
            for part in range(3):
                for head in range(mine):
                    rows += [own[head * each + part * width + i] for i in range(width)]
        else:
            for head in range(mine):
                for i in range(width):
                    rows += [own[head * each + part * width + i] for part in range(3)]
        return torch.stack(rows)
    if config.get("swiglu") and re.search(r"linear_fc1\.weight$", name):
        gate, up = value.chunk(2, 0)
        return torch.cat([gate.chunk(tp, 0)[rank], up.chunk(tp, 0)[rank]])
    by_rows = r"(word_embeddings|output_layer|dense_h_to_4h|linear_fc1)\.(weight|bias)$|lm_head\.bias$"
    if re.search(by_rows, name):
        return value.chunk(tp, 0)[rank]
    if re.search(r"(attention\.dense|linear_proj|dense_4h_to_h|linear_fc2)\.weight$", name):
        return value.chunk(tp, 1)[rank]
    return value


def shards_of(golden, config, tp, pp, version, virtual):
    """By ranks and model chunk, names of stages: layers from 0 on."""
    layers = config["num_layers"] // (pp * virtual)
    out = {}
    for t in range(tp):
        for p in range(pp):
            for v in range(virtual):
                number, mine = v * pp + p, {}
                for name, value in golden.items():
                    found = re.fullmatch(r"(.*layers\.)(\d+)(\..*)", name)
                    if found and int(found[2]) // layers != number:
                        continue
                    is_table = "embedding." in name
                    if not found and (is_table and number > 0 or not is_table and number + 1 < pp * virtual):
                        continue
                    mine[f"{found[1]}{int(found[2]) % layers}{found[3]}" if found else name] = shard_of(
                        name, value, config, t, tp, version)
                out[t, p, v] = mine
    return out


def args_of(config, tp, pp, **more):
    known = {key: value for key, value in config.items()
             if key not in ("model_type", "architectures", "dtype", "transformers_version", "checkpoint_version",
                            "use_legacy_models")}
    return argparse.Namespace(**known | {"params_dtype": torch.float32, "model_type": ModelType(1), "tensor_model_parallel_size": tp, "pipeline_model_parallel_size": pp,
                                         "lr": 1e-3, "data_path": ["x"]} | more)


def save(folder, golden, config, tp, pp, version, virtual=1, change=None, more={}):
    """A run's folder; `change` is told each rank and its checkpoint."""
    legacy = config["use_legacy_models"]
    at = folder / "run" / "iter_0000100"
    shards = shards_of(golden, config, tp, pp, version, virtual)
    for t in range(tp):
        for p in range(pp):
            checkpoint = {"args": args_of(config, tp, pp, **more), "iteration": 100, "checkpoint_version": version,
                          "rng_state": [{"torch_rng_state": torch.get_rng_state(), "random_rng_state": (3, (1, 2), None),
                                         "np_rng_state": numpy.random.get_state()}],
                          "optimizer": {"state": {0: {"exp_avg": torch.zeros(2)}}}}
            if version == 0:
                del checkpoint["checkpoint_version"]
            for v in range(virtual):
                mine = shards[t, p, v]
                if pp > 1 and p == pp - 1 and v == virtual - 1 and not config.get("untie_embeddings_and_output_weights"):
                    (table,) = [name for name in golden if name.endswith("word_embeddings.weight")]
                    copy = "word_embeddings_for_head.weight" if legacy else "output_layer.weight"
                    mine[copy] = shard_of(table, golden[table], config, t, tp, version)
                if not legacy:
                    mine["decoder.layers.0.mlp.linear_fc1._extra_state"] = torch.zeros(3, dtype=torch.uint8)
                checkpoint["model" if virtual == 1 else f"model{v}"] = nested(mine, 2) if legacy else mine
            if change:
                change(t, p, checkpoint)
            path = at / (f"mp_rank_{t:02d}" + (f"_{p:03d}" if pp > 1 else ""))
            path.mkdir(parents=True)
            torch.save(checkpoint, path / "model_optim_rng.pt")
    (folder / "run" / "latest_checkpointed_iteration.txt").write_text("100\n")
    return folder / "run"


def convert(script, *arguments):
    done = subprocess.run([sys.executable, ROOT / "tools" / script, *map(str, arguments)], capture_output=True, text=True)
    expect("Traceback" not in done.stderr, script, *arguments, done.stderr)
    return done


def expect_same(name, out, wanted):
    found = tensors_of(out / "model.safetensors")
    expect(found.keys() == wanted.keys(), name, "has other tensors:", sorted(found.keys() ^ wanted.keys()))
    for key in found.keys() & wanted.keys():
        expect(found[key].dtype == wanted[key].dtype and torch.equal(found[key], wanted[key]), name, "differs in", key)


def with_even_table(golden, config):
    """Tables that two ranks can split: as Megatron-LM pads them."""
    config = config | {"padded_vocab_size": config["padded_vocab_size"] + 1}
    out = dict(golden)
    for name, value in golden.items():
        if re.search(r"(word_embeddings|output_layer)\.weight$|lm_head\.bias$|output_layer\.bias$", name):
            out[name] = torch.cat([value, value[:1]])
    return out, config


def megatron_of(family):
    config = json.loads((FAMILIES / family / "config.json").read_text())
    return with_even_table(tensors_of(FAMILIES / family / "model.safetensors"), config)


def megatron():
    for family in ("megatron_lm_gpt", "megatron_lm_gpt_core", "megatron_lm_llama", "megatron_lm_bert",
                   "megatron_lm_bert_core"):
        golden, config = megatron_of(family)
        for tp, pp, version, virtual in ((1, 1, 3.0, 1), (2, 1, 3.0, 1), (2, 2, 2.0, 1), (1, 2, 3, 1), (2, 1, 3.0, 2),
                                         (1, 1, 0, 1), (2, 2, 0, 1), (2, 1, 1.0, 1)):
            if version < 2 and not config["use_legacy_models"]:
                continue
            with tempfile.TemporaryDirectory() as scratch:
                folder = pathlib.Path(scratch)
                name = f"{family}, tp {tp}, pp {pp}, version {version}, {virtual} chunks"
                done = convert("convert_megatron.py", save(folder, golden, config, tp, pp, version, virtual), folder / "out")
                expect(done.returncode == 0, name, done.stderr)
                if done.returncode:
                    continue
                expect_same(name, folder / "out", golden)
                said = json.loads((folder / "out" / "config.json").read_text())
                for key, value in config.items():
                    if value is not None and key not in ("dtype", "transformers_version"):
                        expect(said.get(key) == value, name, key, "is", said.get(key), "and not", value)
                expect(said.keys() <= config.keys(), name, "has other keys:", said.keys() - config.keys())
                if tp == 2 and pp == 1 and version == 3.0:
                    run = subprocess.run([TESSERA, "verify", "--init-from", folder / "out", "--context", "12",
                                          "--global-batch-size", "4", "--devices", "2", "--zero-stage", "3"],
                                         capture_output=True, text=True)
                    expect(run.returncode == 0, name, run.stdout, run.stderr)
                    expect("ignored keys" not in run.stdout + run.stderr, name, run.stdout, run.stderr)


class Code:
    def __reduce__(self):
        return (print, ("this ran",))


def refusals():
    golden, config = megatron_of("megatron_lm_gpt")

    def refused(name, said, tp=1, pp=1, flags=(), **how):
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch)
            break_folder = how.pop("folder", lambda path: None)
            run = save(folder, golden, config, tp, pp, how.pop("version", 3.0), **how)
            break_folder(run / "iter_0000100")
            done = convert("convert_megatron.py", run, folder / "out", *flags)
            if said is None:
                expect(done.returncode == 0, name, done.stderr)
            else:
                expect(done.returncode == 1 and said in done.stderr, name, "printed", done.stderr)
                expect("this ran" not in done.stdout or "--trust" in flags, name, "ran the file's code")
                expect(not (folder / "out").exists(), name, "left a folder")

    def put(key, value):
        return lambda t, p, checkpoint: checkpoint.update({key: value})

    def trusted(t, p, checkpoint):
        checkpoint["run"] = Code()
        del checkpoint["args"].model_type

    def remove_shard(path):
        (path / "mp_rank_01_001" / "model_optim_rng.pt").unlink()
        (path / "mp_rank_01_001").rmdir()

    def drift(t, p, checkpoint):
        if t == 1:
            checkpoint["model"]["language_model"]["encoder"]["final_layernorm.bias"][0] += 1

    def untied(t, p, checkpoint):
        if p == 1:
            checkpoint["model"]["word_embeddings_for_head"]["weight"][0] += 1

    refused("a shard that is missing", "lacks mp_rank_01_001", 2, 2, folder=remove_shard)
    refused("a stage that is missing", "num_layers is 4, but the stages have 2 layers", more={"num_layers": 4})
    refused("code in the file", "give --trust", change=put("run", Code()))
    refused("code that is trusted", None, change=trusted, flags=["--trust"])
    refused("code of a program that is not there", "objects of the module megatron", change=put("run", Code()),
            flags=["--trust"])
    refused("ranks that differ", "final_layernorm.bias", 2, change=drift)
    refused("ranks that differ, the first", None, 2, change=drift, flags=["--first-of-replicas"])
    refused("copies that differ", "word_embeddings_for_head.weight differs", 1, 2, change=untied)
    refused("a size of parallelism", "tensor_model_parallel_size is 2", more={"tensor_model_parallel_size": 2})
    refused("a later version", "checkpoint_version is 0.5", version=0.5)
    refused("what is not computed", "window_size is [8, 0]", more={"window_size": [8, 0]})
    refused("arguments that are missing", "give --arg num_layers=N", change=lambda t, p, c: c.pop("args"))
    refused("arguments that are given", None, change=lambda t, p, c: c.pop("args"),
            flags=["--arg", "num_layers=2", "--arg", "hidden_size=12", "--arg", "num_attention_heads=2"])
    for given, said in (("num_layer=2", "--arg num_layer is no argument"), ("swiglu", "--arg swiglu has no value"),
                        ("num_layers=3", "--arg num_layers=3: the checkpoint says 2")):
        refused(f"--arg {given}", said, flags=["--arg", given])
    for name, cut in (("half a file", lambda content: content[:len(content) // 2]), ("an empty file", lambda content: b""),
                      ("a text", lambda content: b"no checkpoint")):
        def damage(path, cut=cut):
            file = next(path.rglob("model_optim_rng.pt"))
            file.write_bytes(cut(file.read_bytes()))
        refused(name, "model_optim_rng.pt' is damaged, or no file of torch.save", folder=damage)
    refused("experts", "no dense GPT or BERT", change=lambda t, p, c: c["model"].update(
        {"mlp": {"experts.w": torch.zeros(1)}}))
    refused("a distributed checkpoint", "--ckpt-format torch", folder=lambda path: (path / "a.distcp").touch())


def hub(name):
    folder = ROOT / "tests" / "golden" / "hub" / name
    return tensors_of(folder / "model.safetensors"), json.loads((folder / "config.json").read_text())


def in_fairseq(golden, old):
    """Names of transformers' RoBERTa and BART as FairSeq has them; `old`: as its first versions."""
    out = {}
    for name, value in golden.items():
        if "token_type_embeddings" in name or name == "final_logits_bias":
            continue
        for there, here in (("roberta.encoder.layer.", "encoder.sentence_encoder.layers."),
                            ("roberta.embeddings.LayerNorm.", "encoder.sentence_encoder.layernorm_embedding."),
                            ("roberta.embeddings.word_embeddings.", "encoder.sentence_encoder.embed_tokens."),
                            ("roberta.embeddings.position_embeddings.", "encoder.sentence_encoder.embed_positions."),
                            ("attention.self.query.", "self_attn.q_proj."), ("attention.self.key.", "self_attn.k_proj."),
                            ("attention.self.value.", "self_attn.v_proj."),
                            ("attention.output.dense.", "self_attn.out_proj."),
                            ("attention.output.LayerNorm.", "self_attn_layer_norm."), ("intermediate.dense.", "fc1."),
                            ("output.dense.", "fc2."), ("output.LayerNorm.", "final_layer_norm."),
                            ("model.shared.", "encoder.embed_tokens.")):
            name = name.replace(there, here)
        if name.startswith("lm_head."):
            name = "encoder." + name
        name = name.removeprefix("model.").replace("classifier.", "classification_heads.mnli.")
        out[name] = value.clone()
    if any(name.startswith("encoder.lm_head.") for name in out):
        out["encoder.lm_head.weight"] = out["encoder.sentence_encoder.embed_tokens.weight"].clone()
        out["encoder.sentence_encoder.embed_positions._float_tensor"] = torch.zeros(1)
    if "encoder.embed_tokens.weight" in out:
        for name in ("decoder.embed_tokens.weight", "decoder.output_projection.weight"):
            out[name] = out["encoder.embed_tokens.weight"].clone()
        out["encoder.version"] = torch.tensor([3.0])
    if old:
        for name in [name for name in out if name.endswith("self_attn.q_proj.weight") or name.endswith("self_attn.q_proj.bias")]:
            parts = [out.pop(name.replace("q_proj", f"{part}_proj")) for part in "qkv"]
            out[name.replace("q_proj.", "in_proj_")] = torch.cat(parts)
        out = {re.sub("^encoder(?=.sentence_encoder|.lm_head)", "decoder", name).replace(
            "layernorm_embedding", "emb_layer_norm" if "sentence_encoder" in name else "layernorm_embedding"): value
            for name, value in out.items()}
    return out


ROBERTA = {"encoder_attention_heads": 4, "dropout": 0.0, "attention_dropout": 0.0, "activation_fn": "gelu",
           "encoder_normalize_before": False, "max_positions": 16, "pooler_activation_fn": "tanh"}
BART = ROBERTA | {"decoder_attention_heads": 4, "no_scale_embedding": False, "share_all_embeddings": True,
                  "layernorm_embedding": True, "encoder_learned_pos": True, "decoder_learned_pos": True, "relu_dropout": 0.0}


def fairseq():
    def tried(name, model, architecture, args, flags=(), cfg=False, said=None):
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch)
            of_model = args | {"_name" if cfg else "arch": architecture}
            torch.save({"model": model, "optimizer_history": [{"num_updates": 3}], "extra_state": {"epoch": 1},
                        "args": None if cfg else argparse.Namespace(**of_model),
                        **({"cfg": {"_name": None, "model": of_model}} if cfg else {})}, folder / "model.pt")
            done = convert("convert_fairseq.py", folder / "model.pt", folder / "out", *flags)
            if said is not None:
                return expect(done.returncode == 1 and said in done.stderr, name, "printed", done.stderr)
            expect(done.returncode == 0, name, done.stderr)
            if done.returncode:
                return None
            return tensors_of(folder / "out" / "model.safetensors"), json.loads((folder / "out" / "config.json").read_text())

    for hub_name, architecture, args, flags in (("roberta", "roberta_base", ROBERTA, ()), ("bart", "bart_base", BART, ()),
                                                ("roberta_classes", "roberta_large", ROBERTA, ("--head", "mnli"))):
        golden, config = hub(hub_name)
        golden.pop("final_logits_bias", None)
        for old in (False, True):
            found = tried(hub_name, in_fairseq(golden, old), architecture, args, flags, cfg=not old)
            if found is None:
                continue
            tensors, said = found
            for key in golden.keys() | tensors.keys():
                wanted = golden.get(key)
                if "token_type_embeddings" in key:  # which FairSeq has not
                    wanted = torch.zeros_like(wanted)
                expect(key in tensors and wanted is not None and torch.equal(tensors[key], wanted), hub_name, "differs in", key)
            for key, value in said.items():
                expect(key == "classifier_dropout" or config.get(key, value) == value, hub_name, key, "is", value, "and not",
                       config.get(key))
    golden, _ = hub("roberta")
    model = in_fairseq(golden, False)
    tried("untied", model, "roberta_base", ROBERTA | {"untie_weights_roberta": True}, said="untie_weights_roberta is True")
    tried("norms before", model, "roberta_prenorm", ROBERTA | {"encoder_normalize_before": True},
          said="encoder_normalize_before is True")
    tried("more tensors", model | {"encoder.more": torch.zeros(1)}, "roberta_base", ROBERTA, said="encoder.more")
    tried("another head", model, "roberta_base", ROBERTA, ["--head", "mnli"], said="there is no head 'mnli'")
    tried("no heads", model, "roberta_base", {}, said="lack encoder_attention_heads")
    model["encoder.lm_head.weight"][0] += 1
    tried("a head that differs", model, "roberta_base", ROBERTA, said="encoder.lm_head.weight differs")
    for name in ("transformer_wmt_en_de", "transformer_lm_gpt", "mbart_large", "wav2vec2"):
        tried(name, model, name, ROBERTA, said=f"architecture '{name}'")
    with tempfile.TemporaryDirectory() as folder:
        done = convert("convert_fairseq.py", folder, pathlib.Path(folder) / "out")
        expect(done.returncode == 1 and "is a folder; give the file in it" in done.stderr, "a folder printed", done.stderr)


if __name__ == "__main__":
    megatron()
    refusals()
    fairseq()
    print(f"{len(failures)} failures")
    sys.exit(bool(failures))
