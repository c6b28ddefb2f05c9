#!/usr/bin/env python3
"""Comments and names use plain words.

Each row names a rule, the part of a file that it looks at, and a pattern of what breaks it. A place that breaks a rule
is printed as FILE:LINE.
"""
import os
import re
import tempfile
import unittest

from source_text import NOT_CODE, read, source_files

# A place in a row or in time is "after" another one. Something may still be left behind.
BEHIND = re.compile(r"(?<!\w)behind(?!\w)", re.I)
LEFT_BEHIND = re.compile(r"\b(?:leav(?:e|es|ing)|left)\b[\w ']*behind|behind the recorder's back", re.I)
FRAGMENT = re.compile(r"//+ (?:Of|That which|What|Which|Whether|By [\w ]+:) ")
TRAILING = re.compile(r"//+ (?:of|that|which|what|whether|whose) ")
INDEX = re.compile(r"\b(?:auto|size_t|int|long|u?int\d+_t)[&*]? at\b(?!::)")
NAME = re.compile(r"\bTell[A-Z]\w*\(|\bLookAround\b|\b(?:struct|class) (?:Face|Scene)\b")
RULES = (
    ("'behind' is said for 'after'", "text", BEHIND),
    ("a comment begins without a subject", "comment", FRAGMENT),
    ("a comment after code begins with a relative clause or a genitive", "trailing", TRAILING),
    ("an index or a position is called 'at'", "code", INDEX),
    ("a name says 'tell', or is one that said nothing", "code", NAME),
)


def comments(text):
    """Start of each comment of one line or of the first line of several, and whether code stands before it."""
    end = -2
    for match in NOT_CODE.finditer(text):
        if not match.group().startswith("//"):
            continue
        start = match.start()
        before = text[text.rfind("\n", 0, start) + 1:start]
        trailing = bool(before.strip())
        if trailing or start - len(before) - 1 != end:
            yield start, trailing
        end = match.end()


def places(text, part):
    """Ranges of the text that a rule of this part looks at."""
    if part == "text":
        yield 0, text
    elif part == "code":
        yield 0, NOT_CODE.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)
    else:
        for start, trailing in comments(text):
            if trailing == (part == "trailing"):
                yield start, text[start:text.find("\n", start)]


def find_breaks(root=None, rules=RULES):
    found = []
    for path in source_files(*([root] if root else [])):
        text = read(path, *([root] if root else []))
        for what, part, pattern in rules:
            for start, piece in places(text, part):
                if part == "text":
                    piece = LEFT_BEHIND.sub(lambda match: " " * len(match.group()), piece)
                matches = pattern.finditer(piece) if part in ("text", "code") else filter(None, [pattern.match(piece)])
                found += [f"{path}:{text.count(chr(10), 0, start + match.start()) + 1}: {what}" for match in matches]
    return found


class PlainWords(unittest.TestCase):
    def test_the_sources_keep_each_rule(self):
        self.assertEqual(find_breaks(), [])


class Planted(unittest.TestCase):
    def breaks(self, text):
        with tempfile.TemporaryDirectory() as root:
            os.mkdir(os.path.join(root, "analyzer"))
            with open(os.path.join(root, "analyzer", "planted.h"), "w") as file:
                file.write(text)
            return [line.partition(":")[2].partition(":")[0] for line in find_breaks(root)]

    def test_each_rule_names_the_line(self):
        self.assertEqual(self.breaks("int a;\n// It comes behind the call.\n"), ["2"])
        self.assertEqual(self.breaks("int a;\n\n// Of the last call.\nint b;\n"), ["3"])
        self.assertEqual(self.breaks("// By node: the step.\nint b;\n"), ["1"])
        self.assertEqual(self.breaks("int a;\nint b = 0;  // of the last call\n"), ["2"])
        self.assertEqual(self.breaks("void F() {\n  size_t at = 0;\n}\n"), ["2"])
        self.assertEqual(self.breaks("void TellName();\n"), ["1"])

    def test_other_uses_of_the_words_are_fine(self):
        self.assertEqual(self.breaks(
            "// A failed test leaves its trace behind.\n"
            "// The next line goes on:\n"
            "// What follows belongs to the sentence before.\n"
            "int a;  // the number that each call has\n"
            "int b = list.at(0);  // at the end\n"
            'const char* c = "// of a text";\n'
            "at::Tensor Tell();\n"), [])


if __name__ == "__main__":
    unittest.main()
