"""wheel_test.py SOURCE LIBRARY: the wheel of a built library is whole, and trains where it is unpacked."""

import ast
import base64
import csv
import hashlib
import importlib.util
import io
import os
import subprocess
import sys
import tempfile
import unittest
import zipfile

SOURCE, LIBRARY = sys.argv[1:3]
FUNCTIONS = ("train", "plan", "verify", "bench", "inspect", "export", "merge_adapter", "evaluate",
             "predict")
LIST_KEYWORDS = (
    "import sys, inspect, tessera\n"
    "for name in sys.argv[1:]: print(*inspect.signature(getattr(tessera, name)).parameters)"
)


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        script = os.path.join(SOURCE, "tools", "python_wheel.py")
        made = subprocess.run(
            [sys.executable, "-B", script, LIBRARY, cls.folder.name],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
        cls.path = made.stdout.splitlines()[-1]
        cls.version = os.path.basename(cls.path).split("-")[1]
        cls.wheel = zipfile.ZipFile(cls.path)

    @classmethod
    def tearDownClass(cls):
        cls.wheel.close()
        cls.folder.cleanup()

    def test_its_name_says_where_it_runs(self):
        name = os.path.basename(self.path)
        self.assertRegex(name, r"^tessera-\d+\.\d+\.\d+-py3-none-manylinux_2_(3[6-9]|[4-9].)_.*\.whl$")
        about = self.wheel.read(f"tessera-{self.version}.dist-info/WHEEL").decode()
        self.assertIn("Tag: " + name[: -len(".whl")].split("-", 2)[2], about.splitlines())

    def test_the_record_names_every_file_and_its_hash(self):
        record = f"tessera-{self.version}.dist-info/RECORD"
        rows = list(csv.reader(io.StringIO(self.wheel.read(record).decode())))
        self.assertEqual([row[0] for row in rows], self.wheel.namelist())
        for name, digest, size in rows:
            if name == record:
                self.assertEqual((digest, size), ("", ""))
                continue
            data = self.wheel.read(name)
            sha = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
            self.assertEqual((digest, size), ("sha256=" + sha, str(len(data))))

    def test_it_has_the_modules_and_libraries_but_none_of_the_system(self):
        names = self.wheel.namelist()
        package = os.path.join(SOURCE, "python", "tessera")
        for where, _, files in os.walk(package):
            for name in files:
                path = os.path.relpath(os.path.join(where, name), package)
                self.assertTrue("tessera/" + path in names or "__pycache__" in path, path)
        for name in ("tessera/__init__.py", "tessera/py.typed", "tessera/libtessera_c.so"):
            self.assertIn(name, names)
        libraries = [name for name in names if name.startswith("tessera.libs/")]
        self.assertTrue(any("libdnnl" in name for name in libraries), libraries)
        self.assertFalse([name for name in libraries if "libc.so" in name or "libstdc++" in name])
        # Of the process: its malloc stays its own.
        self.assertFalse([name for name in names if "mimalloc" in name])

    def test_keywords_have_types(self):
        stub = ast.parse(self.wheel.read("tessera/_keywords.pyi"))
        classes = {node.name: node for node in stub.body if isinstance(node, ast.ClassDef)}
        self.assertEqual(set(classes), {"Run", "Compile", *(name.title().replace("_", "") for name in FUNCTIONS)})

        def names(of):
            mine = {line.target.id for line in classes[of].body if isinstance(line, ast.AnnAssign)}
            bases = {base.id for base in classes[of].bases} - {"TypedDict"}
            return mine.union(*map(names, bases))

        place = self.unpacked()
        listed = subprocess.run(
            [sys.executable, "-B", "-c", LIST_KEYWORDS, *FUNCTIONS],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": place},
        )
        for function, line in zip(FUNCTIONS, listed.stdout.splitlines()):
            keywords = set(line.split()) - {"path", "lines", "callbacks"}
            self.assertEqual(keywords - names(function.title().replace("_", "")), set())
        self.assertTrue({"steps", "train_iters", "lr", "overwrite"} <= names("Train"))
        self.assertNotIn("json", names("Plan"))
        self.assertTrue({"devices", "zero_stage"} <= names("Compile"))
        self.assertNotIn("steps", names("Compile"))

    def test_types_hold(self):
        if importlib.util.find_spec("mypy") is None:
            self.skipTest("no mypy")
        place = self.unpacked()

        def found(*words):
            mypy = [sys.executable, "-m", "mypy", "--follow-imports=silent", "--cache-dir", os.devnull]
            return subprocess.run([*mypy, *words], capture_output=True, text=True, cwd=place).stdout

        good = "import tessera\nx: float = tessera.verify(devices=2, lr=1, bf16=True).worst\n"
        self.assertRegex(found("-c", good), "^Success")
        for bad, words in [
            ("tessera.train(stesp=3)", 'Unexpected keyword argument "stesp"'),
            ("tessera.train(steps='many')", "incompatible type"),
            ("tessera.export('a', dtype='f64')", "incompatible type"),
            ("x: str = tessera.inspect('a', digest=True)", "Incompatible types"),
        ]:
            self.assertIn(words, found("-c", "import tessera\n" + bad))

    def unpacked(self):
        place = os.path.join(self.folder.name, "unpacked")
        self.wheel.extractall(place)
        return place

    def test_it_trains_where_it_is_unpacked(self):
        place = self.unpacked()
        with open(os.path.join(self.folder.name, "text.txt"), "w") as file:
            file.writelines(f"line {i}\n" for i in range(400))
        program = (
            "import tessera\n"
            "run = tessera.train(preset='gpt2-tiny', layers=1, data='text.txt', steps=2,"
            " output='run', lines=None)\n"
            "print(len(run.losses), tessera.__file__)\n"
        )
        shown = subprocess.run(
            [sys.executable, "-B", "-c", program],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
            cwd=self.folder.name,
            env={**os.environ, "PYTHONPATH": place, "PATH": ""},
        )
        self.assertEqual(shown.stdout, f"2 {place}/tessera/__init__.py\n")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
