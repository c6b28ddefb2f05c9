#!/usr/bin/env python3
"""docs/first_day.md tells the truth: each command of the page ends as it says and prints the lines that stand below it.

Numbers, and how wide columns are, may differ. A line that ends with "..." is the beginning of a line of the output.
"""
import os
import re
import shlex
import shutil
import sys
import unittest

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(SOURCE, "tests", "cli"))
from harness import BINARY, CommandTest, main, run  # noqa: E402

PAGE = os.path.join(SOURCE, "docs", "first_day.md")
PROGRAMS = os.path.join(SOURCE, "tests", "matrix", "programs")
PYTHON = os.environ.get("ACLTAPE_TORCH2_PYTHON")


def commands_of(page):
    """The commands of the page: each with its exit code and the lines below it."""
    commands = []
    for block in re.findall(r"^```console\n(.*?)^```$", page, re.M | re.S):
        for line in block.splitlines():
            if line.startswith("$ "):
                words, _, comment = line[2:].partition("#")
                code = re.search(r"exit code (\d+)", comment)
                commands.append((shlex.split(words), int(code[1]) if code else 0, []))
            else:
                commands[-1][2].append(line)
    return commands


def plain(line):
    """A line without what may differ: numbers with their units, and widths of columns."""
    return re.sub(r"\s+", " ", re.sub(r"\d[\d.]*( ?([KM]iB|[nmu]?s|B)\b)?", "#", line)).strip()


@unittest.skipUnless(PYTHON, "needs a Python with torch_npu (ACLTAPE_TORCH2_PYTHON)")
class FirstDay(CommandTest):
    def test_every_command_of_the_page_does_what_it_says(self):
        with open(PAGE) as file:
            commands = commands_of(file.read())
        self.assertGreater(len(commands), 15)
        folder = self.path("day")
        shutil.copytree(PROGRAMS, folder)
        for words, code, expected in commands:
            self.assertEqual(words[0], "acltape")
            words = [PYTHON if word == "python3" else word for word in words[1:]]
            result = run(BINARY, *words, cwd=folder)
            self.assertEqual(result.code, code, result)
            said = [plain(line) for line in (result.out + result.err).splitlines()]
            for line in expected:
                wanted = plain(line.removesuffix("..."))
                found = any(one.startswith(wanted) if line.endswith("...") else one == wanted for one in said)
                self.assertTrue(found, f"docs/first_day.md has the line\n{line}\nbut not the output of\n{result}")


if __name__ == "__main__":
    main()
