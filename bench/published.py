#!/usr/bin/env python3
"""Published training runs beside the time that `tessera plan` predicts for them.

    bench/published.py [--rows TEXT] [--output FOLDER]

bench/published.toml has the runs, with their sources. One constant is fitted for each kind of machine: how much longer
kernels take than the machine file says (weights.alpha), so that the prediction of the row marked `fit` is right. All other
rows are judged with it. Prints a table, and writes it with all figures as JSON into a folder where --output names one.
"""
import argparse
import json
import pathlib
import shlex
import statistics
import subprocess
import sys
import tempfile
import tomllib

import turns

HERE = pathlib.Path(__file__).parent


def main():
    args = parse_args()
    told = tomllib.loads((HERE / "published.toml").read_text(encoding="utf-8"))
    rows = [told["source"][row["source"]] | row | {"flags": flags_of(told, row)} for row in told["row"]]
    chosen = [row for row in rows if args.rows in row["name"] or row.get("fit")]
    with tempfile.TemporaryDirectory() as folder:
        planner = Planner(args, pathlib.Path(folder))
        weights = {row["machine"]: planner.fitted(row) for row in chosen if row.get("fit")}
        results = [measured(planner, row, weights.get(row["machine"], 1.0)) for row in chosen]
    table = table_of(results, weights, told["source"])
    turns.show(args.output, "published", {"commit": turns.commit(), "weights": weights, "rows": results}, table)


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build", metavar="FOLDER", help="where the program is [build]")
    parser.add_argument("--rows", default="", metavar="TEXT", help="only rows whose name has it, and those that are fitted")
    parser.add_argument("--output", metavar="FOLDER", help="where the table goes, as bench/results")
    args = parser.parse_args()
    turns.require_programs(parser, args, "tessera")
    return args


def flags_of(told, row):
    return told["source"][row["source"]]["flags"] + " " + row["flags"] + f" --devices {row['devices']}"


class Planner:
    def __init__(self, args, folder):
        self.program, self.folder = f"{args.build}/tessera", folder

    def plan(self, row, weight):
        words = [self.program, "plan", "--json", "--machine", self.machine(row["machine"], weight), "--no-eval-at-end",
                 *shlex.split(row["flags"])]
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"published: {row['name']} fails with {done.returncode}: {shlex.join(words)}\n{done.stderr[-2000:]}")
        return json.loads(done.stdout)

    def machine(self, name, weight):
        """A file of bench/machines with that weight, or a machine's name."""
        source = HERE / "machines" / f"{name}.toml"
        if not source.exists():
            return name
        path = self.folder / f"{name}.toml"
        path.write_text(f"{source.read_text(encoding='utf-8')}\n[weights]\nalpha = {weight!r}\n", encoding="utf-8")
        return str(path)

    def fitted(self, row):
        """The weight with which the row is predicted within a thousandth: by bisection, as more weight takes longer."""
        low, high, wanted = 0.1, 10.0, published_seconds(row)
        while high / low > 1.0005:
            middle = (low * high) ** 0.5
            seconds = self.plan(row, middle)["predicted_step_seconds"]
            low, high = (middle, high) if seconds < wanted else (low, middle)
        return round((low * high) ** 0.5, 4)


def measured(planner, row, weight):
    plan, plain = planner.plan(row, weight), planner.plan(row, 1.0)
    return {"name": row["name"], "source": row["source"], "machine": row["machine"], "devices": row["devices"],
            "fit": bool(row.get("fit")), "flags": row["flags"],
            "published_seconds": published_seconds(row), "predicted_seconds": plan["predicted_step_seconds"],
            "unfitted_seconds": plain["predicted_step_seconds"], "planned_peak_bytes": plan["planned_peak_bytes"],
            "compile_seconds": plan["compile_seconds"]}


def published_seconds(row):
    """Of a step; None: they were not published."""
    number = {name: value_of(row["flags"], name) for name in
              ("layers", "width", "context", "vocab-size", "global-batch-size")}
    if "seconds" in row:
        return row["seconds"]
    tokens = number["global-batch-size"] * number["context"]
    if "tokens_per_second" in row:
        return tokens / row["tokens_per_second"]
    if "teraflops" not in row:
        return None
    # Narayanan et al. 2021, equation 3: forward, backward and forward again.
    layers, width, context = number["layers"], number["width"], number["context"]
    flops = 96 * tokens * layers * width**2 * (1 + context / (6 * width) + number["vocab-size"] / (16 * layers * width))
    return flops / (row["teraflops"] * 1e12 * row["devices"])


def value_of(flags, name):
    """The last one holds."""
    words = shlex.split(flags)
    values = [int(words[i + 1]) for i, word in enumerate(words) if word == f"--{name}"]
    return values[-1] if values else 0


def table_of(results, weights, sources):
    lines = ["| run | source | published, s | predicted, s | error | machine file as it is, s | GiB a device |",
             "|---|---|---|---|---|---|---|"]
    for row in results:
        known = row["published_seconds"]
        error = "fitted" if row["fit"] else f"{100 * (row['predicted_seconds'] / known - 1):+.1f} %" if known else "-"
        cells = [row["name"], row["source"], f"{known:.2f}" if known else "-", f"{row['predicted_seconds']:.2f}", error,
                 f"{row['unfitted_seconds']:.2f}", f"{row['planned_peak_bytes'] / 2**30:.1f}"]
        lines.append(f"| {' | '.join(cells)} |")
    lines.append("")
    judged = [row for row in results if row["published_seconds"] and not row["fit"]]
    if judged:
        fits = ", ".join(f"{name} {weight}" for name, weight in weights.items())
        lines += [f"Weights of kernels: {fits}. {errors_of('All rows that were not fitted', judged)}", ""]
    for name, source in sources.items():
        own = [row for row in judged if row["source"] == name]
        lines += [f"- **{name}**: {source['where']}."
                  + (f" Taken: {source['taken']}." if "taken" in source else "")
                  + (" " + errors_of("Its rows", own) if own else "")]
    return "\n".join(lines) + "\n"


def errors_of(which, rows):
    errors = [100 * abs(row["predicted_seconds"] / row["published_seconds"] - 1) for row in rows]
    return (f"{which} ({len(errors)}): mean error {statistics.mean(errors):.1f} %, median "
            f"{statistics.median(errors):.1f} %, largest {max(errors):.1f} %.")


if __name__ == "__main__":
    main()
