#!/usr/bin/env python3
"""The names that vLLM's plug-in for Ascend devices needs from a toolkit, and who defines them.

The environment names what is tested: ACLTAPE_BINARY (the executable) and ACLTAPE_VLLM_PYTHON (an
interpreter with vLLM, see scripts/vllm-python). Without the second one the test is skipped (code 77).
"""
import json
import os
import subprocess
import sys
import unittest

PYTHON = os.environ.get("ACLTAPE_VLLM_PYTHON")
BINARY = os.environ.get("ACLTAPE_BINARY", "acltape")


class Names(unittest.TestCase):
    def test_none_of_the_plug_in_and_its_adapter_is_left(self):
        done = subprocess.run([BINARY, "env", "--check", "--format", "json", PYTHON],
                              capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        rows = {row["library"].split("/")[-1].split(".")[0]: row for row in json.loads(done.stdout)}
        for library in ("vllm_ascend_C", "libvllm_ascend_kernels", "libop_plugin_atb", "libtorch_npu"):
            self.assertEqual(rows[library]["unresolved"], 0, rows[library])
            self.assertEqual(rows[library]["needed"], rows[library]["exported"] + rows[library]["generated"])


if __name__ == "__main__":
    if not PYTHON:
        print("ACLTAPE_VLLM_PYTHON names no interpreter with vLLM; skipped")
        sys.exit(77)
    unittest.main(verbosity=2)
