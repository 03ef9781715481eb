"""examples_test.py FOLDER BUILD: programs of FOLDER print what the C++ examples of these names do."""

import os
import re
import subprocess
import sys
import unittest

FOLDER, BUILD = sys.argv[1:3]


def printed(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


class Examples(unittest.TestCase):
    def test_the_numbers_of_cpp(self):
        names = sorted(name[:-3] for name in os.listdir(FOLDER) if name.endswith(".py"))
        self.assertGreater(len(names), 4)
        for name in names:
            with self.subTest(name):
                of_python = printed(sys.executable, "-B", os.path.join(FOLDER, name + ".py"))
                of_cpp = printed(os.path.join(BUILD, "example_" + name))
                if name == "quickstart":  # there every rank speaks
                    of_cpp = "".join(sorted(set(re.findall("epoch.*\n", of_cpp))))
                self.assertEqual(of_python, of_cpp)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
