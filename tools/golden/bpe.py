"""What the `tokenizers` library learns from a text of some lines, and how it encodes: tests/golden/bpe.json.

    python tools/golden/bpe.py > tests/golden/bpe.json
    python tools/golden/bpe.py TEXT SIZE      # prints the merges learned from a file, to compare with by hand
"""
import json
import sys

from tokenizers import Regex, Tokenizer, __version__, models, pre_tokenizers, trainers

LINES = [
    "The quick brown fox doesn't jump over the lazy dogs; it's 1,000.5 metres away, isn't it?\tLe vif renard brun",
    "We'll see: they've said I'd be late, you're early. 'Tis 12:30!\tNous verrons : ils ont dit que je serais en retard.",
    "L'été, à l'hôtel Dieu, l'air était doux ; « déjà vu », disait-elle.\tIn summer the air was mild at the hotel.",
    "Les pompiers assuraient un quart des 40 000 passages annuels.\tThe firemen accounted for a quarter of the passages.",
    "aaaa aaa aa a aaaaaaaa  two blanks   three   and at the end   ",
    "",
    "S&P <b>markup</b> &quot;x&quot; -- ... ??? !!! $3.50 €7 50% #1 @home (a) [b] {c} a_b x^2 ~/dir",
    "русский текст и 中文字符没有空格 日本語 ｆｕｌｌ １２３ Ⅷ ½ x² العربية हिन्दी",
    "e\u0301 combining, \u200b zero width, \u00a0 no-break, \u2009thin\u2009, \u3000wide, \U0001F600\U0001F468\u200d\U0001F469",
    "The theme of the thesis then is theirs: the others gather there, the mother and the father together.",
]
CASES = [
    "", " ", "  ", "\n", "\t\n\n \n", "a", "The theme of the thesis", " the  the   the\n", "they'll isn't 'S 'll' ''s x'd",
    "UNKNOWN words: zyxwv QQQ 98765", "l'été\u00a0à\u00a0\u00a0Paris \u3000 \u2009", "1½²Ⅷ１２a1b2", "\r\n\x0b\x0c\x00\x7f\x1c",
    "中文 русский ہے 😀😀 e\u0301", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "a\tb\t c \t", "!'s ?'t", "x" * 70,
]


def learn(text, size):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex("[\\t\\n]"), "isolated"),  # the ends of sources and pairs are tokens of their own
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
    ])
    tokenizer.train_from_iterator([text], trainers.BpeTrainer(
        vocab_size=size, min_frequency=2, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    merges = json.loads(tokenizer.to_str())["model"]["merges"]
    return tokenizer, [m if isinstance(m, str) else " ".join(m) for m in merges]


def main():
    if len(sys.argv) == 3:
        with open(sys.argv[1], encoding="utf-8", newline="") as file:
            print("\n".join(learn(file.read(), int(sys.argv[2]))[1]))
        return
    text, size = "\n".join(LINES) + "\n", 330
    tokenizer, merges = learn(text, size)
    everything, all_merges = learn(text, 100000)
    cases = [{"text": case, "ids": tokenizer.encode(case).ids} for case in CASES + LINES]
    json.dump({"tokenizers": __version__, "text": text, "size": size, "merges": merges, "cases": cases,
               "most": everything.get_vocab_size(), "all_merges": all_merges}, sys.stdout, ensure_ascii=True, indent=0)
    print()


main()
