"""tessera.ProgressBar, in what it finds: a file, a terminal, a notebook."""

import io
import os
import sys
import tempfile
import types
import unittest
from unittest import mock

import tessera
from tessera import _progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def step(number, steps=20, loss=2.5):
    return tessera.Step({"step": number, "loss": loss, "step_seconds": 0.5}, steps)


class Notebook:
    """Stands for IPython: what is displayed, and what takes its place."""

    def __init__(self):
        self.pictures = []
        self.module = types.ModuleType("IPython")
        self.module.display = types.ModuleType("IPython.display")
        self.module.display.HTML = str
        self.module.display.display = self.display
        self.module.get_ipython = lambda: types.SimpleNamespace(kernel=object())

    def display(self, picture, display_id):
        shown = [picture]
        self.pictures.append(shown)
        return types.SimpleNamespace(update=shown.append)

    def modules(self):
        return {"IPython": self.module, "IPython.display": self.module.display}


class Progress(unittest.TestCase):
    def setUp(self):
        self.now = 100.0
        clock = mock.patch.object(_progress.time, "monotonic", lambda: self.now)
        clock.start()
        self.addCleanup(clock.stop)

    def show(self, bar, seconds=0.5, steps=20, **more):
        for number in range(1, steps + 1):
            self.now += seconds
            bar(step(number, steps, **more))

    def test_a_terminal_has_one_line(self):
        out = Terminal()
        with mock.patch.dict(os.environ, COLUMNS="100"):
            self.show(tessera.ProgressBar(out))
        lines = out.getvalue().split("\r")
        self.assertEqual(len(lines), 21)
        self.assertEqual({len(line.rstrip("\n")) for line in lines[1:]}, {99})
        self.assertIn("step 5/20  loss 2.5000  0:02 gone, 0:08 left", lines[5])
        self.assertEqual(lines[5].count("#"), 10)
        self.assertTrue(out.getvalue().endswith("\n"))
        self.assertEqual(out.getvalue().count("\n"), 1)

    def test_a_narrow_terminal_is_not_left(self):
        for columns in ("1", "5", "48", "60"):
            out = Terminal()
            with mock.patch.dict(os.environ, COLUMNS=columns):
                self.show(tessera.ProgressBar(out), loss=float("nan"))
            widest = max(len(line.rstrip("\n")) for line in out.getvalue().split("\r"))
            self.assertLessEqual(widest, max(int(columns) - 1, 1))

    def test_a_file_has_a_line_now_and_then_and_the_last(self):
        out = io.StringIO()
        self.show(tessera.ProgressBar(out))
        numbers = [int(line.split("/")[0][5:]) for line in out.getvalue().splitlines()]
        self.assertEqual(numbers, [1, 11, 20])

    def test_a_notebook_has_one_picture_for_each_run(self):
        notebook = Notebook()
        with mock.patch.dict(sys.modules, notebook.modules()):
            bar = tessera.ProgressBar()
            self.show(bar)
            self.show(bar, seconds=0.01)
        first, second = notebook.pictures
        self.assertEqual(len(first), 20)
        self.assertLess(len(second), 6)  # not more often than one sees
        self.assertIn('<progress value="20" max="20"', first[-1])
        self.assertIn("step 20/20", second[-1])

    def test_a_run(self):
        with tempfile.TemporaryDirectory() as folder:
            data = os.path.join(folder, "my.txt")
            with open(data, "w") as file:
                file.writelines(f"line {i}\n" for i in range(300))

            def train(**more):
                out = io.StringIO()
                given = dict(preset="gpt2-tiny", layers=1, data=data, threads=1, eval_iters=1)
                given.update(steps=8, output=os.path.join(folder, "run"), lines=None)
                tessera.train(callbacks=[*more.pop("first", []), tessera.ProgressBar(out)], **given, **more)
                return out.getvalue().splitlines()[-1]

            self.assertIn("step 3/8", train(first=[lambda s: s.number == 3 and s.stop()]))
            self.assertIn("step 8/8", train(resume="auto"))

    def test_clocks(self):
        for seconds, text in [(0, "0:00"), (59.6, "1:00"), (3599, "59:59"), (3661, "1:01:01")]:
            self.assertEqual(_progress.clock(seconds), text)


if __name__ == "__main__":
    unittest.main()
