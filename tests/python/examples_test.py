"""examples_test.py FOLDER BUILD: programs of FOLDER print what the C++ examples of these names do."""

import os
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
                self.assertEqual(of_python, printed(os.path.join(BUILD, "example_" + name)))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
