"""What scikit-learn and scipy say of labels and numbers: tests/golden/label_scores.json. Scores that they lack are the few
lines below.

    python tools/golden/label_scores.py > tests/golden/label_scores.json      # needs scikit-learn and scipy
"""
import json
import random

import numpy
import scipy.stats
import sklearn.metrics

WORDS = ["a", "b", "c", "the", "The", "d,", "été"]


def answer_sets(groups, labels, predicted):
    """SuperGLUE's: F1a, and the exact match of questions."""
    exact = {}
    for group, label, found in zip(groups, labels, predicted):
        exact[group] = exact.get(group, True) and label == found
    return [sklearn.metrics.f1_score(labels, predicted, zero_division=0), sum(exact.values()) / len(exact)]


def recall(k, groups, labels, scores):
    out = []
    for group in sorted(set(groups)):
        rows = [(score, label) for g, label, score in zip(groups, labels, scores) if g == group]
        best = sorted(rows, key=lambda row: -row[0])[:k]  # stable
        right = sum(label for _, label in rows)
        if right:
            out.append(sum(label for _, label in best) / right)
    return sum(out) / len(out)


def fewest_errors(found, wanted):
    rows = numpy.zeros((len(wanted) + 1, len(found) + 1), int)
    rows[:, 0], rows[0, :] = range(len(wanted) + 1), range(len(found) + 1)
    for i in range(1, len(wanted) + 1):
        for j in range(1, len(found) + 1):
            rows[i, j] = min(rows[i - 1, j] + 1, rows[i, j - 1] + 1,
                             rows[i - 1, j - 1] + (wanted[i - 1] != found[j - 1]))
    return int(rows[-1, -1])


def label_case(draw, classes, n):
    labels, predicted = ([draw.randrange(classes) for _ in range(n)] for _ in range(2))
    predicted = [label if draw.random() < 0.5 else found for label, found in zip(labels, predicted)]
    return {"labels": labels, "predicted": predicted,
            "accuracy": sklearn.metrics.accuracy_score(labels, predicted),
            "f1": sklearn.metrics.f1_score(labels, predicted, labels=[1], average="macro", zero_division=0),
            "mean_f1": sklearn.metrics.f1_score(labels, predicted, average="macro", zero_division=0),
            "matthews": sklearn.metrics.matthews_corrcoef(labels, predicted)}


def number_case(draw, n, steps):
    x = [draw.randrange(steps) / 4 for _ in range(n)]
    y = [value / 2 + draw.randrange(steps) / 8 for value in x]
    return {"x": x, "y": y, "pearson": float(scipy.stats.pearsonr(x, y)[0]),
            "spearman": float(scipy.stats.spearmanr(x, y)[0])}


def group_case(draw, n):
    groups = [f"q{draw.randrange(4)}" for _ in range(n)]
    labels, predicted = ([draw.randrange(2) for _ in range(n)] for _ in range(2))
    predicted = [label if draw.random() < 0.8 else found for label, found in zip(labels, predicted)]
    scores = [draw.randrange(6) / 8 for _ in range(n)]
    return {"groups": groups, "labels": labels, "predicted": predicted, "scores": scores,
            "answers": answer_sets(groups, labels, predicted),
            "recall": [recall(k, groups, labels, scores) for k in (1, 2, 5)]}


def word_case(draw):
    line = lambda: " ".join(draw.choice(WORDS) for _ in range(draw.randrange(7)))
    references = [line() for _ in range(6)] + ["a b c"]
    hypotheses = [line() if draw.random() < 0.5 else ref.replace("a", "d,") for ref in references]
    errors = sum(fewest_errors(h.split(), r.split()) for h, r in zip(hypotheses, references))
    return {"hypotheses": hypotheses, "references": references, "errors": errors,
            "rate": errors / sum(len(r.split()) for r in references)}


def main():
    draw = random.Random(5)
    out = {"labels": [label_case(draw, classes, n) for classes, n in ((2, 9), (2, 40), (3, 30), (5, 25))],
           "numbers": [number_case(draw, n, steps) for n, steps in ((12, 100), (30, 7))],
           "groups": [group_case(draw, n) for n in (9, 24)], "words": [word_case(draw) for _ in range(4)]}
    constant = {"labels": [1, 1, 0], "predicted": [1, 1, 1]}
    out["labels"].append(constant | {
        "accuracy": 2 / 3, "f1": 0.8, "mean_f1": 0.4,
        "matthews": float(sklearn.metrics.matthews_corrcoef(constant["labels"], constant["predicted"]))})
    print(json.dumps(out))


if __name__ == "__main__":
    main()
