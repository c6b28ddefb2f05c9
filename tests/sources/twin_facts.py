"""Finds facts that have two owners: equal lists, constants of one name, and copied numbers of the interface.

Each function takes texts by path and gives its findings, each with what an exception would name and a line.
"""
import collections
import itertools
import json
import os
import re

from source_text import NOT_CODE, ROOT, without

# Comments, and literals as they are.
COMMENT = re.compile(
    r'//[^\n]*|/\*.*?\*/|(?P<literal>R"(?P<mark>[^\s()\\]{0,16})\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+')", re.S)

# Literals that may be a name of something: not a sentence, not a piece of a text.
NAME = re.compile(r'"([A-Za-z_][\w:.*-]{2,})"')
# A name that hardly stands in two lists by chance.
DISTINCTIVE = re.compile(r"::|_|^acl|[a-z][A-Z]")
TABLE = re.compile(r"\b(k[A-Z]\w*)\s*(?:\[[^\]]*\]\s*)*=\s*\{")
SQL_LIST = re.compile(r"\bIN\s*\(((?:\s*'[^']*'\s*,?)+)\)")

CONSTANT = re.compile(r"\b(?:constexpr|const)\b[^=;(){}]*?\b(?P<all>k[A-Z]\w*\s*(?:\[\s*\]\s*)?"
                      r"(?:=[^;{]+|\{[^;{}]+\}))\s*;", re.S)
# One of those that a statement declares.
DECLARED = re.compile(r"\b(k[A-Z]\w*)\s*(?:\[\s*\]\s*)?[={]([^={}]+?)(?:\}\s*)?(?:,\s*(?=k[A-Z]\w*\s*[={])|$)")
# A value that is written down, and not the name of another constant.
NUMBER = re.compile(r"^[-+*/<>|() \d']*\d[-+*/<>|() \d'a-fA-FxXuUlL.]*$")
TEXT = re.compile(r'^(?:"(?:\\.|[^"\\\n])*"\s*)+$')


def uncommented(text):
    return COMMENT.sub(lambda match: match.group() if match.group("literal")
                       else re.sub(r"[^\n]", " ", match.group()), text)


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def braced(code, position):
    """The end of the braces that open at a place of a text without literals."""
    depth = 0
    for place in range(position, len(code)):
        depth += (code[place] == "{") - (code[place] == "}")
        if depth == 0:
            return place
    return len(code)


Rows = collections.namedtuple("Rows", "path line name words")


def lists_of(path, text):
    """The tables of constants of a file, and the lists in its SQL, each with the names in it."""
    plain, code = uncommented(text), without(NOT_CODE, text)
    for match in TABLE.finditer(code):
        words = set(NAME.findall(plain[match.end() - 1:braced(code, match.end() - 1)]))
        yield Rows(path, line_of(code, match.start(1)), match.group(1), words)
    for match in SQL_LIST.finditer(plain):
        words = {word for word in re.findall(r"'([^']*)'", match.group(1)) if len(word) > 2}
        yield Rows(path, line_of(plain, match.start()), "IN (...)", words)


def are_twins(one, other):
    """Most names of the shorter list are in the longer one. Common words alone must be most of both."""
    shared = one & other
    if len(shared) < 3 or len(shared) < 0.6 * min(len(one), len(other)):
        return False
    distinctive = sum(bool(DISTINCTIVE.search(word)) for word in shared)
    return distinctive >= 3 or len(shared) > 0.6 * len(one | other)


def list_twins(texts):
    lists = [rows for path, text in sorted(texts.items()) for rows in lists_of(path, text) if len(rows.words) > 2]
    found = []
    for one, other in itertools.combinations(lists, 2):
        pair = frozenset({(one.path, one.name), (other.path, other.name)})
        if one.path != other.path and are_twins(one.words, other.words):
            shared = sorted(one.words & other.words)
            found.append((pair, f"{one.name} in {one.path}:{one.line} and {other.name} in {other.path}:{other.line} "
                          f"share {len(shared)} rows: {', '.join(shared[:4])}"))
    return found


NAMESPACE = re.compile(r"(?:^|[;{}\s])(?:inline\s+)?namespace(?:\s+[\w:]+)?\s*$")


def namespace_depth_only(code, position):
    """True if every brace that is open at a place is one of a namespace."""
    open_braces = []
    for place in range(position):
        if code[place] == "{":
            open_braces.append(bool(NAMESPACE.search(code[max(0, place - 200):place])))
        elif code[place] == "}" and open_braces:
            open_braces.pop()
    return all(open_braces)


Constant = collections.namedtuple("Constant", "path line name value shared")


def constants_of(path, text):
    """Constants whose value is written down. `shared`: other files that include this one see it."""
    plain, code = uncommented(text), without(NOT_CODE, text)
    for match in CONSTANT.finditer(code):
        shared = path.endswith(".h") and namespace_depth_only(code, match.start())
        begin = match.start("all")
        for one in DECLARED.finditer(match.group("all")):
            value = re.sub(r"\s+", " ", plain[begin + one.start(2):begin + one.end(2)]).strip()
            if NUMBER.match(value) or TEXT.match(value):
                yield Constant(path, line_of(plain, begin + one.start()), one.group(1), plain_value(value), shared)


def plain_value(value):
    """256 << 10 and 262144 are one value."""
    if TEXT.match(value):
        return value
    bare = re.sub(r"(?<=[0-9a-fA-F])[uUlL]+\b", "", value.replace("'", ""))
    try:
        return str(eval(bare, {"__builtins__": {}}))  # pylint: disable=eval-used; digits and operators alone
    except (SyntaxError, NameError, ZeroDivisionError, TypeError):
        return bare


def constant_twins(texts):
    """A name has one value and one place, or at least is not seen from where another one is."""
    by_name = collections.defaultdict(list)
    for path, text in sorted(texts.items()):
        for constant in constants_of(path, text):
            by_name[constant.name].append(constant)
    found = []
    for name, group in sorted(by_name.items()):
        for one, other in itertools.combinations(group, 2):
            if one.path == other.path:
                continue
            value = "" if one.value == other.value else other.value + " "
            if not value or (one.shared and other.shared):
                found.append(((name, frozenset((one.path, other.path))),
                              f"{name} is {one.value} in {one.path}:{one.line} and {value}in "
                              f"{other.path}:{other.line}"))
    return found


def interface_codes(root=ROOT):
    """Codes of errors of the interface by number. Round ones are anyone's numbers."""
    with open(os.path.join(root, "acl", "data", "acl_abi.json"), encoding="utf-8") as file:
        macros = json.load(file)["macros"]
    return {macro["value"]: macro["name"] for macro in macros
            if "ERR" in macro["name"] and macro["value"] >= 100000 and macro["value"] % 100000}


def interface_numbers(root=ROOT):
    """Every number of the interface by its name."""
    with open(os.path.join(root, "acl", "data", "acl_abi.json"), encoding="utf-8") as file:
        abi = json.load(file)
    numbers = {macro["name"]: macro["value"] for macro in abi["macros"]}
    numbers.update((value["name"], value["value"]) for enum in abi["enums"] for value in enum["values"])
    return numbers


DIGITS = re.compile(r"(?<![\w.'])(0[xX][0-9a-fA-F']+|\d[\d']*)(?:[uUlL]+)?(?![\w.'])")
NAMED = re.compile(r"\bACL(?:NN)?_[A-Z0-9_]+\b")


def copied_numbers(texts, codes, numbers):
    """Codes of the interface in code and in texts, and numbers beside a comment that names them."""
    found = []
    for path, text in sorted(texts.items()):
        plain = uncommented(text) if not path.endswith(".py") else re.sub(r"(?m)(^|\s)#.*$", "", text)
        for number, (line, whole) in enumerate(zip(plain.split("\n"), text.split("\n")), 1):
            values = {int(digits.replace("'", ""), 0 if digits[:2] in ("0x", "0X") else 10)
                      for digits in DIGITS.findall(line)}
            names = [codes[value] for value in sorted(values & codes.keys())]
            comment = whole[len(line.rstrip()):]
            names += [name for name in NAMED.findall(comment) if numbers.get(name) in values
                      and name not in names]
            found += [((path, name), f"{path}:{number} writes the number of {name}") for name in names]
    return found
