#!/usr/bin/env python3
"""The names of HCCL that torch_npu looks up, held against the table of docs/soft_device.md."""
import ctypes
import glob
import os
import re
import subprocess

import harness

PAGE = os.path.join(harness.SOURCE, "docs", "soft_device.md")
# What torch_npu's libraries hold besides names of functions: how it names its tasks, and its own wrappers.
TASKS = {"HcclAllgather", "HcclAllgatherBase", "HcclAllgatherTogather", "HcclAllreduce", "HcclReduceScatterBase",
         "HcclCommList"}


def rows_of_table():
    """(names, version from which torch_npu asks for them, what the soft device has) of each row."""
    with open(PAGE) as file:
        section = file.read().split("### Names that torch_npu looks up")[1].split("\n## ")[0]
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("| `"):
            yield re.findall(r"`(\w+)`", cells[0]), cells[1].removeprefix("from "), cells[2]


def names_asked_for(python):
    """torch_npu's version, and the names in its libraries that look like functions of HCCL."""
    folder, version = subprocess.run(
        [python, "-c", "import importlib.metadata as m; d = m.distribution('torch_npu'); "
         "print(d.locate_file('torch_npu')); print(d.version)"],
        capture_output=True, text=True, check=True).stdout.split()
    found = set()
    for library in glob.glob(f"{folder}/**/*.so", recursive=True):
        with open(library, "rb") as file:
            found |= {name.decode() for name in re.findall(rb"\0(H(?:ccl|comm)[A-Z]\w*)(?=\0)", file.read())}
    return version, {name for name in found - TASKS if not name.endswith(("Face", "_SendRecv"))}


class HcclNames(harness.NpuTest):
    def test_every_name_that_torch_npu_looks_up_has_a_row(self):
        rows = list(rows_of_table())
        pythons = [python for python in (harness.PYTHON, os.environ.get("ACLTAPE_VLLM_PYTHON")) if python]
        for python in pythons:
            version, asked = names_asked_for(python)
            release = [int(part) for part in version.split(".")[:2]]
            wanted = {name for names, since, _ in rows for name in names
                      if [int(part) for part in since.split(".")] <= release}
            self.assertGreater(len(asked), 30)
            self.assertEqual(asked, wanted, f"torch_npu {version}")

    def test_the_soft_device_has_what_the_table_says(self):
        folder = os.path.join(os.path.dirname(os.path.dirname(harness.BINARY)), "sdk", "lib64")
        ctypes.CDLL(f"{folder}/libascendcl.so", mode=ctypes.RTLD_GLOBAL)
        libraries = [ctypes.CDLL(f"{folder}/{name}") for name in ("libhccl.so", "libhcomm.so")]
        for names, _, here in rows_of_table():
            self.assertRegex(here, "^(offered|not there)")
            for name in names:
                offered = [hasattr(library, name) for library in libraries]
                if here.startswith("offered, in `libhcomm.so`"):
                    self.assertEqual(offered, [False, True], name)
                else:
                    # libhcomm.so brings libhccl.so along.
                    self.assertEqual(offered[0], here.startswith("offered"), name)


if __name__ == "__main__":
    harness.main()
