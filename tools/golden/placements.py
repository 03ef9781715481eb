"""The least cost of graphs of decisions, by integer programming: tests/search/optima.txt.

    TESSERA_DUMP=FOLDER build/search_test --gtest_filter='Placement.LargerSteps*'
    python tools/golden/placements.py FOLDER/*.json > tests/search/optima.txt

A graph is JSON as tests/search/graph_json.h writes it. Each option of a decision is a 0-1 variable, one of each
decision is taken. Each pair of options of two linked decisions is a variable whose rows and columns
sum up to those of the options, so that integer options make integer pairs; pairs that are impossible
are left out. Solved by HiGHS, through scipy.
"""

import json
import os
import sys

import numpy as np
from scipy import optimize, sparse


def solve(graph):
    decisions, links = graph["decisions"], graph["links"]
    first, costs = [], []
    for decision in decisions:
        first.append(len(costs))
        costs += [float("inf") if c is None else float(c) for c in decision["costs"]]
    options = len(costs)
    entries, low, high = [], [], []

    def row(columns, values, least, most):
        entries.append((columns, values))
        low.append(least)
        high.append(most)

    for i, decision in enumerate(decisions):
        n = len(decision["costs"])
        row(list(range(first[i], first[i] + n)), [1.0] * n, 1.0, 1.0)
    for link in links:
        a, b = link["from"], link["to"]
        rows, columns = len(decisions[a]["costs"]), len(decisions[b]["costs"])
        table = link["costs"]
        by_row = [[] for _ in range(rows)]
        by_column = [[] for _ in range(columns)]
        for r in range(rows):
            for c in range(columns):
                cost = table[r * columns + c]
                if cost is None:
                    continue
                by_row[r].append(len(costs))
                by_column[c].append(len(costs))
                costs.append(float(cost))
        for r in range(rows):
            row(by_row[r] + [first[a] + r], [1.0] * len(by_row[r]) + [-1.0], 0.0, 0.0)
        for c in range(columns):
            row(by_column[c] + [first[b] + c], [1.0] * len(by_column[c]) + [-1.0], 0.0, 0.0)
    costs = np.array(costs)
    upper = np.ones(len(costs))
    upper[np.isinf(costs)] = 0.0
    costs[np.isinf(costs)] = 0.0
    scale = max(1.0, float(np.max(costs)))
    indptr = np.cumsum([0] + [len(c) for c, _ in entries])
    matrix = sparse.csr_matrix(
        (np.concatenate([v for _, v in entries]), np.concatenate([c for c, _ in entries]).astype(int), indptr),
        shape=(len(entries), len(costs)),
    )
    integrality = np.zeros(len(costs))
    integrality[:options] = 1
    found = optimize.milp(
        costs / scale,
        constraints=optimize.LinearConstraint(matrix, low, high),
        bounds=optimize.Bounds(0, upper),
        integrality=integrality,
        options={"mip_rel_gap": 0, "time_limit": 600},
    )
    if found.status != 0:
        raise SystemExit(f"no optimum: {found.message}")
    # Exactly, in whole picoseconds: of the options that were taken.
    picks = []
    for i, decision in enumerate(decisions):
        n = len(decision["costs"])
        picks.append(int(np.argmax(found.x[first[i] : first[i] + n])))
    total = sum(decision["costs"][picks[i]] for i, decision in enumerate(decisions))
    for link in links:
        columns = len(decisions[link["to"]]["costs"])
        total += link["costs"][picks[link["from"]] * columns + picks[link["to"]]]
    return total, len(costs)


def main():
    print("# graph, decisions, least cost in picoseconds: tools/golden/placements.py")
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as file:
            graph = json.load(file)
        least, variables = solve(graph)
        name = os.path.splitext(os.path.basename(path))[0]
        print(f"{name} {len(graph['decisions'])} {least}", flush=True)
        print(f"{name}: {variables} variables", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
