#!/usr/bin/env python3
"""Writes tests/golden/chat/expected.json: what transformers' Jinja makes of the templates and dialogues there.

    build/golden/bin/python tools/golden/chat.py
"""
import datetime
import json
import pathlib

import jinja2
import transformers
from transformers.utils import chat_template_utils

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden" / "chat"
TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
NOW = datetime.datetime(2024, 2, 3, 14, 5, 6)


class Clock(datetime.datetime):
    @classmethod
    def now(cls):
        return NOW


def rendered(template, dialogue, add_generation_prompt):
    dialogue = {**TOKENS, **dialogue}
    messages = chat_template_utils._normalize_chat_messages(dialogue.pop("messages"))
    tools = dialogue.pop("tools", None)
    generated = "{% generation" in template or "{%- generation" in template
    try:
        texts, spans = chat_template_utils.render_jinja_template(
            [messages], tools=tools, chat_template=template, add_generation_prompt=add_generation_prompt,
            return_assistant_tokens_mask=generated, **dialogue)
    except jinja2.exceptions.UndefinedError:
        return {"error": ""}
    except jinja2.exceptions.TemplateError as error:
        return {"error": str(error)}
    except Exception:
        return {"error": ""}
    out = {"text": texts[0]}
    if generated:  # places in bytes
        out["generated"] = [[len(texts[0][:at].encode()) for at in span] for span in spans[0]]
    return out


def construct(template, variables):
    try:
        text = chat_template_utils._compile_jinja_template(template).render(**variables)
        text.encode()  # halves of characters are none
        return {"text": text}
    except Exception:
        return {"error": ""}


def main():
    chat_template_utils.datetime = Clock
    dialogues = json.loads((FOLDER / "dialogues.json").read_text())
    out = {"versions": {"jinja2": jinja2.__version__, "transformers": transformers.__version__}, "tokens": TOKENS,
           "dialogues": [], "constructs": []}
    for path in sorted(FOLDER.glob("*.jinja")):
        for name, dialogue in dialogues.items():
            for prompt in (False, True):
                out["dialogues"].append({"template": path.name, "dialogue": name, "add_generation_prompt": prompt,
                                         **rendered(path.read_text(), dialogue, prompt)})
    constructs = json.loads((FOLDER / "constructs.json").read_text())
    for template in constructs["templates"]:
        out["constructs"].append({"template": template, **construct(template, constructs["variables"])})
    (FOLDER / "expected.json").write_text(json.dumps(out, indent=0, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
