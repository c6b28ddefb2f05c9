#!/usr/bin/env python3
"""`vllm serve` is recorded while a client asks it, and its trace is linted and replayed.

ACLTAPE_VLLM_PYTHON names an interpreter with vLLM and its plug-in (scripts/vllm-python); it has its kit.
"""
import os
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

SKIPPED = 77
BINARY = os.environ["ACLTAPE_BINARY"]
PYTHON = os.environ.get("ACLTAPE_VLLM_PYTHON", "")
WORKLOADS = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench", "workloads"))
GRAPHS = '{"cudagraph_mode": "FULL_DECODE_ONLY", "cudagraph_capture_sizes": [1, 2, 4]}'


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


class Serve(unittest.TestCase):
    def setUp(self):
        self.environment = {**os.environ, "ACLTAPE_TRITON_ON_HOST": "1", "VLLM_NO_USAGE_STATS": "1"}
        folder = tempfile.TemporaryDirectory(prefix="vllm_serve_")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def call(self, *words):
        done = subprocess.run(words, capture_output=True, text=True, timeout=600, env=self.environment)
        self.assertEqual(done.returncode, 0, f"\n$ {' '.join(words)}\n{done.stdout}{done.stderr}")
        return done.stdout

    def test_a_served_request_is_recorded_and_replays_bit_for_bit(self):
        model = os.path.join(self.folder, "model")
        trace = os.path.join(self.folder, "t.db")
        self.call(BINARY, "run", "--", PYTHON, os.path.join(WORKLOADS, "vllm_model.py"), model)
        port = str(free_port())
        with open(os.path.join(self.folder, "log"), "w+", encoding="utf-8") as log:
            server = subprocess.Popen(
                [BINARY, "record", "--soft", "--payload", "all", "-o", trace, "--", PYTHON, "-m",
                 "vllm.entrypoints.cli.main", "serve", model, "--host", "127.0.0.1", "--port", port,
                 "--dtype", "float16", "--max-model-len", "256", "--max-num-seqs", "4", "--gpu-memory-utilization",
                 "0.02", "--num-gpu-blocks-override", "32", "--compilation-config", GRAPHS],
                stdout=log, stderr=log, env=self.environment)
            try:
                said = self.call(PYTHON, os.path.join(WORKLOADS, "vllm_ask.py"), model, "--port", port, "--pid",
                                 str(server.pid))
            finally:
                server.send_signal(signal.SIGTERM)
                code = server.wait(timeout=120)
            log.seek(0)
            self.assertEqual(code, 0, log.read())
        self.assertEqual(said.count(": equal"), 3, said)
        self.assertIn("no findings", self.call(BINARY, "lint", trace))
        for mode in ("eager", "captured"):
            self.assertIn("equal bit for bit: all",
                          self.call(BINARY, "replay", trace, "--level", "acl", "--mode", mode))


if __name__ == "__main__":
    if not PYTHON:
        print("ACLTAPE_VLLM_PYTHON names no interpreter; skipped")
        sys.exit(SKIPPED)
    unittest.main(verbosity=2)
