#!/usr/bin/env python3
"""Measures the memory that a bisection of a large trace takes.

Records a program whose values fill the asked number of bytes, plants a stale input, bisects it with
each of the asked bounds, and prints the greatest resident memory of the process next to what it may
be: the contents that `bisect --memory` lets it keep; on the soft device, whose memory is the
process's own, what the step itself holds; and the libraries with which the soft device computes.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MIB = 1 << 20
LIBRARIES = 256 * MIB  # libtorch
BUFFERS = 10  # buffers of a step: eight results, the weight, the input

PROGRAM = """
import torch
torch.manual_seed(0)
rows = {rows}
weight = torch.randn(rows, 2048)
for step in range({steps}):
    x = torch.randn(rows, 2048)
    h = x * weight
    h = torch.add(h, x)
    h = torch.relu(h)
    h = torch.sub(h, weight)
    h = torch.tanh(h)
    h = torch.add(h, x)
    h = torch.mul(h, 0.5)
    total = h.sum().item()
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=os.path.join(SOURCE, "build"))
    parser.add_argument("--python", default=os.environ.get("ACLTAPE_PYTHON", "/usr/bin/python3"))
    parser.add_argument("--gigabytes", type=float, default=2, help="of recorded values")
    parser.add_argument("--tensor-mib", type=int, default=32)
    parser.add_argument("--memory", type=int, nargs="+", default=[512, 64], metavar="MIB",
                        help="contents that bisect keeps")
    arguments = parser.parse_args()
    acltape = os.path.join(arguments.build, "bin", "acltape")
    tensor = arguments.tensor_mib * MIB
    steps = max(3, round(arguments.gigabytes * 2**30 / (8 * tensor)))
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "program.py")
        with open(program, "w") as file:
            file.write(PROGRAM.format(rows=tensor // 4 // 2048, steps=steps))
        trace = os.path.join(folder, "t.db")
        subprocess.run([acltape, "record", "-o", trace, "--payload", "all", "--", arguments.python,
                        program], check=True, capture_output=True)

        def query(sql):
            return json.loads(subprocess.run([acltape, "query", trace, sql, "--format", "json"],
                                             check=True, capture_output=True, text=True).stdout)

        kept = query("select sum(bytes) as bytes from payload")[0]["bytes"]
        call = query("select min(call_id) as call from call where op = 'aten::mul.Tensor' and "
                     "step = 0")[0]["call"]
        # Homes, the graph's memory, a backup and the inputs of both steps.
        step = 4 * BUFFERS * tensor
        print(f"values kept: {kept / MIB:.0f} MiB in {steps} steps; the step may hold "
              f"{step / MIB:.0f} MiB, libraries {LIBRARIES / MIB:.0f} MiB")
        print("--memory MiB  limit MiB  resident MiB  seconds  verdict")
        within = True
        for memory in arguments.memory:
            command = [acltape, "bisect", trace, "--plant", f"stale_input@{call}", "--no-journal",
                       "--memory", f"{memory}M", "--format", "json"]
            begin = time.monotonic()
            with open(os.path.join(folder, "report.json"), "w+") as report:
                process = subprocess.Popen(command, stdout=report)
                _, status, usage = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
                if process.returncode != 1:
                    sys.exit(f"the bisection ended with {process.returncode}")
                report.seek(0)
                summary = {row["quantity"].strip(): row["value"]
                           for row in json.load(report)["summary"]}
            peak, limit = usage.ru_maxrss * 1024, memory * MIB + step + LIBRARIES
            within = within and peak <= limit
            print(f"{memory:12} {limit / MIB:10.0f} {peak / MIB:13.0f} "
                  f"{time.monotonic() - begin:8.1f}  {summary['verdict']}")
        return 0 if within else 1


if __name__ == "__main__":
    sys.exit(main())
