#!/usr/bin/env python3
"""What recording adds to a token that vLLM generates with its Ascend plug-in, on the soft device.

    bench/vllm_cost.py --modes eager FULL_DECODE_ONLY --rounds 3 --tokens 128

Each round generates with a small Llama (tests/vllm/programs/offline.py), first without a recording and then
with each kind of values kept, and takes the ratio of the times of generating within the round. So what else
the machine does lies in both. Prints for each mode and kind the median of the rounds and, in brackets, the
least and the greatest one. The engine's start and the capture of its graphs are not in these times. A
recording must not change the tokens.

ACLTAPE_BINARY and ACLTAPE_VLLM_PYTHON are as in tests/vllm; `scripts/vllm-python` makes the interpreter.
"""
import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BINARY = os.environ.get("ACLTAPE_BINARY", os.path.join(ROOT, "build", "bin", "acltape"))
PYTHON = os.environ.get("ACLTAPE_VLLM_PYTHON", os.path.join(ROOT, "build", "venv-vllm-0.23.0", "bin", "python3"))
PROGRAM = os.path.join(ROOT, "tests", "vllm", "programs", "offline.py")
MODES = ("eager", "PIECEWISE", "FULL_DECODE_ONLY", "FULL_AND_PIECEWISE", "FULL")
PAYLOADS = ("none", "digest", "inputs", "all")


class Run:
    """What a run of the program took and gave."""

    def __init__(self, words, program):
        done = subprocess.run([BINARY, *words, "--", PYTHON, PROGRAM, *program], capture_output=True, text=True)
        self.told = f"$ {' '.join(done.args)}\n{done.stdout}{done.stderr}"
        time = re.search(r"^generated (\d+) tokens in ([\d.]+) s$", done.stdout, re.MULTILINE)
        if time is None:
            sys.exit(self.told)
        self.ms_per_token = 1000 * float(time[2]) / int(time[1])
        self.tokens = re.findall(r"^\d+ tokens, then \[.*\]$", done.stdout, re.MULTILINE)

    def over(self, plain):
        """The ratio of the times; both must have generated the same tokens."""
        if self.tokens != plain.tokens:
            sys.exit(f"{plain.told}\n{self.told}\nthe tokens differ")
        return self.ms_per_token / plain.ms_per_token


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--modes", nargs="+", choices=MODES, default=["eager", "FULL_DECODE_ONLY"])
    parser.add_argument("--payloads", nargs="+", choices=PAYLOADS, default=["none", "inputs"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=128, help="generated after each of three prompts")
    options = parser.parse_args()
    print("| mode | ms per token, not recorded | " + " | ".join(f"`--payload {each}`" for each in options.payloads)
          + " |\n|" + "---|" * (2 + len(options.payloads)))
    with tempfile.TemporaryDirectory(prefix="acltape_vllm_cost_") as folder:
        for mode in options.modes:
            program = ["--one-process", "--mode", mode, "--tokens", str(options.tokens)]
            plain, ratios = [], {each: [] for each in options.payloads}
            for _ in range(options.rounds):
                plain.append(Run(["run"], program))
                for payload, found in ratios.items():
                    words = ["record", "--soft", "--force", "--quiet", "--payload", payload, "-o",
                             os.path.join(folder, "t.db")]
                    found.append(Run(words, program).over(plain[-1]))
            cells = [f"{statistics.median(found):.2f} [{min(found):.2f}, {max(found):.2f}]"
                     for found in ratios.values()]
            median = statistics.median(run.ms_per_token for run in plain)
            print(f"| {mode} | {median:.1f} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
