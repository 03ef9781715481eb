"""What seqeval says of tagged sentences, and SQuAD's script of answers: tests/golden/span_scores.json.

    python tools/golden/span_scores.py > tests/golden/span_scores.json      # needs pip install seqeval

The functions below `SQuAD` are those of its evaluation script for version 2.0.
"""
import collections
import json
import random
import re
import string
import sys
import warnings

import seqeval.metrics
from seqeval.metrics.sequence_labeling import get_entities, precision_recall_fscore_support

# Lower, without the marks of ASCII, without articles, one blank between words: in this order.
ANSWERS = [
    "", " ", "the", "The Cat", "a cat", "an  apple\tpie", "Denver Broncos", "the Denver Broncos.", "The-Beatles", "theatre", "A. A. Milne",
    "a_b", "U.S.", "us", "10-20", "1,000", "1000", "naïve Café", "NAÏVE CAFÉ", "été", "l'été an été", "\u00a0wide\u3000blank\u2009",
    "\u2018the\u2019 cat", "the\u2019s end", "ÀÉ the Ñ", "x a\u0301 y", "中文 the 文", "saint bernadette soubirous", "Saint Bernadette", "Bernadette Saint saint",
    "a an the", "in 1858", "the 1858 the", "\x1cthe\x1da\x1f", "$5 million", "5 million",
]


def normalize_answer(s):  # SQuAD
    def remove_articles(text):
        regex = re.compile(r"\b(a|an|the)\b", re.UNICODE)
        return re.sub(regex, " ", text)

    def remove_punc(text):
        exclude = set(string.punctuation)
        return "".join(ch for ch in text if ch not in exclude)

    return " ".join(remove_articles(remove_punc(s.lower())).split())


def compute_f1(a_gold, a_pred):
    gold, pred = normalize_answer(a_gold).split(), normalize_answer(a_pred).split()
    same = sum((collections.Counter(gold) & collections.Counter(pred)).values())
    if len(gold) == 0 or len(pred) == 0:
        return int(gold == pred)
    if same == 0:
        return 0
    precision, recall = 1.0 * same / len(pred), 1.0 * same / len(gold)
    return (2 * precision * recall) / (precision + recall)


def answers():
    pairs = [{"prediction": a, "answer": b, "exact": int(normalize_answer(a) == normalize_answer(b)), "f1": compute_f1(b, a)}
             for a in ANSWERS for b in ANSWERS if (len(a) + 3 * len(b)) % 5 == 0 or normalize_answer(a) == normalize_answer(b)]
    choose = random.Random(3)
    questions = [{"prediction": choose.choice(ANSWERS), "answers": [choose.choice(ANSWERS) for _ in range(choose.randint(0, 3))]} for _ in range(40)]
    exact = f1 = 0
    for q in questions:
        gold = q["answers"] or [""]
        exact += max(int(normalize_answer(g) == normalize_answer(q["prediction"])) for g in gold)
        f1 += max(compute_f1(g, q["prediction"]) for g in gold)
    return {"normalized": [[a, normalize_answer(a)] for a in ANSWERS], "pairs": pairs, "questions": questions,
            "exact_match": 100.0 * exact / len(questions), "f1": 100.0 * f1 / len(questions)}


def tag_case(name, labels, predictions):
    types = sorted({e[0] for s in labels + predictions for e in get_entities(s)})
    p, r, f, _ = precision_recall_fscore_support(labels, predictions, average="micro")
    each = precision_recall_fscore_support(labels, predictions, average=None)
    return {"name": name, "labels": labels, "predictions": predictions, "entities": [get_entities(s) for s in predictions],
            "accuracy": seqeval.metrics.accuracy_score(labels, predictions), "precision": p, "recall": r, "f1": f,
            "types": {t: [each[0][i], each[1][i], each[2][i]] for i, t in enumerate(types)}}


def tags():
    rows = [
        ("a type that is right and one that is not", ["O B-PER I-PER O B-LOC"], ["O B-PER I-PER O B-ORG"]),
        ("one entity is cut in two", ["B-PER I-PER I-PER"], ["B-PER B-PER I-PER"]),
        ("an entity that begins with I", ["O I-PER I-PER"], ["O B-PER I-PER"]),
        ("the type changes within", ["B-PER I-LOC I-PER"], ["B-PER I-PER I-PER"]),
        ("none at all", ["O O O", "O"], ["O O O", "O"]),
        ("none predicted", ["B-PER O"], ["O O"]),
        ("an empty sentence", ["", "B-X"], ["", "B-X"]),
        ("ends and singles", ["B-A I-A E-A S-B S-B E-A"], ["B-A E-A E-A S-B I-B E-B"]),
        ("sentences end entities", ["B-A", "I-A I-A"], ["B-A", "I-A O"]),
        ("without types", ["B I O B"], ["B I I B"]),
        ("a line in a type", ["B-GPE-CITY I-GPE-CITY"], ["B-GPE-CITY I-GPE-TOWN"]),
    ]
    choose = random.Random(2)
    names = ["O", "O", "B-PER", "I-PER", "B-LOC", "I-LOC", "E-LOC", "S-PER"]
    labels = [" ".join(choose.choice(names) for _ in range(choose.randint(1, 9))) for _ in range(60)]
    guesses = [" ".join(tag if choose.random() < 0.7 else choose.choice(names) for tag in s.split()) for s in labels]
    rows.append(("drawn at random", labels, guesses))
    return [tag_case(name, [s.split() for s in l], [s.split() for s in p]) for name, l, p in rows]


def main():
    warnings.simplefilter("ignore")
    as_list = lambda value: value.item() if hasattr(value, "item") else str(value)
    json.dump({"tags": tags(), "answers": answers()}, sys.stdout, ensure_ascii=True, default=as_list)
    print()


main()
