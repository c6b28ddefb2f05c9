#!/usr/bin/env python3
"""Texts take the spelling of the command line's options from meaning/options.h.

A string literal elsewhere that holds "--" and a letter is printed as FILE:LINE. Then an option is
renamed in one place.
"""
import os
import re
import tempfile
import unittest

from source_text import NOT_CODE, ROOT, read, source_files

TABLE = "meaning/options.h"
# The folders whose texts speak of acltape's command line.
FOLDERS = ("analyzer", "cli", "kit", "meaning", "page", "recorder", "replayer", "storage", "timeline")
# Options of other programs, by the file that names them.
OTHERS = {
    "cli/bisect/bisect_emit.cpp": {"--clean"},  # option of a reproducer, as in the files of replayer/reproducer/
    "cli/files/export.cpp": {"--clean"},
    "cli/help/completion_scripts.cpp": {"--option"},  # a comment in a script
    "cli/record/doctor.cpp": {"--version"},  # sqlite3
    "cli/record/record.cpp": {"--epochs"},  # a program of the examples
    "cli/record/run.cpp": {"--device"},
    "cli/environment/torch_kits.cpp": {"--build"},  # cmake
    "replayer/reproducer/build_cpp.cpp": {"--clean"},
    "replayer/reproducer/cpp_preamble.cpp": {"--clean", "--runs", "--watch"},  # one literal: a program
    "replayer/reproducer/emit_cpp.cpp": {"--clean"},
    "replayer/reproducer/reproducer.cpp": {"--clean"},
}


def find_spelled(root=ROOT, others=OTHERS):
    """Options in literals outside the table, and rows of `others` that are not needed."""
    wrong, needed = [], {}
    for path in source_files(root, FOLDERS):
        if path == TABLE:
            continue
        text = read(path, root)
        for literal in NOT_CODE.finditer(text):
            if literal.group()[0] not in 'R"':
                continue
            for option in re.finditer(r"--[A-Za-z][\w-]*", literal.group()):
                if option.group() in others.get(path, ()):
                    needed.setdefault(path, set()).add(option.group())
                    continue
                line = text.count("\n", 0, literal.start() + option.start()) + 1
                wrong.append(f'{path}:{line}: {option.group()}: write @{option.group()[2:]} and _cli')
    return wrong + [f"{path}: {words} stand there no more: take them out of OTHERS"
                    for path, words in others.items() if needed.get(path) != words]


# Variables that stand for options, and the file that reads them.
VARIABLES = ("ACLTAPE_LEVEL", "ACLTAPE_PROCESS")
READER = "cli/frame/trace_part_options.cpp"


def find_variables(root=ROOT):
    """Literals outside of READER that are the name of a variable and nothing else."""
    found = []
    for path in source_files(root, FOLDERS):
        if path == READER:
            continue
        text = read(path, root)
        for literal in NOT_CODE.finditer(text):
            if literal.group().strip('"') in VARIABLES and literal.group()[0] == '"':
                line = text.count("\n", 0, literal.start()) + 1
                found.append(f"{path}:{line}: {literal.group()[1:-1]}")
    return found


class Options(unittest.TestCase):
    def test_literals_take_options_from_the_table(self):
        wrong = find_spelled()
        self.assertEqual(wrong, [], "\n" + "\n".join(wrong))

    def test_planted_literals_are_named_with_file_and_line(self):
        planted = {
            "storage/reader.cpp": '// --payload\nRefuse("record with "\n       "--payload all");\n',
            "cli/record/run.cpp": '"run --device npu"; "@plan"_cli; R"(SELECT 1 -- one\n --plan)"; x--;\n',
        }
        with tempfile.TemporaryDirectory() as root:
            for path, text in planted.items():
                os.makedirs(os.path.join(root, os.path.dirname(path)))
                with open(os.path.join(root, path), "w") as file:
                    file.write(text)
            wrong = find_spelled(root, {"cli/record/run.cpp": {"--device"}, "cli/gone.cpp": {"--clean"}})
        self.assertEqual(wrong,
                         ["cli/record/run.cpp:2: --plan: write @plan and _cli",
                          "storage/reader.cpp:3: --payload: write @payload and _cli",
                          "cli/gone.cpp: {'--clean'} stand there no more: take them out of OTHERS"])

    def test_variables_that_stand_for_options_are_read_at_one_place(self):
        wrong = find_variables()
        self.assertEqual(wrong, [], "\n" + "\n".join(wrong))

    def test_a_planted_reading_of_a_variable_is_named_with_file_and_line(self):
        with tempfile.TemporaryDirectory() as root:
            os.makedirs(os.path.join(root, "storage"))
            with open(os.path.join(root, "storage/reader.cpp"), "w") as file:
                file.write('// getenv("ACLTAPE_LEVEL")\n\nauto* level = getenv("ACLTAPE_LEVEL");\n'
                           '"$ACLTAPE_PROCESS";\n')
            self.assertEqual(find_variables(root), ["storage/reader.cpp:3: ACLTAPE_LEVEL"])


if __name__ == "__main__":
    unittest.main()
