"""What sacreBLEU makes of lines and corpora: tests/golden/bleu.json.

    python tools/golden/bleu.py > tests/golden/bleu.json
    python tools/golden/bleu.py HYPOTHESES REFERENCES     # the score of two files, in full
"""
import json
import sys

import sacrebleu
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

LINES = [
    "", " ", "word", "Hello, world.", "Hello , world .", "It's 1,000.5 metres, 12.5% and .5 or 5. or 5.a or a.5",
    "a...b ....., ,,1,,2 3.,4 .,.", "10-12 years, well-known, 1990-, -5 5-5-5 --", "&quot;quoted&quot; &amp; &lt;b&gt; &amp;lt; &apos;",
    "S&P & AT&T &c; &#39;", "(a)[b]{c}<d>/e\\f|g~h^i_j`k'l", "l'été d'Aujourd'hui « oui » – non — … “x” ‘y’", "naïve café, 3,5 €; 40 000 km/h",
    "tab\tand\u00a0no-break\u2009thin\u3000wide\u200bzero\x1cfs\x85next", "中文。日本語、한국어 русский.", "<skipped>gone<skipped>",
    "a\nb-\nc", "100$ $100 #1 @me a*b+c=d?!:;", "e\u0301.\u00e9,\u00e9 .\u00e9", "1.2.3 1,2,3 v1.0, U.S.A. e.g. x.", "\U0001F600.\U0001F601,",
    "trailing space \t", "'", "-", ".", ",", "1", "1.", ".1", "1-", "-1", "a-", "..", "1..", "..1", "<skip<skipped>ped>",
]
THE = "The cat sat on the mat, and the dog lay beside it."
CORPORA = {
    "equal": ([THE], [THE]),
    "one word of many": (["The"], [THE]),
    "one word": (["cat"], ["cat"]),
    "three words": (["the black cat"], ["the black cat"]),
    "no hypothesis": ([""], [THE]),
    "no reference": ([THE], [""]),
    "nothing at all": ([""], [""]),
    "nothing matches": (["le chat noir est ici"], ["a black dog was there"]),
    "case counts": ([THE.upper()], [THE]),
    "smoothing of runs of four": (["The cat lay on a mat ."], [THE]),
    "smoothing of all but words": (["mat the on sat cat The"], [THE]),
    "clipped words": (["the the the the the the the"], [THE]),
    "longer": ([THE + " " + THE], [THE]),
    "an empty one among others": (["", THE, "It costs 1,000.5 dollars"], ["Something.", THE, "It costs $1,000.50."]),
    "quotes": (['He said: "no-one &quot;knows&quot; it", 5-6 times.'], ['He said: "no-one "knows" it" 5 - 6 times.']),
    "several": ([THE, "A dog lies near the cat .", "Il fait beau à l'hôtel-Dieu aujourd'hui, n'est-ce pas ?"],
                [THE, "The dog lies near that cat.", "Il faisait beau à l'hôtel-Dieu hier; n'est-ce pas ?"]),
    "white space": (["a b\u00a0c\td  e f "], ["a b c d e f"]),
}


def score(hypotheses, references):
    b = sacrebleu.corpus_bleu(hypotheses, [references], force=True)
    return {"score": b.score, "precisions": b.precisions, "bp": b.bp, "counts": b.counts, "totals": b.totals,
            "sys_len": b.sys_len, "ref_len": b.ref_len, "line": b.format()}


def main():
    if len(sys.argv) == 3:
        files = [open(path, encoding="utf-8").read().split("\n")[:-1] for path in sys.argv[1:]]
        print(json.dumps(score(*files)))
        return
    tokens = Tokenizer13a()
    json.dump({"sacrebleu": sacrebleu.__version__, "lines": [{"line": line, "words": tokens(line).split()} for line in LINES],
               "corpora": [dict(score(h, r), name=name, hypotheses=h, references=r) for name, (h, r) in CORPORA.items()]},
              sys.stdout, ensure_ascii=True, indent=0)
    print()


main()
