#!/usr/bin/env python3
"""Kits, end to end: a program's libtorch gets what was built for it, or nothing enters the process."""
import os
import shutil
import sqlite3
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "cli"))
from harness import BINARY, TORCH_PYTHON, WORKLOADS, CommandTest, main, run  # noqa: E402

TORCH2_PYTHON = os.environ.get("ACLTAPE_TORCH2_PYTHON", "")
BUILD = os.path.dirname(os.path.dirname(os.path.abspath(BINARY)))
KITS = os.path.join(BUILD, "sdk", "lib64", "kits")
PROGRAM = """
import torch
x = torch.ones(2, 3)
print((x @ x.t()).sum().item())
"""

# Every fused step that an operator of the device has.
OPTIMIZERS = """
import torch
kinds = [(torch.optim.AdamW, {}), (torch.optim.AdamW, {"amsgrad": True, "maximize": True}), (torch.optim.Adam, {}),
         (torch.optim.Adam, {"weight_decay": 0.1}), (torch.optim.SGD, {}),
         (torch.optim.SGD, {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1})]
weights = [[torch.randn(37, 9, requires_grad=True), torch.randn(9, requires_grad=True)] for _ in kinds]
weights[0].append(torch.randn(4, 3, 2, 2).to(memory_format=torch.channels_last).requires_grad_())
optimizers = [kind(own, lr=0.01, fused=True, **options) for (kind, options), own in zip(kinds, weights)]
for step in range(4):
    with torch.profiler.record_function("step"):
        for own, optimizer in zip(weights, optimizers):
            optimizer.zero_grad()
            sum(weight.square().sum() for weight in own).backward()
            optimizer.step()
"""


class KitTest(CommandTest):
    @classmethod
    def setUpClass(cls):
        # Below the build folder, where the compiler cache takes paths as relative (scripts/common.sh).
        cls.folder = tempfile.mkdtemp(prefix="acltape_kits_", dir=os.path.join(BUILD, "tests", "kit"))

    def copied_build(self, kits=None):
        """acltape with these kits in place of its own; none: as where it was built without."""
        copy = self.path("build")
        for part in ("bin", "lib", "sdk/lib64"):
            os.makedirs(os.path.join(copy, part))
        shutil.copy(BINARY, os.path.join(copy, "bin", "acltape"))
        for name in ("libacltape_agent.so", "libacltape_acl_agent.so"):
            shutil.copy(os.path.join(BUILD, "lib", name), os.path.join(copy, "lib", name))
        if kits is not None:
            shutil.copytree(kits, os.path.join(copy, "sdk", "lib64", "kits"))
        return os.path.join(copy, "bin", "acltape")

    def ledger(self, trace):
        with sqlite3.connect(trace) as database:
            return dict(database.execute("SELECT kind, subject FROM ledger"))

    def leaves(self, trace):
        with sqlite3.connect(trace) as database:
            return database.execute("SELECT count(*) FROM call WHERE leaf").fetchone()[0]

    def torch_library(self, python):
        code = ("import importlib.util, os; "
                "print(os.path.realpath(os.path.join(importlib.util.find_spec('torch')"
                ".submodule_search_locations[0], 'lib', 'libtorch_cpu.so')))")
        return run(python, "-c", code).out.strip()


class Missing(KitTest):
    """A program whose libtorch has no kit, on a machine without a compiler: it runs unchanged."""

    def tools(self):
        """A PATH without compilers: only what the program itself needs."""
        folder = self.path("bin")
        os.makedirs(folder, exist_ok=True)
        for name in ("sh", "env"):
            link = os.path.join(folder, name)
            if not os.path.exists(link):
                os.symlink(shutil.which(name), link)
        return folder

    def test_the_output_is_the_programs_own_and_one_sentence_says_what_is_missing(self):
        script, trace = self.script(PROGRAM), self.path("t.db")
        alone = run(TORCH_PYTHON, script)
        environment = dict(os.environ, PATH=self.tools(), ACLTAPE_CACHE=self.path("cache"))
        recorded = run(self.copied_build(), "record", "--force", "--keep-empty", "-o", trace, "--",
                       TORCH_PYTHON, script, env=environment)
        self.assertEqual((recorded.code, recorded.out), (alone.code, alone.out), recorded)
        self.assertIn("cmake is not installed", recorded.err, recorded)
        ledger = self.ledger(trace)
        self.assertIn("torch_kit_missing", ledger, recorded)
        self.assertNotIn("no_operators", ledger, recorded)
        self.assertTrue(ledger["torch_kit_missing"].endswith("libtorch_cpu.so")
                        or ".so." in ledger["torch_kit_missing"], ledger)
        self.assertNotIn("there was no torch", recorded.err, recorded)
        self.assertEqual(self.leaves(trace), 0)

    def test_an_operator_of_the_soft_device_says_which_kit_is_missing(self):
        libraries = self.path("lib64")
        os.makedirs(libraries)
        for name in ("libascendcl.so", "libnnopbase.so", "libopapi.so"):
            shutil.copy(os.path.join(BUILD, "sdk", "lib64", name), libraries)
        program = self.script("""
import ctypes
for name in ("libascendcl.so", "libnnopbase.so", "libopapi.so"):
    library = ctypes.CDLL(name, ctypes.RTLD_GLOBAL)
size, executor = ctypes.c_uint64(), ctypes.c_void_p()
code = library.aclnnReluGetWorkspaceSize(None, None, ctypes.byref(size), ctypes.byref(executor))
message = ctypes.CDLL("libascendcl.so").aclGetRecentErrMsg
message.restype = ctypes.c_char_p
print(code, message().decode())
""")
        done = run(sys.executable, program,
                   env=dict(os.environ, LD_LIBRARY_PATH=libraries, ACLTAPE_CACHE=self.path("none")))
        self.assertEqual(done.code, 0, done)
        self.assertTrue(done.out.startswith("561003 aclnnRelu: "), done)
        self.assertIn("acltape torch add", done.out)


class Unknown(KitTest):
    """Messages of `acltape torch` about input that it cannot use."""

    def test_errors_are_one_sentence_with_what_to_do(self):
        for words, said in (
                (("add", "/nowhere"), "is no Python interpreter"),
                (("add", "/etc"), "there is no libtorch_cpu.so in"),
                (("remove",), "needs a torch version"),
                (("remove", "9.9.9"), "no kit in the cache is called '9.9.9'")):
            result = self.acltape("torch", *words, code=2,
                                  env=dict(os.environ, ACLTAPE_CACHE=self.path("empty")))
            self.assertSentence(result, said)

    def test_a_libtorch_without_headers_is_refused(self):
        os.makedirs(self.path("lib"))
        library = self.path("lib/libtorch_cpu.so")
        with open(library, "wb") as file:
            file.write(b"\x7fELF" + bytes(5000))
        result = self.acltape("torch", "add", library, code=4,
                              env=dict(os.environ, ACLTAPE_CACHE=self.path("empty")))
        self.assertSentence(result, "no kit for")

    def test_the_kit_of_the_build_is_listed_and_stays(self):
        environment = dict(os.environ, ACLTAPE_CACHE=self.path("empty"))
        before = self.json("torch", "list", env=environment)
        self.assertEqual([row["state"] for row in before], ["ready, built in"])
        self.acltape("torch", "remove", "all", env=environment)
        self.assertEqual(self.json("torch", "list", env=environment), before)

    def test_a_damaged_kit_is_a_ledger_row_and_the_program_runs(self):
        places = self.path("places")
        identity, = (name for name in os.listdir(KITS) if os.path.islink(os.path.join(KITS, name)))
        kit = os.path.join(places, identity)
        os.makedirs(kit)
        with open(os.path.join(kit, "libacltape_torch.so"), "wb") as file:
            file.write(b"no library")
        trace = self.path("t.db")
        script = self.script(PROGRAM)
        recorded = run(self.copied_build(places), "record", "--keep-empty", "-o", trace, "--", TORCH_PYTHON, script,
                       env=dict(os.environ, PATH=self.path("no"), ACLTAPE_CACHE=self.path("none")))
        self.assertEqual((recorded.code, recorded.out), (0, run(TORCH_PYTHON, script).out), recorded)
        self.assertIn("torch_plugin_failed", self.ledger(trace), recorded)


class Built(KitTest):
    """The build's libtorch with a kit in the cache, as users of another libtorch have it."""

    def test_a_trace_says_which_libtorch_it_is_from(self):
        trace = self.path("t.db")
        self.record(trace, TORCH_PYTHON, self.script(PROGRAM))
        with sqlite3.connect(trace) as database:
            meta = dict(database.execute("SELECT key, value FROM meta"))
        library = self.torch_library(TORCH_PYTHON)
        self.assertEqual(os.path.realpath(meta["torch_library"]), library)
        kit, = (row for row in self.json("torch", "list")
                if row["identity"] == meta["torch_identity"])
        self.assertIn("ready", kit["state"])


class Torch2(KitTest):
    """Today's PyTorch: its kit is built at the first use, and everything works as with the build's."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if not TORCH2_PYTHON:
            print("skipped: ACLTAPE_TORCH2_PYTHON names no interpreter; scripts/test makes one where "
                  "a Python package index is reached")
            sys.exit(77)

    def test_fused_steps_of_optimisers_replay_bit_for_bit(self):
        program = self.script(OPTIMIZERS)
        trace = self.path("fused.db")
        self.record(trace, "env", "TORCH_DEVICE_BACKEND_AUTOLOAD=0", TORCH2_PYTHON, program, payload="all",
                    options=("--steps-from", "step"))
        for mode in ("eager", "captured"):
            report = self.json("replay", trace, "--mode", mode)
            summary = {row["quantity"].strip(): row["value"] for row in report["summary"]}
            self.assertIn("equal bit for bit", summary["verdict"])
            self.assertEqual(summary["substituted by recorded outputs"], 0, report["notes"])

    def test_workloads_replay_bit_for_bit_eagerly_and_captured(self):
        for workload in ("decoder", "mlp_train", "bert_layer"):
            with self.subTest(workload):
                script, trace = os.path.join(WORKLOADS, workload + ".py"), self.path(workload + ".db")
                # Otherwise torch imports an installed torch_npu, which wants the soft device.
                program = ("env", "TORCH_DEVICE_BACKEND_AUTOLOAD=0", TORCH2_PYTHON, script)
                alone = run(*program)
                recorded = self.record(trace, *program, payload="all")
                self.assertEqual(recorded.out, alone.out, recorded)
                self.assertGreater(self.leaves(trace), 100, recorded)
                for mode in ("eager", "captured"):
                    said = self.acltape("replay", trace, "--mode", mode).out
                    self.assertIn("equal bit for bit", said)
                    self.assertNotIn("substituted leaves", said)


if __name__ == "__main__":
    main()
