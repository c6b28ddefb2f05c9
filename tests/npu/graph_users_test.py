#!/usr/bin/env python3
"""Programs whose graphs an inference engine or a framework makes: replays keep their order, and lint accuses none."""
import json
import os

import harness

# A kernel that begins late shows what should have waited for it.
LATE = {"ACLTAPE_SOFT_FAULTS": "aclnnIndexSelect delay=3ms"}


class GraphUsers(harness.NpuTest):
    def recorded(self, *words, options=()):
        trace = os.path.join(self.folder, "t.db")
        program = os.path.join(harness.PROGRAMS, words[0])
        self.call(harness.BINARY, "record", "--soft", "--force", "--payload", "all", *options, "-o", trace, "--",
                  harness.PYTHON, program, *words[1:])
        return trace

    def findings(self, trace):
        """All but LINT-40: these programs read a result of each step."""
        done = self.call(harness.BINARY, "lint", trace, "--format", "json", "--fail-on", "never")
        return [finding for finding in json.loads(done.stdout)["findings"]
                if finding["severity"] != "info" and finding["rule"] != "LINT-40"]

    def test_updated_graphs_over_shared_buffers_replay_equal_however_late_kernels_are(self):
        trace = self.recorded("full_decode.py", options=["--start-closed"])
        for mode in ("eager", "captured"):
            for environment in (LATE, {"ACLTAPE_SOFT_JITTER": "7"}):
                with self.subTest(mode=mode, **environment):
                    done = self.call(harness.BINARY, "replay", trace, "--level", "acl", "--mode", mode,
                                     environment=environment)
                    self.assertIn("equal bit for bit", done.stdout)
        self.assertEqual(self.findings(trace), [])

    def test_graphs_of_compilers_have_no_finding(self):
        for words in (["compiled_graphs.py"], ["compiled_graphs.py", "torchair"]):
            with self.subTest(words=words):
                self.assertEqual(self.findings(self.recorded(*words)), [])


if __name__ == "__main__":
    harness.main()
