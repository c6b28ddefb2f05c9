"""Replays recorded PyTorch programs: every result must equal PyTorch's own bit for bit."""
import os
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(FOLDER), "cli"))
import harness  # noqa: E402

# Operators of programs/operators.py that the soft device has no kernel for, or that have no rule
# because their result has a shape that only the values tell.
MAY_BE_SUBSTITUTED = {
    "aten::_unique2", "aten::adaptive_max_pool2d", "aten::bucketize.Tensor", "aten::celu",
    "aten::elu_backward", "aten::glu_backward", "aten::hardswish_backward", "aten::linalg_cross",
    "aten::log_sigmoid_backward", "aten::log_sigmoid_forward", "aten::logaddexp",
    "aten::masked_select", "aten::median.dim", "aten::nonzero", "aten::prelu",
    "aten::repeat_interleave.Tensor", "aten::trace", "aten::upsample_bilinear2d.vec",
    "aten::upsample_nearest2d.vec", "aten::xlogy.Tensor",
}


class RecordedPrograms(harness.CommandTest):
    def replay(self, name, mode, payload="all", code=0):
        trace = self.path(f"{name}_{payload}.db")
        if not os.path.exists(trace):
            self.record(trace, harness.TORCH_PYTHON,
                        os.path.join(FOLDER, "programs", name + ".py"), payload=payload)
        report = self.json("replay", trace, "--mode", mode, code=code)
        summary = {row["quantity"].strip(): row["value"] for row in report["summary"]}
        return summary, report

    def assertEqualBits(self, summary, least):
        self.assertEqual(summary["outputs different"], 0, summary)
        self.assertGreaterEqual(summary["outputs compared"], least, summary)
        self.assertEqual(summary["outputs equal"], summary["outputs compared"], summary)

    def test_every_operator_with_a_rule_gives_the_bits_of_pytorch(self):
        summary, report = self.replay("operators", "eager")
        self.assertEqualBits(summary, 1000)
        replaced = {row["message"].split()[0] for row in report["notes"]
                    if row["rule"] == "LOWER-SUBSTITUTED"}
        self.assertLessEqual(replaced, MAY_BE_SUBSTITUTED)

    def test_recurrent_state_passes_between_captured_steps(self):
        for mode in ("eager", "captured"):
            summary, _ = self.replay("recurrent", mode)
            self.assertEqualBits(summary, 600)
            self.assertEqual(summary["substituted by recorded outputs"], 0)
        self.assertEqual(summary["steps run captured"], 5)

    def test_transformer_training_on_slices_of_one_tensor(self):
        for mode in ("eager", "captured"):
            summary, _ = self.replay("transformer_training", mode)
            self.assertEqualBits(summary, 900)
        self.assertEqual(summary["steps run captured"], 4)

    def test_adam_has_its_step_sizes_updated_in_the_graphs(self):
        for mode in ("eager", "captured"):
            summary, _ = self.replay("adam_training", mode)
            self.assertEqualBits(summary, 600)
        self.assertEqual(summary["steps run captured"], 4)
        self.assertEqual(summary["updated in the graphs"], 10)  # addcdiv_ of each parameter

    def test_inputs_alone_prove_captured_against_eager(self):
        summary, _ = self.replay("recurrent", "captured", payload="inputs")
        self.assertEqualBits(summary, 600)
        self.assertEqual(summary["outputs without a reference"], 0)


if __name__ == "__main__":
    harness.main()
