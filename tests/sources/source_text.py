"""The project's C++ files as text: which there are, and what is left of one without comments."""
import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDERS = ("acl", "analyzer", "base", "bench", "cli", "kit", "meaning", "page", "recorder", "replayer",
           "runtime", "storage", "tests", "timeline")
ENDINGS = (".h", ".hpp", ".cpp", ".c", ".cc", ".inc")

# Comments and literals. A prime between digits (1'000) begins no literal.
NOT_CODE = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<mark>[^\s()\\]{0,16})\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+'", re.S)


def source_files(root=ROOT, folders=FOLDERS):
    """Paths of the C++ files below `folders`, from `root`."""
    found = []
    for folder in folders:
        for parent, inner, files in os.walk(os.path.join(root, folder)):
            inner.sort()
            found += [os.path.relpath(os.path.join(parent, name), root) for name in sorted(files)
                      if name.endswith(ENDINGS)]
    return found


def read(path, root=ROOT):
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
        return file.read()


def without(pattern, text):
    """`text` with what matches blanked out, so that lines keep their numbers."""
    return pattern.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)


def code_of(text):
    """Without comments, literals and preprocessor lines."""
    directive = re.compile(r"^[ \t]*#(?:[^\n\\]|\\\n|\\.)*", re.M)
    return without(directive, without(NOT_CODE, text))
