#!/usr/bin/env python3
"""What `tessera plan --auto` chooses for large machines, beside plans that people chose, and what each technique is worth.

    bench/plans.py [--only TEXT] [--output FOLDER]

bench/plans.toml has the questions. All seconds are predictions for the same machine, so a plan of a person and the
chosen one can be compared. Prints tables; writes them, with all figures as JSON, into a folder that --output names.
"""
import argparse
import json
import pathlib
import shlex
import subprocess
import tomllib

import turns

HERE = pathlib.Path(__file__).parent


def main():
    args = parse_args()
    told = tomllib.loads((HERE / "plans.toml").read_text(encoding="utf-8"))
    asked = {name: [row for row in told[name] if args.only in row["name"] or args.only in row.get("of", "-")] for name in told}
    planner = Planner(args, told["question"])
    text, figures = "", {"commit": turns.commit(), "machine": turns.machine()}
    for name, answer, table in (("question", planner.question, questions_table), ("claim", planner.claim, claims_table),
                                ("sizes", planner.sizes, sizes_table)):
        figures[name] = [answer(row) for row in asked[name]]
        text += table(figures[name]) if figures[name] else ""
    turns.show(args.output, "plans", figures, text)


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build", metavar="FOLDER", help="where the program is [build]")
    parser.add_argument("--only", default="", metavar="TEXT", help="only questions and claims whose name has it")
    parser.add_argument("--output", metavar="FOLDER", help="where the tables go, as bench/results")
    args = parser.parse_args()
    turns.require_programs(parser, args, "tessera")
    return args


class Planner:
    def __init__(self, args, questions):
        self.program = f"{args.build}/tessera"
        self.questions = {row["name"]: row["flags"] for row in questions}
        self.chosen = {}  # by question and by what it has to do without

    def asked(self, *flags):
        """The report, or why there is none."""
        words = [self.program, "plan", "--json", "--no-eval-at-end", *(word for line in flags for word in shlex.split(line))]
        turns.say(turns.line_of(words))
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode != 0:
            return {"error": done.stderr.strip().splitlines()[-1]}
        return json.loads(done.stdout)

    def best(self, question, without=""):
        if (question, without) not in self.chosen:
            self.chosen[question, without] = self.asked(self.questions[question], "--auto", without)
        return self.chosen[question, without]

    def question(self, row):
        best = self.best(row["name"])
        devices = f"--devices {best['devices']}"
        hand = [{"where": each["where"], "flags": each["flags"], **brief(self.asked(row["flags"], devices, each["flags"]))}
                for each in row["hand"]]
        return {"name": row["name"], "chosen": brief(best), "summary": best["summary"], "flags": shlex.join(best["plan"]),
                "search_seconds": best["search_seconds"], "hand": hand}

    def claim(self, row):
        """A published plan with the technique and without it, and the best plan that does without."""
        best = self.best(row["of"])
        devices = f"--devices {best['devices']}"
        plans = {name: self.asked(self.questions[row["of"]], devices, row["plan"], row[name]) for name in ("on", "off")}
        without = self.best(row["of"], row["off"])
        return {"name": row["name"], "of": row["of"], "flags": row["off"], "on": brief(plans["on"]),
                "off": brief(plans["off"]), "best": brief(best), "best_without": brief(without),
                "summary": without.get("summary")}

    def sizes(self, row):
        out = {"name": row["name"], "machine": row["machine"], "runs": []}
        for devices in (1, 2, 4, 8):
            batch = row["batch"] * (devices if row["grows"] else 1)
            best = self.asked(row["flags"], f"--machine {row['machine']} --global-batch-size {batch} --devices {devices} --auto")
            out["runs"].append({"devices": devices, "batch": batch, "summary": best.get("summary"), **brief(best)})
        return out


def brief(report):
    if "error" in report:
        return {"error": report["error"]}
    out = {"seconds": report["predicted_step_seconds"], "bytes": report["planned_peak_bytes"]}
    if "bytes_without_reuse" in report:
        out |= {"without_reuse": report["bytes_without_reuse"], "lower_bound": report["lower_bound_bytes"]}
    return out


def cell(figures):
    if "error" in figures:
        return f"- | {figures['error']}"
    return f"{figures['seconds']:.3f} | {figures['bytes'] / 2**30:.1f}"


def questions_table(questions):
    lines = ["## Beside plans that people chose", "", "| model | plan | step, s | GiB a device | chosen is faster by |",
             "|---|---|---|---|---|"]
    for each in questions:
        lines.append(f"| {each['name']} | chosen in {each['search_seconds']:.0f} s: {each['summary']} | {cell(each['chosen'])} | |")
        for hand in each["hand"]:
            gain = f"{100 * (hand['seconds'] / each['chosen']['seconds'] - 1):.1f} %" if "seconds" in hand else ""
            lines.append(f"| | {hand['where']} | {cell(hand)} | {gain} |")
    return "\n".join(lines) + "\n\n"


def claims_table(claims):
    lines = ["## What each technique is worth", "",
             "| technique | with it: s | GiB | without: s | GiB | best plan without: s | GiB | that plan |",
             "|---|---|---|---|---|---|---|---|"]
    for each in claims:
        lines.append(f"| {each['name']} | {cell(each['on'])} | {cell(each['off'])} | {cell(each['best_without'])} | "
                     f"{each['summary'] or ''} |")
    first = claims[0]
    reuse = first["on"]["without_reuse"] / first["on"]["bytes"]
    lines += ["", f"The best plan of all takes {first['best']['seconds']:.3f} s and {first['best']['bytes'] / 2**30:.1f} GiB. "
              f"Memory reuse: without it the published plan would take {first['on']['without_reuse'] / 2**30:.0f} GiB, "
              f"{reuse:.1f} times as much; with it, {100 * first['on']['lower_bound'] / first['on']['bytes']:.2f} % of what is "
              "planned is in use at the fullest moment."]
    return "\n".join(lines) + "\n\n"


def sizes_table(sizes):
    lines = ["## Eight devices beside one", "", "| program | devices | step, ms | samples a second beside one device | plan |",
             "|---|---|---|---|---|"]
    for each in sizes:
        one = each["runs"][0]
        for run in each["runs"]:
            ratio = run["batch"] / run["seconds"] / (one["batch"] / one["seconds"])
            lines.append(f"| {each['name']} | {run['devices']} | {1e3 * run['seconds']:.3f} | {ratio:.2f} | {run['summary']} |")
    return "\n".join(lines) + "\n\n"


if __name__ == "__main__":
    main()
