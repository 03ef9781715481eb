#!/usr/bin/env python3
"""A decoder of transformers, trained by PyTorch on one batch; tells each step as a line of JSON.

    build/peers/bin/python bench/peers/torch_family.py FOLDER --make
    build/peers/bin/python bench/peers/torch_family.py FOLDER --ids FILE --batch N --steps N [FLAG...]

FOLDER has config.json. --make draws weights and saves them there, from which both sides begin. FILE has the tokens of a
sample and one more, as JSON; all samples of all steps are this one. Attention is what transformers chooses
(scaled_dot_product_attention where the model has it), but eager where the scores have a cap, which only that computes. bf16
is that of autocast; AdamW is fused. Seconds of a step are from before its loss until gradients are cleared.
"""
import argparse
import json
import time
import types

import torch
import transformers

import torch_models
import turn_task


def main():
    args = parse_args()
    torch.set_num_threads(args.threads)
    try:
        make(args.folder) if args.make else train(args)
    except Exception as error:  # whatever it is, the reader is told
        turn_task.tell_end(failure=turn_task.words_of(error)[0])


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--make", action="store_true")
    parser.add_argument("--ids")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--steps", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--dtype", choices=turn_task.DTYPES, default="f32")
    parser.add_argument("--mode", choices=("eager", "compile"), default="eager")
    parser.add_argument("--lr", type=float, default=1e-4)
    parser.add_argument("--beta2", type=float, default=0.95)
    parser.add_argument("--decay", type=float, default=0.1)
    parser.add_argument("--clip", type=float, default=1.0)
    return parser.parse_args()


def make(folder):
    torch.manual_seed(1)
    model = transformers.AutoModelForCausalLM.from_config(transformers.AutoConfig.from_pretrained(folder))
    model.save_pretrained(folder)
    turn_task.tell_end()


def train(args):
    config = transformers.AutoConfig.from_pretrained(args.folder)
    capped = getattr(config, "attn_logit_softcapping", None) is not None
    model = transformers.AutoModelForCausalLM.from_pretrained(
        args.folder, dtype=torch.float32, **({"attn_implementation": "eager"} if capped else {})).train()
    run = torch.compile(model) if args.mode == "compile" else model
    optimizer = torch_models.make_optimizer(model, types.SimpleNamespace(
        decay=args.decay, rate=args.lr, betas=(0.9, args.beta2), adam_eps=1e-8))
    with open(args.ids, encoding="ascii") as file:
        text = torch.tensor(json.load(file))
    ids, labels = (rows.repeat(args.batch, 1) for rows in (text[:-1], text[1:]))
    turn_task.tell({"parameters": model.num_parameters(), "tokens": ids.numel(),
                    "attention": model.config._attn_implementation, "torch": torch.__version__.split("+")[0],
                    "transformers": transformers.__version__})
    for _ in range(args.steps):
        begin = time.perf_counter()
        with torch_models.precision(args.dtype):
            loss = torch_models.loss_of(run(input_ids=ids, use_cache=False).logits, labels)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        turn_task.tell_step(time.perf_counter() - begin, loss.item())
    turn_task.tell_end(turn_task.peak_rss_bytes())


if __name__ == "__main__":
    main()
