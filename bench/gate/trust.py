#!/usr/bin/env python3
"""Records one program many times on a loaded machine and asks a gate about each recording, then about ten changes.

    bench/gate/trust.py --device cpu --recordings 20
    bench/gate/trust.py --device npu --python .venv/bin/python3 --recordings 20

The recordings differ in their numbers of steps and, on the CPU, of workers. Exit code 0 when no recording of the
unchanged program differs from the baseline and every change is found.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

from plants import PLANTS

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BINARY = os.environ.get("ACLTAPE_BINARY", os.path.join(SOURCE, "build", "bin", "acltape"))
BUSY = "while True: pass"


class Load:
    """Processes that keep the processors busy."""

    def __init__(self, number):
        self.number = number

    def __enter__(self):
        self.processes = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(self.number)]

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()


class Gate:
    def __init__(self, device, python, folder):
        self.device, self.python, self.folder = device, python, folder
        self.baseline = os.path.join(folder, "gate.json")

    def record(self, name, *options):
        trace = os.path.join(self.folder, f"{name}.db")
        soft = ["--soft"] if self.device == "npu" else []
        environment = {**os.environ, "PYTHONPATH": os.path.join(SOURCE, "python")}
        if self.device == "cpu":
            environment["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
        self.run("record", *soft, "--quiet", "--payload", "none", "--force", "-o", trace, "--", self.python,
                 os.path.join(SOURCE, "bench", "gate", "program.py"), "--device", self.device, *options,
                 environment=environment)
        return trace

    def run(self, *words, codes=(0,), environment=None):
        done = subprocess.run([BINARY, *words], capture_output=True, text=True, env=environment)
        if done.returncode not in codes:
            raise SystemExit(f"$ acltape {' '.join(words)}\nexit code {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def write_baseline(self, trace):
        self.run("gate", trace, "--write-baseline", self.baseline)

    def ask(self, trace):
        """The exit code, and what is not equal."""
        done = self.run("gate", trace, "--baseline", self.baseline, "--format", "json", codes=(0, 1, 125))
        return done.returncode, [row for row in json.loads(done.stdout)["changes"] if row["verdict"] != "equal"]


def shown(rows):
    return ", ".join(f"{row['measure']} {row['baseline']:g} -> {row['now']:g}" if row["baseline"] is not None and
                     row["now"] is not None else f"{row['measure']} ({row['verdict']})" for row in rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=sorted(PLANTS), default="cpu")
    parser.add_argument("--python", default=sys.executable, help="an interpreter that imports torch (and torch_npu)")
    parser.add_argument("--recordings", type=int, default=20)
    parser.add_argument("--load", type=int, default=os.cpu_count(), help="busy processes beside the recordings")
    parser.add_argument("--plants", help="the changes to plant, separated by commas (default: all ten)")
    options = parser.parse_args()
    plants = options.plants.split(",") if options.plants else PLANTS[options.device]
    false, missed = 0, 0
    with tempfile.TemporaryDirectory(prefix="acltape_gate_") as folder, Load(options.load):
        gate = Gate(options.device, options.python, folder)
        gate.write_baseline(gate.record("first"))
        for number in range(options.recordings):
            steps, workers = 8 + number % 3, 1 + number % 4
            code, rows = gate.ask(gate.record("again", "--steps", str(steps), "--workers", str(workers)))
            false += code != 0
            workers = f", {workers} workers" if options.device == "cpu" else ""
            print(f"recording {number + 1:2} ({steps} steps{workers}): code {code} {shown(rows)}", flush=True)
        for plant in plants:
            code, rows = gate.ask(gate.record("planted", "--plant", plant))
            missed += code != 1
            print(f"planted {plant}: code {code} {shown(rows[:4])}", flush=True)
    print(f"{options.recordings} recordings of the unchanged program: {false} false; {len(plants)} planted changes: "
          f"{len(plants) - missed} found")
    return 1 if false or missed else 0


if __name__ == "__main__":
    sys.exit(main())
