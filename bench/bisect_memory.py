#!/usr/bin/env python3
"""How much memory does a bisection of a large trace take?

Records a program whose values fill the asked number of bytes, plants a stale input, bisects it, and
prints the greatest resident memory of the process next to what it may be: the cache of contents
(512 MiB) and, on the soft device, whose memory is the process's own, what the step itself holds.
"""
import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile

SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MIB = 1 << 20
CACHE = 512 * MIB
BUFFERS = 10  # of a step: eight results, the weight, the input

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
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        result = subprocess.run([acltape, "bisect", trace, "--plant", f"stale_input@{call}",
                                 "--format", "json"], capture_output=True, text=True)
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
        if result.returncode != 1:
            sys.exit(f"the bisection ended with {result.returncode}: {result.stderr}")
        if peak == before * 1024:
            print("recording took more memory than bisecting; the figure is its own")
        summary = {row["quantity"].strip(): row["value"]
                   for row in json.loads(result.stdout)["summary"]}
        # Homes, the graph's memory, a backup and the inputs of both steps.
        limit = CACHE + 4 * BUFFERS * tensor
        print(f"values kept                {kept / MIB:8.0f} MiB in {steps} steps")
        print(f"greatest resident memory   {peak / MIB:8.0f} MiB")
        print(f"limit                      {limit / MIB:8.0f} MiB: contents {CACHE / MIB:.0f}, step "
              f"{4 * BUFFERS * tensor / MIB:.0f}")
        print(f"verdict                    {summary['verdict']}")
        return 0 if peak <= limit else 1


if __name__ == "__main__":
    sys.exit(main())
