"""replay under a precision standard and with a noise floor; the list of standards."""
import json
import os
import sqlite3
import subprocess

from harness import BINARY, TORCH_PYTHON, CommandTest, main

# Steps with a matrix product each, all of the same shapes.
PRODUCTS = """
import torch
torch.manual_seed(0)
x = torch.randn(16, 16)
weights = [torch.randn(16, 16) / 4 for _ in range(4)]
for step in range(10):
    torch.autograd.profiler.record_function("step").__enter__()
    y = x + step
    for w in weights:
        y = torch.relu(torch.mm(y, w)) + x
    y.sum().item()
"""
FLAKY = "aclnnMm p=0.3 seed=7 flip=5"


class Precision(CommandTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.trace = os.path.join(cls.folder, "products.db")
        script = os.path.join(cls.folder, "products.py")
        with open(script, "w") as file:
            file.write(PRODUCTS)
        subprocess.run([BINARY, "record", "-o", cls.trace, "--payload", "all", "--", TORCH_PYTHON,
                        script], check=True, capture_output=True)

    def replay(self, *words, faults="", code=0):
        environment = dict(os.environ, ACLTAPE_SOFT_FAULTS=faults)
        report = self.json("replay", self.trace, *words, code=code, env=environment)
        report["summary"] = {row["quantity"].strip(): row["value"] for row in report["summary"]}
        return report

    def test_a_flaky_kernel_has_a_rate_and_is_no_mismatch_of_the_capture(self):
        for mode in ("eager", "captured"):
            report = self.replay("--mode", mode, "--noise-runs", "5", faults=FLAKY)
            summary = report["summary"]
            self.assertEqual(summary["outputs different"], 0, report)
            self.assertGreater(summary["outputs that differ by noise"], 0, report)
            self.assertIn("the reference itself is flaky", summary["verdict"])
            [flaky] = report["flaky_operators"]
            self.assertEqual(flaky["op"], "aten::mm")
            self.assertEqual(flaky["max_ulp"], 32)  # bit 5
            self.assertGreater(flaky["executions"], 50)
            self.assertAlmostEqual(flaky["rate"], 0.3, delta=0.12)
        with sqlite3.connect(self.trace) as trace:
            verdicts = {row[0] for row in trace.execute("SELECT verdict FROM comparison")}
            finding = trace.execute("SELECT message, evidence FROM finding "
                                    "WHERE rule = 'REPLAY-FLAKY'").fetchone()
        self.assertIn("noise", verdicts)
        self.assertIn("aten::mm gives different results for the same inputs", finding[0])
        self.assertGreater(json.loads(finding[1])[0]["rate"], 0.1)

    def test_without_a_noise_floor_the_same_kernel_is_a_mismatch(self):
        summary = self.replay("--mode", "captured", faults=FLAKY, code=1)["summary"]
        self.assertGreater(summary["outputs different"], 0)

    def test_a_difference_above_the_floor_is_still_a_mismatch(self):
        # Bit 29 of the product of a run after the five of the reference: 40 products a run.
        report = self.replay("--mode", "captured", "--inputs", "golden", "--noise-runs", "5",
                             faults=FLAKY + ";aclnnRelu #210 flip=29", code=1)
        calls = {row["op"] for row in report["differences"]}
        self.assertIn("aten::relu", calls, report)
        self.assertEqual([row["op"] for row in report["flaky_operators"]], ["aten::mm"])
        command = report["summary"]["reproduce"]
        self.assertIn("--noise-runs 5", command)
        result = self.reproduces(command)
        self.assertIn("aten::relu", result.out, result)

    def test_a_clean_device_has_no_noise(self):
        report = self.replay("--mode", "captured", "--noise-runs", "3")
        self.assertEqual(report["flaky_operators"], [])
        self.assertIn("equal bit for bit: all", report["summary"]["verdict"])

    def test_a_standard_judges_what_bits_refuse(self):
        fault = "aclnnMm #7 flip=1"
        summary = self.replay("--inputs", "golden", faults=fault, code=1)["summary"]
        self.assertEqual(summary["outputs different"], 1)
        for standard in ("ulp-matmul", "msprobe-compare", "ggml", "ascend"):
            report = self.replay("--inputs", "golden", "--standard", standard, faults=fault)
            self.assertEqual(report["summary"][f"outputs within {standard}"], 1, report)
            self.assertIn(f"1 within {standard}", report["summary"]["verdict"])

    def test_a_refusal_names_the_rule_and_the_command_shows_it_again(self):
        report = self.replay("--standard", "ascend", "--inputs", "golden",
                             faults="aclnnRelu #7 flip=29", code=1)
        [row] = report["differences"]
        self.assertRegex(row["difference"], r"max_\w+ [0-9.e+-]+ > [0-9.e+-]+ \(float32, copy\)")
        command = report["summary"]["reproduce"]
        self.assertIn("--standard ascend", command)
        result = self.reproduces(command)
        self.assertIn(row["difference"], result.out, result)

    def test_a_standard_of_ones_own(self):
        path = self.path("mine.json")
        with open(path, "w") as file:
            json.dump({"version": 1, "standards": [{"name": "mine", "rules": [
                {"op_class": "matmul", "dtype": "float32", "metric": "max_ulp", "at_most": 2,
                 "source": "this test"}]}]}, file)
        fault = "aclnnMm #7 flip={}"
        self.replay("--inputs", "golden", "--standard", path, faults=fault.format(1))
        self.replay("--inputs", "golden", "--standard", path, faults=fault.format(2), code=1)

    def test_bad_input_gets_one_sentence(self):
        self.assertSentence(self.acltape("replay", self.trace, "--standard", "asscend", code=2),
                            "asscend is neither a precision standard", "ascend, binary-equal")
        path = self.path("bad.json")
        with open(path, "w") as file:
            file.write('{"version": 1, "standards": [{"name": "x"}]}')
        for command in (["replay", self.trace, "--standard", path], ["standards", path]):
            self.assertSentence(self.acltape(*command, code=2), "bad.json",
                                'standards[0] lacks "rules"')
        self.assertSentence(self.acltape("replay", self.trace, "--noise-runs", "1", code=2),
                            "one run of the reference shows no noise")

    def test_the_list_of_standards(self):
        listed = self.json("standards")["standards"]
        names = [row["standard"] for row in listed]
        self.assertEqual(names[:2], ["bitwise", "ascend"])
        for name in names[1:]:
            rules = self.json("standards", name)["rules"]
            self.assertGreater(len(rules), 0, name)
            for rule in rules:
                self.assertTrue(rule["source"], rule)
        self.assertIn("max_ulp", self.acltape("standards", "--metrics").out)


if __name__ == "__main__":
    main()
