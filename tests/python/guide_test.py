"""guide_test.py PAGE: runs the cells of a page, its blocks of Python, one after the other in a folder with my.txt.

A plain block that follows a cell is what the cell prints, but for numbers; "..." is any text, of any number of lines where it
is a line.
"""

import contextlib
import io
import os
import re
import sys
import tempfile

PAGE = os.path.abspath(sys.argv[1])


def main() -> int:
    with open(PAGE) as file:
        blocks = re.findall(r"^```(\w*)\n(.*?)^```$", file.read(), re.MULTILINE | re.DOTALL)
    wrong = cells = 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        with open("my.txt", "w") as file:
            file.writelines(f"line {i * 7919 % 1000}, and words of it\n" for i in range(2000))
        space, printed = {"__name__": "__main__"}, None
        for language, text in blocks:
            if language == "python":
                out = io.StringIO()
                with contextlib.redirect_stdout(out):
                    exec(compile(text, PAGE, "exec"), space)
                printed = out.getvalue()
                cells += 1
            elif language == "" and printed is not None:
                if not re.fullmatch(pattern_of(text), printed):
                    print(f"{PAGE} shows:\n{text}\nbut this is printed:\n{printed}")
                    wrong += 1
                printed = None
        os.chdir("/")
    print(f"{cells} cells, {wrong} wrong")
    return 0 if cells > 0 and wrong == 0 else 1


NUMBER = r"-?\d+(?:\.\d+)?(?:e-?\d+)?"


def pattern_of(shown: str) -> str:
    out = ""
    for line in shown.splitlines():
        if line == "...":
            out += r"(?:.*\n)*"
            continue
        for part in re.split(rf"({NUMBER}|\.\.\.)", line):
            out += ".*" if part == "..." else NUMBER if re.fullmatch(NUMBER, part) else re.escape(part)
        out += "\n"
    return out


if __name__ == "__main__":
    sys.exit(main())
