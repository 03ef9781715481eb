"""What NumPy's RandomState and megatron-core make of token files: tests/golden/token_files.json.

    python tools/golden/token_files.py > tests/golden/token_files.json
    python tools/golden/token_files.py --cases 500 --seed 7 > FILE   # more and larger ones, to compare with by hand:
    TESSERA_TOKEN_FILES_GOLDEN=FILE build/data_test --gtest_filter='Megatron*'

Needs pip install numpy torch megatron-core packaging einops.
"""
import argparse
import hashlib
import json
import os
import random
import sys
import tempfile
import warnings

warnings.filterwarnings("ignore")
import numpy
import torch
import megatron.core
from megatron.core.datasets import helpers
from megatron.core.datasets.bert_dataset import BERTMaskedWordPieceDataset, BERTMaskedWordPieceDatasetConfig
from megatron.core.datasets.blended_megatron_dataset_builder import (
    BlendedMegatronDatasetBuilder, _get_size_per_split_per_dataset)
from megatron.core.datasets.blended_megatron_dataset_config import (
    convert_split_vector_to_split_matrix, parse_and_normalize_split)
from megatron.core.datasets.gpt_dataset import GPTDataset, GPTDatasetConfig, _get_ltor_masks_and_position_ids
from megatron.core.datasets.indexed_dataset import DType, IndexedDatasetBuilder
from megatron.core.datasets.t5_dataset import T5MaskedWordPieceDataset, T5MaskedWordPieceDatasetConfig
from megatron.core.datasets.utils import normalize
from megatron.core.tokenizers.text.libraries.null_tokenizer import NullTokenizer


class WordPieces:
    """Ids are numbers; every seventh goes on a word."""

    def __init__(self, size, sentinels=40):
        self.cls, self.sep, self.mask, self.pad = 2, 3, 4, 0
        self.bos, self.eos = size, size + 1
        self.additional_special_tokens_ids = list(range(size + 2, size + 2 + sentinels))
        self.inv_vocab = {i: ("##p" if i >= 5 and i % 7 == 0 else "p") for i in range(size)}
        self.unique_identifiers = NullTokenizer(size).unique_identifiers  # what the C++ code describes


def numpy_cases(pick, cases):
    out = []
    for i in range(cases):
        seed = [0, 1, 1234, 2**32 - 1][i] if i < 4 else pick.randrange(2**32)
        key = [pick.randrange(2**32) for _ in range(pick.choice([1, 2, 5, 700 if cases > 100 else 3]))]
        case = {"seed": seed, "key": key}
        state = numpy.random.RandomState(seed)
        n = pick.choice([2, 16, 40])
        values = numpy.arange(n, dtype=numpy.int64)
        state.shuffle(values)
        case["shuffle"] = values.tolist()
        case["permutation"] = state.permutation(n).tolist()
        case["random"] = state.rand(3).tolist()
        bounds = [(1, 5), (0, 2**32), (-7, 2**33), (3, 4), (-2**62, 2**62)]
        case["randint"] = [[low, high, int(state.randint(low, high, dtype=numpy.int64))] for low, high in bounds]
        case["geometric"] = [int(state.geometric(p)) for p in (.2, .5, .01) for _ in range(3)]
        p = normalize([1 / k for k in range(1, pick.choice([2, 4, 11, 30]))])
        case["p"] = p
        case["choice"] = [int(state.choice(len(p), p=p)) for _ in range(5)]
        case["choice_plain"] = [int(state.choice(9)) for _ in range(3)]
        case["next"] = int(state.randint(0, 2**32, dtype=numpy.int64))
        case["of_key"] = [int(x) for x in numpy.random.RandomState(key).randint(0, 2**32, size=3, dtype=numpy.int64)]
        out.append(case)
    return out


def write_files(prefix, documents, dtype):
    builder = IndexedDatasetBuilder(prefix + ".bin", dtype=dtype)
    for document in documents:
        ids = [i for sentence in document for i in sentence]
        builder.add_document(torch.IntTensor(ids) if dtype != numpy.int64 else torch.LongTensor(ids),
                             [len(sentence) for sentence in document])
    builder.finalize(prefix + ".idx")


def kept(dataset, prefixes, folder=None):
    """What a dataset has written: its description, and of each file of indices the MD5."""
    kind, description = type(dataset).__name__, dataset.unique_description
    names = {"BlendedDataset": ("dataset_index", "dataset_sample_index")}.get(kind, ("sample_index",))
    part = f"{dataset.split.name}-" if kind == "BlendedDataset" else ""
    base = f"{folder or prefixes[0] + f'/cache/{kind}_indices'}/{dataset.unique_description_hash}-{kind}-{part}"
    assert open(base + "description.txt").read() == description
    for i, prefix in enumerate(prefixes):
        description = description.replace(json.dumps(prefix), f'"PREFIX{i}"')
    return {"description": description,
            "files": {name + ".npy": hashlib.md5(open(f"{base}{name}.npy", "rb").read()).hexdigest() for name in names}}


def builder_cases(pick, cases, folder):
    out = []
    dtypes = [numpy.uint16, numpy.int32, numpy.uint8, numpy.int8, numpy.int16, numpy.int64]
    for i in range(max(cases, 6)):
        dtype = dtypes[i % 6]
        most = {numpy.uint8: 255, numpy.int8: 127, numpy.int16: 32767, numpy.uint16: 65535}.get(dtype, 100000)
        documents = [[[pick.randrange(most + 1) for _ in range(pick.randrange(5))]
                      for _ in range(pick.randrange(4))] for _ in range(pick.randrange(1, 5))]
        prefix = f"{folder}/builder{i}"
        write_files(prefix, documents, dtype)
        out.append({"type": DType.code_from_dtype(dtype), "documents": documents,
                    "bin": open(prefix + ".bin", "rb").read().hex(), "idx": open(prefix + ".idx", "rb").read().hex()})
    return out


def random_lengths(pick, large):
    n = pick.randrange(1, 400 if large else 24)
    return [0 if pick.random() < .05 else pick.randrange(1, 60 if large else 12) for _ in range(n)]


def gpt_cases(pick, cases, folder):
    out = []
    vocabulary = 1000
    while len(out) < cases:
        lengths = random_lengths(pick, cases > 20)
        documents = [[[pick.randrange(vocabulary) for _ in range(n)]] for n in lengths]
        prefix = f"{folder}/gpt{len(out)}"
        write_files(prefix, documents, numpy.uint16)
        split = pick.choice(["1,0,0", "969, 30, 1", "980,20", "1,1,1", "8/1/1", ".5,.25,.25", "70"])
        context = pick.choice([1, 2, 4, 7, 16, 33])
        seed = pick.choice([1, 42, 1234, pick.randrange(2**31)])
        ranges = split_ranges(split, len(lengths))
        shares = convert_split_vector_to_split_matrix(parse_and_normalize_split(split))
        if any(m is not None and sum(lengths[begin:end]) < 2 for m, (begin, end) in zip(shares, ranges)):
            continue  # megatron-core counts epochs of such a part for ever
        wanted = [pick.choice([None, pick.randrange(1, 40), pick.randrange(1, 400 if cases > 20 else 40)])] * 3
        config = GPTDatasetConfig(
            random_seed=seed, sequence_length=context, blend=([prefix], None), split=split,
            tokenizer=NullTokenizer(vocabulary), reset_position_ids=False, reset_attention_mask=False,
            eod_mask_loss=False, create_attention_mask=False)
        try:
            datasets = BlendedMegatronDatasetBuilder(GPTDataset, wanted, lambda: True, config).build()
        except (AssertionError, IndexError, ValueError, ZeroDivisionError):
            continue  # nothing in some part
        for part, dataset in enumerate(datasets):
            if dataset is None or len(dataset) == 0 or len(out) >= cases:
                continue
            take = range(len(dataset)) if len(dataset) < 6 or cases > 20 else [0, 1, len(dataset) - 1]
            samples = [[int(k)] + dataset[k]["tokens"].tolist() + dataset[k]["labels"].tolist()[-1:] for k in take]
            out.append({
                "lengths": lengths, "tokens": [i for d in documents for i in d[0]], "split": split, "part": part,
                "context": context, "wanted": wanted[0], "seed": seed, "vocabulary": vocabulary,
                "documents": dataset.document_index.tolist(), "rows": dataset.sample_index.ravel().tolist(),
                "shuffle": dataset.shuffle_index.tolist(), "samples": samples,
                "description": dataset.unique_description.replace(json.dumps(prefix), '"PREFIX"'),
                "types": [dataset.document_index.dtype.str, dataset.sample_index.dtype.str,
                          dataset.shuffle_index.dtype.str],
                "npy": [open(f"{prefix}/cache/GPTDataset_indices/{dataset.unique_description_hash}-GPTDataset-"
                             f"{dataset.index_split.name}-{name}.npy", "rb").read(128).hex()
                        for name in ("document_index", "sample_index", "shuffle_index")]})
            assert dataset.unique_description.count(prefix) == 1
    return out


def blended_cases(pick, cases, folder):
    out = []
    while len(out) < cases:
        count = pick.randrange(1, 5)
        prefixes, files = [], []
        for k in range(count):
            lengths = [pick.randrange(1, 12) for _ in range(pick.randrange(3, 30))]
            documents = [[[pick.randrange(900) for _ in range(n)]] for n in lengths]
            prefix = f"{folder}/blend{len(out)}_{k}"
            write_files(prefix, documents, numpy.uint16)
            prefixes.append(prefix)
            files.append({"lengths": lengths, "tokens": [i for d in documents for i in d[0]]})
        weights = None if count > 1 and pick.random() < .4 else [pick.choice([.1, .5, 1, 3, 7]) for _ in range(count)]
        wanted = pick.randrange(1, 60) if weights or pick.random() < .7 else None
        context = pick.choice([2, 5, 8])
        config = GPTDatasetConfig(
            random_seed=1234, sequence_length=context, blend=(prefixes, weights), split="1,0,0",
            tokenizer=NullTokenizer(1000), reset_position_ids=False, reset_attention_mask=False, eod_mask_loss=False,
            create_attention_mask=False, path_to_cache=f"{folder}/blend{len(out)}")
        try:
            dataset = BlendedMegatronDatasetBuilder(GPTDataset, [wanted, 0, 0] if wanted else [None] * 3,
                                                    lambda: True, config).build()[0]
        except (AssertionError, IndexError):
            continue
        out.append({"files": files, "weights": weights or [], "wanted": wanted, "context": context,
                    "kept": kept(dataset, prefixes, config.path_to_cache),
                    "samples": [dataset[k]["tokens"].tolist() + dataset[k]["labels"].tolist()[-1:]
                                for k in range(len(dataset))]})
    return out


def blending_cases(pick, cases):
    out = []
    for _ in range(cases):
        count = pick.choice([1, 2, 3, 9, 20 if cases > 20 else 4, 150 if cases > 20 else 5])
        raw = [pick.choice([.1, .3, 1, 2, 30, pick.random() * 10]) for _ in range(count)]
        weights, size = normalize(raw), pick.randrange(1, 5000 if cases > 20 else 30)
        datasets, samples = numpy.zeros(size, numpy.int16), numpy.zeros(size, numpy.int64)
        helpers.build_blending_indices(datasets, samples, weights, count, size, False)
        sizes = [pick.randrange(1, 12) for _ in range(count)]
        all_datasets, all_samples = numpy.zeros(sum(sizes), numpy.int16), numpy.zeros(sum(sizes), numpy.int64)
        helpers.build_exhaustive_blending_indices(all_datasets, all_samples, sizes, count)
        out.append({"raw": raw, "weights": weights, "datasets": datasets.tolist(), "samples": samples.tolist(),
                    "sizes": sizes, "all_datasets": all_datasets.tolist(), "all_samples": all_samples.tolist(),
                    "asked": [s[0] for s in _get_size_per_split_per_dataset(weights, [size], surplus=.005)],
                    "wanted": [s[0] for s in _get_size_per_split_per_dataset(weights, [size])]})
    return out


def split_ranges(split, count):
    matrix = convert_split_vector_to_split_matrix(parse_and_normalize_split(split))
    return [[0, 0] if m is None else [int(round(m[0] * float(count))), int(round(m[1] * float(count)))] for m in matrix]


def split_cases(pick, cases):
    out = []
    fixed = [("1,1,1", 10), ("969, 30, 1", 997), ("980,20", 997), ("969,30,1", 10), ("1", 3), ("98/2", 51)]
    for i in range(max(cases, len(fixed))):
        split, count = fixed[i] if i < len(fixed) else (
            ",".join(str(pick.choice([0, 1, 3, .5, 97, pick.randrange(1000)])) for _ in range(pick.randrange(1, 4))),
            pick.randrange(100000))
        try:
            ranges = split_ranges(split, count)
        except (AssertionError, ValueError):  # all weights are 0
            continue
        out.append({"split": split, "count": count, "ranges": ranges})
    return out


def random_sentences(pick, large, vocabulary):
    documents = []
    for _ in range(pick.randrange(2, 40 if large else 9)):
        documents.append([[pick.randrange(5, vocabulary) for _ in range(
            pick.randrange(513, 540) if pick.random() < .03 else pick.randrange(1, 25))]
            for _ in range(pick.randrange(0, 9))])
    return documents


def masked_cases(pick, cases, folder, t5):
    out = []
    while len(out) < cases:
        vocabulary = 40
        documents = random_sentences(pick, cases > 20, vocabulary)
        prefix = f"{folder}/{'t5' if t5 else 'bert'}{len(out)}"
        write_files(prefix, documents, numpy.uint16)
        context = pick.choice([16, 32, 64])
        head = not t5 and pick.random() < .7
        wanted = pick.choice([None, pick.randrange(1, 60)])
        # Longer runs than 10 words need more sentinels than the tokenizer has.
        options = dict(masking_probability=pick.choice([.15, .3, .05]),
                       short_sequence_probability=pick.choice([0, .1, .5]), masking_max_ngram=10 if t5 else pick.choice([1, 3, 9]),
                       masking_do_full_word=pick.random() < .7, masking_do_permutation=False,
                       masking_use_longer_ngrams=pick.random() < .3, masking_use_geometric_distribution=t5)
        seed = pick.choice([1, 42, 1234, pick.randrange(1, 2**31 - 1)])
        common = dict(random_seed=seed, sequence_length=context, blend=([prefix], None), split="1,0,0",
                      tokenizer=WordPieces(vocabulary), **options)
        config = (T5MaskedWordPieceDatasetConfig(sequence_length_decoder=context, **common) if t5
                  else BERTMaskedWordPieceDatasetConfig(classification_head=head, **common))
        kind = T5MaskedWordPieceDataset if t5 else BERTMaskedWordPieceDataset
        if not any(len(d) >= (2 if head else 1) and (len(d) < 2 or max(map(len, d)) <= 512) for d in documents):
            continue
        # None is not what the C++ routine takes; any number above what an epoch has ends after the first one.
        dataset = BlendedMegatronDatasetBuilder(kind, [wanted or 1, 0, 0], lambda: True, config).build()[0]
        samples = []
        for k in range(len(dataset)) if cases > 20 else [0, len(dataset) - 1]:
            try:
                samples.append([k, {name: numpy.asarray(v).tolist() for name, v in dataset[k].items() if v is not None}])
            except AssertionError:  # longer than what the decoder takes
                samples.append([k, None])
        out.append({"documents": documents, "context": context, "two_parts": head, "wanted": wanted or 1, "seed": seed,
                    "vocabulary": vocabulary, "options": options, "map": dataset.sample_index.ravel().tolist(),
                    "samples": samples})
    return out


def sentence_pair_cases(pick, cases, folder):
    """BERT's samples of blended and split files, with the usual settings."""
    out = []
    while len(out) < cases:
        vocabulary, context = 40, pick.choice([16, 24, 48])
        files, prefixes = [], []
        for k in range(pick.choice([1, 1, 2, 3])):
            files.append(random_sentences(pick, cases > 20, vocabulary))
            prefixes.append(f"{folder}/pairs{len(out)}_{k}")
            write_files(prefixes[-1], files[-1], numpy.uint16)
        weights = [pick.choice([.1, .5, 3]) for _ in files] if len(files) > 1 else None
        part, split = pick.choice([[0, "1,0,0"], [0, "70,30"], [1, "60,40"]])
        wanted, seed = pick.randrange(1, 200 if cases > 20 else 20), pick.choice([1, 1234, pick.randrange(1, 2**31 - 1000)])
        config = BERTMaskedWordPieceDatasetConfig(
            random_seed=seed, sequence_length=context, blend=(prefixes, weights), split=split,
            tokenizer=WordPieces(vocabulary), classification_head=True, masking_probability=.15,
            short_sequence_probability=.1, masking_max_ngram=3, masking_do_full_word=True, masking_do_permutation=False,
            masking_use_longer_ngrams=False, masking_use_geometric_distribution=False)
        def has_sample(documents, begin, end):
            return any(len(d) >= 2 and max(map(len, d)) <= 512 for d in documents[begin:end])
        if not all(has_sample(f, *split_ranges(split, len(f))[part]) for f in files):
            continue  # megatron-core looks for one for ever
        try:
            dataset = BlendedMegatronDatasetBuilder(
                BERTMaskedWordPieceDataset, [wanted if k == part else 0 for k in range(3)], lambda: True, config).build()[part]
        except IndexError:  # a blend that wants more of a file than it has
            continue
        names = {"text": "ids", "types": "types", "labels": "labels", "padding_mask": "mask", "is_random": "next"}
        take = range(len(dataset)) if cases > 20 else range(min(len(dataset), 5))
        samples = [{ours: numpy.asarray(dataset[k][theirs]).tolist() for theirs, ours in names.items()} for k in take]
        out.append({"files": files, "weights": weights or [], "split": split, "part": part, "context": context,
                    "wanted": wanted, "seed": seed, "vocabulary": vocabulary, "size": len(dataset),
                    "kept": [kept(d, [d.dataset_path]) for d in getattr(dataset, "datasets", [dataset])],
                    "samples": samples})
    return out


def sentence_span_cases(pick, cases, folder):
    """T5's samples of blended and split files, with the usual settings."""
    out = []
    while len(out) < cases:
        vocabulary, context = 40, pick.choice([24, 48, 64])
        written = pick.choice([context // 3, context])
        files, prefixes = [], []
        for k in range(pick.choice([1, 1, 2, 3])):
            files.append(random_sentences(pick, cases > 20, vocabulary))
            prefixes.append(f"{folder}/spans{len(out)}_{k}")
            write_files(prefixes[-1], files[-1], numpy.uint16)
        weights = [pick.choice([.1, .5, 3]) for _ in files] if len(files) > 1 else None
        part, split = pick.choice([[0, "1,0,0"], [0, "70,30"], [1, "60,40"]])
        wanted, seed = pick.randrange(1, 200 if cases > 20 else 20), pick.choice([1, 1234, pick.randrange(1, 2**31 - 1000)])
        config = T5MaskedWordPieceDatasetConfig(
            random_seed=seed, sequence_length=context, sequence_length_decoder=written, blend=(prefixes, weights),
            split=split, tokenizer=WordPieces(vocabulary), masking_probability=.15, short_sequence_probability=.1,
            masking_max_ngram=10, masking_do_full_word=True, masking_do_permutation=False,
            masking_use_longer_ngrams=False, masking_use_geometric_distribution=True)
        def has_sample(documents, begin, end):
            return any(len(d) == 1 or len(d) > 1 and max(map(len, d)) <= 512 for d in documents[begin:end])
        if not all(has_sample(f, *split_ranges(split, len(f))[part]) for f in files):
            continue  # megatron-core looks for one for ever
        names = {"text_enc": "source", "text_dec": "ids", "labels": "labels", "enc_mask": "source_mask",
                 "dec_mask": "ids_mask"}
        try:
            dataset = BlendedMegatronDatasetBuilder(
                T5MaskedWordPieceDataset, [wanted if k == part else 0 for k in range(3)], lambda: True, config).build()[part]
            take = range(len(dataset)) if cases > 20 else range(min(len(dataset), 5))
            samples = [{ours: numpy.asarray(dataset[k][theirs]).tolist() for theirs, ours in names.items()} for k in take]
        except (IndexError, AssertionError):  # a blend that wants more of a file than it has; a text that is too long
            continue
        out.append({"files": files, "weights": weights or [], "split": split, "part": part, "context": context,
                    "written": written, "wanted": wanted, "seed": seed, "vocabulary": vocabulary, "size": len(dataset),
                    "kept": [kept(d, [d.dataset_path]) for d in getattr(dataset, "datasets", [dataset])],
                    "samples": samples})
    return out


def left_to_right_cases(pick, cases):
    out = []
    for _ in range(cases):
        ids = [pick.choice([0, 1, 2, 3, 9, 9]) for _ in range(pick.randrange(1, 12))]
        flags = [pick.random() < .5 for _ in range(3)]
        mask, loss, positions = _get_ltor_masks_and_position_ids(torch.tensor(ids), 9, *flags, True)
        out.append({"ids": ids, "reset_positions": flags[0], "reset_attention": flags[1], "mask_loss": flags[2],
                    "mask": mask[0].int().tolist(), "counts": loss.int().tolist(), "positions": positions.tolist()})
    return out


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    pick, cases = random.Random(arguments.seed), arguments.cases
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(20000 + os.getpid() % 20000))
    torch.distributed.init_process_group("gloo", rank=0, world_size=1)
    with tempfile.TemporaryDirectory() as folder:
        made = {"numpy_version": numpy.__version__, "megatron_version": megatron.core.__version__,
                "numpy": numpy_cases(pick, cases + 2), "builder": builder_cases(pick, cases, folder),
                "gpt": gpt_cases(pick, cases + 4, folder), "blended": blended_cases(pick, cases, folder),
                "blending": blending_cases(pick, cases), "split": split_cases(pick, cases),
                "bert": masked_cases(pick, cases, folder, False), "t5": masked_cases(pick, cases, folder, True),
                "left_to_right": left_to_right_cases(pick, 2 * cases),
                "sentence_pairs": sentence_pair_cases(pick, cases, folder),
                "sentence_spans": sentence_span_cases(pick, cases, folder)}
    torch.distributed.destroy_process_group()
    out = []
    for name, value in made.items():  # one case in a line
        lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in value) if isinstance(value, list) else ""
        out.append(f'"{name}": ' + (f"[\n{lines}\n]" if isinstance(value, list) else json.dumps(value)))
    sys.stdout.write("{\n" + ",\n".join(out) + "\n}\n")


main()
