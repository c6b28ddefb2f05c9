#!/usr/bin/env python3
"""Puts the frame, the style and the scripts of a page into one C++ file.

    embed.py OUT NAME [--library SCRIPT.js]... PAGE.html STYLE.css... SCRIPT.js...

NAME is the constant in C++. The page allows only scripts and the style whose SHA-256 its Content-Security-Policy names,
and nothing from any network. The frame has the words @POLICY@, @STYLE@, @DATA@ and @SCRIPTS@.
"""
import argparse
import base64
import hashlib
import sys


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def hashed(text):
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def literal(name, text):
    """Pieces, because compilers limit the length of one literal."""
    data = text.encode()
    lines = [f"constexpr std::string_view {name}("]
    for first in range(0, len(data), 2000):
        piece = data[first:first + 2000]
        # Octal escapes have three digits at most, so that a digit after one is not read as part of it.
        lines.append('"' + "".join(
            chr(byte) if 32 <= byte < 127 and byte not in b'"\\?' else f"\\{byte:03o}"
            for byte in piece) + '"')
    return "\n".join(lines) + f",\n{len(data)});\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("name")
    parser.add_argument("--library", action="append", default=[])
    parser.add_argument("files", nargs="+")
    given = parser.parse_args()
    page, = (read(path) for path in given.files if path.endswith(".html"))
    style = "".join(read(path) for path in given.files if path.endswith(".css"))
    # The scripts share one scope; each file is an idea.
    own = "\n".join(read(path) for path in given.files if path.endswith(".js"))
    scripts = [*map(read, given.library), '"use strict";\n(() => {\n' + own + "\n})();\n"]
    for path, text in zip(given.library, scripts):
        if path.endswith("d3.min.js") and "d3js.org v5." not in text[:200]:
            sys.exit(f"embed.py: {path} is not d3 5, which the page is written for; install node-d3 of Debian 12")
    for text in scripts:
        if "</script" in text.lower() or "<!--" in text:
            sys.exit("embed.py: a script holds text that would end it inside a page")
    policy = ("default-src 'none'; script-src " + " ".join(map(hashed, scripts)) +
              f"; style-src {hashed(style)}; base-uri 'none'; form-action 'none'")
    page = page.replace("@POLICY@", policy).replace("@STYLE@", style)
    head, tail = page.split("@DATA@")
    tail = tail.replace("@SCRIPTS@", "\n".join(f"<script>{text}</script>" for text in scripts))
    with open(given.out, "w", encoding="utf-8") as file:
        file.write('// Made by page/embed.py.\n#include "page/web_files.h"\n\n'
                   "namespace acltape::page {\nnamespace {\n\n" + literal("kHead", head) + literal("kTail", tail) +
                   f"\n}}  // namespace\n\nconst Frame {given.name} = {{kHead, kTail}};\n"
                   "\n}  // namespace acltape::page\n")


if __name__ == "__main__":
    main()
