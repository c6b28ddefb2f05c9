#!/usr/bin/env python3
"""Runs vLLM in combinations of model, feature, mode and process, and writes a table of what came of them.

A combination is a row. The rows are chosen so that each pair of values (a model with a feature, a feature with
a mode, and so on) that is possible occurs in at least one of them, as far as 40 rows allow. A row is run without
recording and recorded, its trace is linted and replayed. Its result lies in the output folder; a row that has
one is not run again, so that an interrupted table goes on.

    tests/vllm/table.py --list
    tests/vllm/table.py --rows llama,eager --output out
    tests/vllm/table.py --output out --markdown docs/vllm_table.md

ACLTAPE_BINARY and ACLTAPE_VLLM_PYTHON name the executable and an interpreter with vLLM (scripts/vllm-python).
"""
import argparse
import glob
import itertools
import json
import os
import re
import subprocess
import sys
import time

FOLDER = os.path.dirname(os.path.abspath(__file__))
PROGRAM = os.path.join(FOLDER, "programs", "offline.py")
sys.path.insert(0, os.path.join(FOLDER, "programs"))
import offline  # noqa: E402  # pylint: disable=wrong-import-position

MOST_ROWS = 40
AXES = ("model", "feature", "mode", "process")
DENSE = {"llama", "qwen2", "qwen3"}


def choices():
    """The values of each axis, as the program takes them."""
    taken = {action.dest: list(action.choices) for action in offline.arguments()._actions if action.choices}
    return [taken["model"], ["none", *taken["feature"]], taken["mode"], ["one", "engine"]]


# Combinations that are not run: which, and why.
IMPOSSIBLE = [
    (lambda model, feature, mode, process: feature == "lora-mixed" and mode != "eager",
     "the plug-in's compiled model applies an adapter to the runs of tokens it was traced with (docs/vllm_ascend.md)"),
    (lambda model, feature, mode, process: feature in ("lora", "lora-mixed", "w8a8", "w8a8-dynamic") and
     model not in DENSE,
     "the program writes adapters and quantised weights for dense layers alone"),
    (lambda model, feature, mode, process: feature in ("ngram", "draft-model") and model not in DENSE,
     "speculation needs an attention whose cache takes several tokens of a sequence at once; tried with dense models"),
    (lambda model, feature, mode, process: feature == "draft-model" and mode.startswith("FULL"),
     "the plug-in updates graphs of a draft model for which it made no stream (docs/vllm_ascend.md)"),
    (lambda model, feature, mode, process: feature == "prefix-caching" and model == "qwen3-next",
     "vLLM keeps no prefixes of a recurrent state"),
    (lambda model, feature, mode, process: feature == "prefix-caching" and model.startswith("deepseek"),
     "its prompts are longer than what the model's attention without a cache takes"),
]


def reason(row):
    """Why a combination is not run; None if it is."""
    return next((why for rule, why in IMPOSSIBLE if rule(*row)), None)


def pairs(row):
    return set(itertools.combinations(enumerate(row), 2))


def chosen_rows(axes):
    """The rows, the pairs that they cover, and the pairs that are possible. The same axes give the same rows."""
    possible = [row for row in itertools.product(*axes) if reason(row) is None]
    wanted = set().union(*(pairs(row) for row in possible))
    rows, left = [], set(wanted)
    used = {}  # how often a value was chosen, so that rows take turns
    while left and len(rows) < MOST_ROWS:
        best = max(possible, key=lambda row: (len(pairs(row) & left), -sum(used.get(value, 0) for value in row)))
        rows.append(best)
        left -= pairs(best)
        for value in best:
            used[value] = used.get(value, 0) + 1
    return rows, len(wanted) - len(left), len(wanted)


# Rows that need another dtype than their model has.
DTYPES = [
    # The plug-in computes prompts of compressed keys in bfloat16, and reads earlier parts from the cache as they are.
    (lambda model, feature: model.startswith("deepseek") and feature == "chunked-prefill", "bfloat16"),
]


class Expired(Exception):
    """A row has used up its time."""


class Row:
    """One combination: its commands and its result."""

    def __init__(self, values, options):
        self.values = dict(zip(AXES, values))
        self.name = ".".join(values)
        self.options = options
        self.end = 0.0

    def path(self, ending):
        return os.path.join(self.options.output, f"{self.name}.{ending}")

    def result(self):
        try:
            with open(self.path("json"), encoding="utf-8") as file:
                return json.load(file)
        except FileNotFoundError:
            return None

    def program(self):
        words = [self.options.python, PROGRAM, "--model", self.values["model"], "--mode", self.values["mode"]]
        if self.values["feature"] != "none":
            words += ["--feature", self.values["feature"]]
        for rule, dtype in DTYPES:
            if rule(self.values["model"], self.values["feature"]):
                words += ["--dtype", dtype]
        return words + (["--one-process"] if self.values["process"] == "one" else [])

    def call(self, step, *words, **environment):
        """Runs a command; its output, which is kept beside the result. The row's time ends it."""
        left = self.end - time.monotonic()
        if left <= 0:
            raise Expired(step)
        with open(self.path(f"{step}.log"), "w+", encoding="utf-8", errors="replace") as log:
            # A group of its own, so that an engine in a process of its own ends with it.
            with subprocess.Popen(words, stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
                                  env={**os.environ, **environment}) as process:
                try:
                    process.wait(left)
                except subprocess.TimeoutExpired as expired:
                    os.killpg(process.pid, 9)
                    raise Expired(step) from expired
            log.seek(0)
            return log.read()

    def run(self):
        """Runs the row and keeps its result."""
        begin = time.monotonic()
        self.end = begin + self.options.limit
        result = dict(self.values)
        try:
            self._steps(result)
        except Expired as step:
            result["expired"] = str(step)
        result["seconds"] = round(time.monotonic() - begin, 1)
        if os.path.exists(self.path("db")) and not self.options.keep_traces:
            os.remove(self.path("db"))
        with open(self.path("json"), "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)
        return result

    def _steps(self, result):
        binary, trace = self.options.binary, self.path("db")
        bare = figures(self.call("run", binary, "run", "--", *self.program(), ACLTAPE_TRITON_ON_HOST="0"))
        result.update(bare)
        if bare["verdict"] not in ("equal", "near"):
            return
        recorded = figures(self.call("record", binary, "record", "--soft", "--force", "--payload", "all", "-o", trace,
                                     "--", *self.program(), ACLTAPE_TRITON_ON_HOST="1"))
        result["recorded_verdict"] = recorded["verdict"]
        if recorded["seconds_of_tokens"] and bare["seconds_of_tokens"]:
            result["ratio"] = round(recorded["seconds_of_tokens"] / bare["seconds_of_tokens"], 2)
        if recorded["tokens"] != bare["tokens"]:
            result["recorded_verdict"] = "other tokens"
        result["findings"] = findings(self.call("lint", binary, "lint", trace))
        said = [replayed(self.call("replay", binary, "replay", trace, "--level", "acl", ACLTAPE_SOFT_JITTER=str(seed)))
                for seed in range(1, self.options.replays + 1)]
        result["replay"] = next((one for one in said if one != "equal"), "equal")


# The program says by which bound results are near where that is not a feature's.
VERDICTS = {"log-probabilities within": "near", "vectors within": "near"}


def figures(said):
    """What the program printed."""
    up = re.search(r"^up after ([\d.]+) s", said, re.M)
    made = re.findall(r"^generated (\d+) tokens in ([\d.]+) s", said, re.M)
    verdict = re.findall(r"^(equal|near|different|log-probabilities within|vectors within)\b", said, re.M)
    return {"up": float(up.group(1)) if up else None, "count": sum(int(count) for count, _ in made),
            "seconds_of_tokens": round(sum(float(seconds) for _, seconds in made), 2),
            "tokens": re.findall(r"^\d+ tokens, then (.*)$", said, re.M),
            "verdict": VERDICTS.get(verdict[-1], verdict[-1]) if verdict else "failed"}


def findings(said):
    """How many findings of which rule lint has."""
    if "no findings" in said:
        return "none"
    rules = re.findall(r"\b(LINT-\d+)\b", said)
    if not rules:
        return "failed"
    return ", ".join(f"{rule} {rules.count(rule)}" for rule in sorted(set(rules)))


def replayed(said):
    if "equal bit for bit: all" in said:
        return "equal"
    differ = re.search(r"different: [^\n]*", said)
    if differ:
        return differ.group(0)[:80] + (", with work left out (ACL-LEFT-OUT)" if "ACL-LEFT-OUT" in said else "")
    last = [line for line in said.splitlines() if line.strip()]
    return last[-1][:80] if last else "failed"


def not_offered(folder):
    """The names that the rows of a folder called although the soft device does not offer them."""
    names = set()
    for file in glob.glob(os.path.join(folder, "*.log")):
        with open(file, encoding="utf-8", errors="replace") as log:
            names.update(re.findall(r"acltape: (.+?)(?: with .*)? is not offered by the soft device", log.read()))
    return sorted(names)


HEADER = ["model", "feature", "mode", "process", "tokens", "up, s", "ms per token", "recorded ratio", "lint", "replay"]


def cells(result, first_tokens):
    """A result as cells. Rows of one model and feature must have the same tokens, whatever the mode."""
    verdict = result.get("verdict", "no time left")
    key = (result["model"], result["feature"])
    if result.get("tokens"):
        verdict += "" if first_tokens.setdefault(key, result["tokens"]) == result["tokens"] else ", other than above"
    if result.get("recorded_verdict", verdict) not in ("equal", "near"):
        verdict += f"; recorded: {result['recorded_verdict']}" if "recorded_verdict" in result else ""
    count = result.get("count")
    per_token = f"{1000 * result['seconds_of_tokens'] / count:.0f}" if count else ""
    late = f"no time left for {result['expired']}" if "expired" in result else ""
    return [*(result[axis] for axis in AXES), verdict, f"{result['up']:.0f}" if result.get("up") else "", per_token,
            str(result.get("ratio", "")), result.get("findings", ""), result.get("replay", late)]


def markdown(results):
    first_tokens = {}
    lines = [HEADER, ["---"] * len(HEADER), *(cells(result, first_tokens) for result in results)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def parsed():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--list", action="store_true", help="prints the rows, and what is left out and why")
    parser.add_argument("--rows", help="only rows that have all of these values: llama,eager")
    parser.add_argument("--output", default="vllm_table", help="folder of results and logs")
    parser.add_argument("--markdown", help="file to which the table is written too")
    parser.add_argument("--replays", type=int, default=1, help="replays of each trace, each under another jitter")
    parser.add_argument("--limit", type=float, default=420, help="seconds for a row")
    parser.add_argument("--time", type=float, default=float("inf"), help="seconds after which no row is begun")
    parser.add_argument("--keep-traces", action="store_true")
    parser.add_argument("--binary", default=os.environ.get("ACLTAPE_BINARY", "acltape"))
    parser.add_argument("--python", default=os.environ.get("ACLTAPE_VLLM_PYTHON"))
    return parser.parse_args()


def main():
    options = parsed()
    axes = choices()
    chosen, covered, wanted = chosen_rows(axes)
    parts = set(options.rows.split(",")) if options.rows else set()
    rows = [Row(values, options) for values in chosen if parts <= set(values)]
    if options.list:
        for place, row in enumerate(rows):
            print(place + 1, *row.values.values())
        print(f"{len(rows)} rows; of {wanted} possible pairs {covered} are among the {len(chosen)} rows of the table")
        for why in dict.fromkeys(filter(None, map(reason, itertools.product(*axes)))):
            print("left out:", why)
        return
    if not options.python:
        sys.exit("ACLTAPE_VLLM_PYTHON or --python must name an interpreter with vLLM")
    os.makedirs(options.output, exist_ok=True)
    begin = time.monotonic()
    for place, row in enumerate(rows):
        elapsed = time.monotonic() - begin
        if row.result() is None and elapsed < options.time:
            print(f"[{place + 1}/{len(rows)}, {elapsed:.0f} s] {row.name}", flush=True)
            row.run()
    table = markdown([result for result in (row.result() for row in rows) if result])
    print(table)
    print("called, and not offered by the soft device:", ", ".join(not_offered(options.output)) or "nothing")
    if options.markdown:
        with open(options.markdown, "w", encoding="utf-8") as file:
            file.write(table)


if __name__ == "__main__":
    main()
