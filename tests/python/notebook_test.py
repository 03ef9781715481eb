"""notebook_test.py FILE.ipynb [--write]: runs the cells of a notebook, one after the other in a process of its own.

What a cell prints, and the value of its last line, is what the file says, but for numbers in text. Each tessera.train of the
notebook is done once more by the command with the same flags, and has the same losses to the bit. --write puts what is printed
into the file. TESSERA is the command.
"""

import ast
import contextlib
import io
import json
import os
import re
import subprocess
import sys

import numpy

import tessera
from guide_test import pattern_of

COMMAND = os.environ["TESSERA"]


class Trainings:
    """Every tessera.train of the notebook: folder, arguments of the command, losses."""

    def __init__(self):
        self.all = []
        self._train = tessera.train

    def __call__(self, **flags):
        given = {name: value for name, value in flags.items() if name not in ("lines", "callbacks")}
        if given.get("resume", "none") == "none" and not given.get("overwrite"):
            return self._kept(flags, given)
        return self._train(**flags)

    def _kept(self, flags, given):
        run = self._train(**flags)
        words = []
        for name, value in given.items():
            flag = "--" + name.replace("_", "-")
            if value is True:
                words.append(flag)
            elif name == "output":
                words += [flag, f"{value}-again"]
            else:
                words += [flag, *map(str, value if isinstance(value, list) else [value])]
        self.all.append((os.getcwd(), words, run.losses.tolist()))
        return run

    def differences(self):
        wrong = 0
        for folder, words, losses in self.all:
            subprocess.run([COMMAND, "train", *words], cwd=folder, check=True, capture_output=True)
            output = words[words.index("--output") + 1]
            with open(os.path.join(folder, output, "metrics.jsonl")) as file:
                lines = [json.loads(line) for line in file]
            of_command = [line["loss"] for line in lines if line.get("kind") == "train"]
            if [float(numpy.float32(loss)) for loss in of_command] != losses:
                print(f"tessera train {' '.join(words)}: other losses than those of Python")
                wrong += 1
        return wrong


def run_cell(source, space):
    """What it prints, with the value of its last line."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(tree, "cell", "exec"), space)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), space)
            if value is not None:
                print(repr(value))
                shown = getattr(value, "_repr_html_", lambda: "<p></p>")()
                assert shown.startswith("<"), shown
    return out.getvalue()


def main() -> int:
    path = os.path.abspath(sys.argv[1])
    with open(path) as file:
        notebook = json.load(file)
    trainings = Trainings()
    tessera.train = trainings
    space, wrong, cells = {"__name__": "__main__"}, 0, 0
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        cells += 1
        printed = run_cell("".join(cell["source"]), space)
        lines = printed.splitlines(keepends=True)
        if "--write" in sys.argv:
            output = {"name": "stdout", "output_type": "stream", "text": lines}
            cell["outputs"] = [output] if lines else []
            continue
        shown = "".join(text for output in cell["outputs"] for text in output["text"])
        if not re.fullmatch(pattern_of(shown), printed):
            print(f"cell {cells} of {path} shows:\n{shown}\nbut this is printed:\n{printed}")
            wrong += 1
    os.chdir("/")
    if "--write" in sys.argv:
        with open(path, "w") as file:
            json.dump(notebook, file, indent=1)
            file.write("\n")
        return 0
    wrong += trainings.differences()
    print(f"{cells} cells, {len(trainings.all)} trainings, {wrong} wrong")
    return 0 if cells > 0 and wrong == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
