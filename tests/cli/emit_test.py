#!/usr/bin/env python3
"""acltape emit on a recorded program with parallel branches, and the emitted torchair pass over FX
graphs of the same program. torchair's operators are declared as its documentation has them."""
import importlib.util
import json
import operator
import os
import re
import shutil
import subprocess
import sys
import types
import unittest
from random import Random

from harness import TORCH_PYTHON, CommandTest, main

PROGRAM = """
import torch
def step(x, w):
    a = torch.mm(x, w)
    b = torch.relu(x.t())
    c = torch.tanh(b)
    d = torch.sigmoid(a)
    e = torch.mul(c, d)
    return torch.add(e, a)
if __name__ == "__main__":
    from torch.profiler import record_function
    x, w = torch.ones(4, 4), torch.eye(4)
    for i in range(3):
        with record_function("step"):
            step(x, w)
"""
ATTENTION = """
import torch
def step(x, a, b, c, w):
    q, k, v = torch.mm(x, a), torch.mm(x, b), torch.mm(x, c)
    s = torch.softmax(torch.mm(torch.tanh(q), torch.sigmoid(k).t()), 1)
    return torch.layer_norm(torch.mm(torch.mm(s, torch.relu(v)), w) + x, (256,))
def inputs():
    return [torch.ones(256, 256) for _ in range(5)]
if __name__ == "__main__":
    from torch.profiler import record_function
    x, *weights = inputs()
    for i in range(4):
        with record_function("step"):
            x = step(x, *weights)
"""
KERNELS = ["aten::mm", "aten::relu", "aten::tanh", "aten::sigmoid", "aten::mul.Tensor",
           "aten::add.Tensor"]
# relu and tanh run beside mm and sigmoid.
STREAMS = [0, 1, 1, 0, 0, 0]


class Plans(CommandTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.trace = os.path.join(cls.folder, "t.db")
        with open(os.path.join(cls.folder, "program.py"), "w") as file:
            file.write(PROGRAM)
        test = cls("setUp")
        test.record(cls.trace, TORCH_PYTHON, test.path("program.py"), payload="none",
                    options=["--steps-from", "step"])
        rows = test.json("query", cls.trace,
                         "SELECT call_id, op FROM call WHERE step = 1 AND leaf = 1 ORDER BY 1")
        cls.calls = [row["call_id"] for row in rows if row["op"] in KERNELS]
        cls.step = test.json("query", cls.trace, "SELECT * FROM step WHERE step = 1")[0]
        cls.trace_calls = test.json("query", cls.trace, "SELECT count(*) AS n FROM call WHERE leaf")
        assert [row["op"] for row in rows if row["op"] in KERNELS] == KERNELS, rows

    def plan(self, name="plan.json", order=range(6), cut=6):
        """A plan over the six kernels: the first `cut` are captured, issued in this order."""
        def region(number, calls):
            return {"region": number, "kind": "captured", "first_call": min(calls),
                    "last_call": max(calls), "reason": "the step \"ends\"",
                    "placements": [{"call": self.calls[i], "stream": STREAMS[i]} for i in order
                                   if self.calls[i] in calls],
                    "waits": [{"record_after": a, "wait_before": b, "event": 0}
                              for a, b in [(self.calls[2], self.calls[4])] if b in calls]}
        regions = [region(0, self.calls[:cut])]
        if cut < 6:
            regions.append({"region": 1, "kind": "eager", "first_call": self.calls[cut],
                            "last_call": self.calls[5], "reason": "by hand"})
        path = self.path(name)
        with open(path, "w") as file:
            json.dump({"version": 1, "trace_calls": self.trace_calls[0]["n"], "step": 1,
                       "first_call": self.step["first_call"], "last_call": self.step["last_call"],
                       "capture_mode": "relaxed", "soc": "Ascend910B1", "streams": 2,
                       "regions": regions, "copies": [], "updates": []}, file)
        return path


class Emit(Plans):
    def test_fx_table_shows_region_stream_and_waits_of_each_node(self):
        rows = self.json("emit", self.trace, self.plan(), "--as", "fx")
        graph = self.json("graph", self.trace, "step:1")
        self.assertEqual([row["name"] for row in rows], [row["name"] for row in graph])
        planned = {row["call_id"]: row for row in rows if row["region"] is not None}
        self.assertEqual(sorted(planned), self.calls)
        self.assertEqual([planned[call]["stream"] for call in self.calls], STREAMS)
        self.assertEqual([planned[call]["waits"] for call in self.calls],
                         [None] * 4 + [f"event 0 after call {self.calls[2]}", None])

    def test_json_has_everything_looked_up(self):
        self.acltape("emit", self.trace, self.plan(cut=5), "--as", "json", "-o",
                     self.path("resolved.json"))
        with open(self.path("resolved.json")) as file:
            plan = json.load(file)
        captured, eager = plan["regions"]
        self.assertEqual([call["op"] for call in captured["calls"]], KERNELS[:5])
        self.assertEqual([call["stream"] for call in captured["calls"]], STREAMS[:5])
        self.assertEqual(captured["streams"], 2)
        self.assertEqual(captured["calls"][4]["waits"],
                         [{"event": 0, "record_after": self.calls[2]}])
        self.assertTrue(captured["calls"][2]["records"])
        self.assertEqual(captured["calls"][0]["writes"][0]["shape"], [4, 4])
        self.assertEqual([read["argument"] for read in captured["calls"][0]["reads"]],
                         ["self", "mat2"])
        # relu reads x through a transpose.
        self.assertEqual(captured["calls"][1]["reads"][0]["strides"], [1, 4])
        self.assertGreater(captured["recorded_ns"], 0)
        self.assertEqual([call["op"] for call in eager["calls"]], KERNELS[5:])

    def test_dot_draws_regions_streams_and_waits(self):
        text = self.acltape("emit", self.trace, self.plan(cut=5), "--as", "dot").out
        self.assertWellFormedDot(text)
        nodes = dict(re.findall(r'^    c(\d+) \[.*fillcolor="(#\w+)"\];$', text, re.M))
        self.assertEqual([int(call) for call in nodes], self.calls)
        colours = [nodes[str(call)] for call in self.calls]
        self.assertEqual([colour != colours[0] for colour in colours[:5]],
                         [stream != 0 for stream in STREAMS[:5]])
        self.assertEqual(len(re.findall(r"subgraph cluster_\d+ {", text)), 2)
        waits = re.findall(r"^  c(\d+) -> c(\d+) \[style=dashed.*event 0", text, re.M)
        self.assertEqual(waits, [(str(self.calls[2]), str(self.calls[4]))])
        edges = set(re.findall(r"^  c(\d+) -> c(\d+);$", text, re.M))
        wanted = [(0, 3), (0, 5), (1, 2), (2, 4), (3, 4), (4, 5)]  # who reads whose result
        self.assertEqual(edges, {(str(self.calls[a]), str(self.calls[b])) for a, b in wanted})
        if shutil.which("dot"):
            done = subprocess.run(["dot", "-Tsvg"], input=text, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("<svg", done.stdout)

    def assertWellFormedDot(self, text):
        """Tokens of the DOT grammar; braces and brackets that match; statements that end."""
        token = re.compile(r'\s+|"(?:[^"\\]|\\.)*"|->|[{}\[\];=,]|[A-Za-z_][A-Za-z_0-9]*|\d+\.?\d*')
        position, open_brackets = 0, []
        while position < len(text):
            match = token.match(text, position)
            self.assertIsNotNone(match, f"no token of DOT: {text[position:position + 40]!r}")
            if match.group() in "{[":
                open_brackets.append(match.group())
            elif match.group() in "}]":
                self.assertEqual(open_brackets.pop(), {"}": "{", "]": "["}[match.group()])
            position = match.end()
        self.assertEqual(open_brackets, [])
        for line in text.splitlines():
            self.assertRegex(line, r"[{};]$")

    def test_a_broken_plan_is_refused(self):
        path = self.plan("broken.json")
        with open(path) as file:
            plan = json.load(file)
        plan["regions"][0]["waits"] = []
        with open(path, "w") as file:
            json.dump(plan, file)
        self.assertSentence(self.acltape("emit", self.trace, path, "--as", "fx", code=2), "PLAN-22")

    def test_a_file_that_cannot_be_written_is_an_error(self):
        result = self.acltape("emit", self.trace, self.plan(), "-o", "/nonexistent/x", code=4)
        self.assertSentence(result, "/nonexistent/x")


try:
    import torch
except ImportError:
    torch = None
else:
    from torch.fx.experimental.proxy_tensor import make_fx
    AIR = torch.library.Library("air", "DEF")
    AIR.define("scope_enter(str[] keys, str[] values) -> ()")
    AIR.define("scope_exit() -> ()")
    AIR.define("record(*, Device? device=None) -> Tensor")
    AIR.define("wait(Tensor[] x) -> ()")
    AIR.define("record_tagged_stream_(Tensor(a!) self, str tag) -> ()")

REDUCE_OVERHEAD = types.SimpleNamespace(mode=types.SimpleNamespace(value="reduce-overhead"))


@unittest.skipIf(torch is None, "this python cannot import torch")
class TorchairPass(Plans):
    """The emitted pass over real FX graphs: what is inserted, whether it orders what must be
    ordered, and what it refuses."""

    def load(self, name):
        spec = importlib.util.spec_from_file_location(name, self.path(name + ".py"))
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    def emitted(self, plan=None):
        self.acltape("emit", self.trace, plan or self.plan(), "--as", "torchair", "--force", "-o",
                     self.path("plan_pass.py"))
        return self.load("plan_pass")

    def program(self):
        return self.load("program").step

    def graph(self, function=None):
        return make_fx(function or self.program())(torch.ones(4, 4), torch.eye(4))

    def lines(self, gm):
        """Targets in order, without placeholders and the output."""
        return [str(node.target).replace(".default", "").replace("aten.", "")
                for node in gm.graph.nodes if node.op == "call_function"]

    def assertOrdered(self, gm):
        """Every kernel is ordered after those whose results it reads, by stream order and waits:
        vector clocks of sets."""
        done, at_record, label = {}, {}, None
        producers = {}
        for node in gm.graph.nodes:
            name = str(node.target)
            if node.op == "placeholder":
                producers[node] = set()
            elif name == "air.scope_enter.default":
                self.assertIsNone(label, "scopes are nested")
                self.assertEqual(node.args[0], ["_user_stream_label"])
                label = node.args[1][0]
            elif name == "air.scope_exit.default":
                self.assertIsNotNone(label)
                label = None
            elif name == "air.record.default":
                at_record[node] = set(done.get(label, set()))
            elif name == "air.wait.default":
                for record in node.args[0]:
                    done.setdefault(label, set()).update(at_record[record])
            elif node.target is operator.getitem:
                producers[node] = producers[node.args[0]]
            elif name.startswith("aten."):
                reads = set().union(*(producers[read] for read in node.all_input_nodes))
                if name.split(".")[1] in ("t", "transpose", "detach"):
                    producers[node] = reads
                    continue
                self.assertLessEqual(reads, done.get(label, set()),
                                     f"{node} is not after what it reads\n{gm.graph}")
                done.setdefault(label, set()).add(node)
                producers[node] = {node}
        self.assertIsNone(label, "a scope is left open")

    def test_scopes_and_waits_stand_where_the_plan_has_them(self):
        gm = self.graph()
        self.assertIsNone(self.emitted().apply_plan(gm, [], None))
        self.assertEqual([line for line in self.lines(gm) if line != "t"],
                         ["mm", "air.scope_enter", "relu", "tanh", "air.record", "air.scope_exit",
                          "sigmoid", "air.wait", "mul.Tensor", "add.Tensor"])
        nodes = {str(node.target): node for node in gm.graph.nodes}
        self.assertEqual(nodes["air.wait.default"].args, ([nodes["air.record.default"]],))
        self.assertEqual(nodes["air.scope_enter.default"].args[1], ["acltape_1"])
        self.assertOrdered(gm)

    def test_in_reduce_overhead_mode_tensors_are_marked_as_used_by_the_other_stream(self):
        gm = self.graph()
        self.emitted().apply_plan(gm, [], REDUCE_OVERHEAD)
        marks = [(node.args[0].name, node.args[1]) for node in gm.graph.nodes
                 if str(node.target) == "air.record_tagged_stream_.default"]
        self.assertEqual(marks, [("tanh", "default")])

    def test_kernels_are_moved_into_the_order_of_issue(self):
        gm = self.graph()
        self.emitted(self.plan("moved.json", order=[1, 2, 0, 3, 4, 5])).apply_plan(gm, [], None)
        self.assertEqual(self.lines(gm),
                         ["t", "air.scope_enter", "relu", "tanh", "air.record", "air.scope_exit",
                          "mm", "sigmoid", "air.wait", "mul.Tensor", "add.Tensor"])
        self.assertOrdered(gm)

    def test_a_graph_of_a_part_of_the_region_gets_that_part(self):
        gm = self.graph(lambda x, w: torch.tanh(torch.relu(x.t())))
        self.emitted().apply_plan(gm, [], None)
        self.assertEqual(self.lines(gm),
                         ["t", "air.scope_enter", "relu", "tanh", "air.scope_exit"])

    def test_equal_operators_that_pass_results_on_otherwise_are_refused(self):
        module = self.emitted()
        gm = self.graph(lambda x, w: torch.sigmoid(torch.tanh(torch.relu(x))))
        before = str(gm.graph)
        with self.assertRaises(module.PlanMismatch) as caught:
            module.apply_plan(gm, [], None)
        self.assertIn(
            f"sigmoid (call {self.calls[3]}) reads what tanh (call {self.calls[2]}) makes",
            str(caught.exception))
        self.assertEqual(str(gm.graph), before)

    def test_a_graph_like_two_parts_of_the_plan_is_refused_if_these_differ(self):
        module = self.emitted()
        kernels = ["aten.relu.default", "aten.tanh.default"]
        def regions(*streams):
            return [module.Region(r, [module.Call(10 * r + i, kernel, stream, i)
                                      for i, kernel in enumerate(kernels)], [])
                    for r, stream in enumerate(streams)]
        function = lambda x, w: torch.tanh(torch.relu(x))
        module.REGIONS = regions(1, 1)
        module.apply_plan(self.graph(function), [], None)
        module.REGIONS = regions(1, 0)
        with self.assertRaises(module.PlanMismatch) as caught:
            module.apply_plan(self.graph(function), [], None)
        self.assertIn("like calls 0 to 1 and like calls 10 to 11", str(caught.exception))

    def test_results_that_go_back_into_inputs_wait_for_all_streams(self):
        def changes_input(x, w):
            out = self.program()(x, w)
            x.copy_(out)
            return out
        gm = self.graph(changes_input)
        self.emitted().apply_plan(gm, [], None)
        lines = self.lines(gm)
        self.assertEqual(lines[-2:], ["air.wait", "copy_"])
        self.assertOrdered(gm)

    def test_functional_forms_of_in_place_operators_are_the_same(self):
        gm = self.graph(
            lambda x, w: torch.mul(torch.relu(x.t()).tanh_(), torch.mm(x, w).sigmoid_()))
        module = self.emitted()
        # Other order of calls: mm comes after tanh.
        with self.assertRaises(module.PlanMismatch):
            module.apply_plan(gm, [], None)

        def in_place(x, w):
            a = torch.mm(x, w)
            c = torch.relu(x.t()).tanh_()
            return torch.add(torch.mul(c, torch.sigmoid(a)), a)
        gm = self.graph(in_place)
        self.assertIn("tanh_", self.lines(gm))
        module.apply_plan(gm, [], None)
        self.assertOrdered(gm)

    def test_an_altered_graph_is_refused_and_left_as_it_was(self):
        module = self.emitted()

        def altered(x, w):
            a = torch.mm(x, w)
            return torch.add(torch.cos(torch.relu(x.t())), a)
        gm = self.graph(altered)
        before = str(gm.graph)
        with self.assertRaises(module.PlanMismatch) as caught:
            module.apply_plan(gm, [], None)
        message = str(caught.exception)
        self.assertIn("of its 4 kernels, kernel 2 is aten.cos.default", message)
        self.assertIn(f"call {self.calls[2]} aten.tanh.default", message)
        self.assertEqual(str(gm.graph), before)

        def longer(x, w):
            return torch.neg(self.program()(x, w))
        with self.assertRaises(module.PlanMismatch) as caught:
            module.apply_plan(self.graph(longer), [], None)
        self.assertIn("kernel 6 is aten.neg.default", str(caught.exception))
        self.assertIn("the region ends", str(caught.exception))
        with self.assertRaises(module.PlanMismatch):
            module.apply_plan(self.graph(lambda x, w: x.t()), [], None)

    def test_a_plan_of_the_planner_goes_into_the_graph_of_its_program(self):
        path, trace = self.path("attention.py"), self.path("attention.db")
        with open(path, "w") as file:
            file.write(ATTENTION)
        self.record(trace, TORCH_PYTHON, path, options=["--steps-from", "step"])
        self.acltape("plan", trace, "-o", self.path("attention.json"), "--streams", "3")
        self.acltape("emit", trace, self.path("attention.json"), "--as", "torchair", "-o",
                     self.path("attention_pass.py"))
        program = self.load("attention")
        gm = make_fx(program.step)(*program.inputs())
        self.load("attention_pass").apply_plan(gm, [], REDUCE_OVERHEAD)
        self.assertOrdered(gm)
        with open(self.path("attention.json")) as file:
            placed = [row["stream"] for region in json.load(file)["regions"]
                      for row in region.get("placements", [])]
        self.assertEqual(len(placed), 12)
        # The number of streams that pay depends on the recorded times.
        self.assertEqual("air.scope_enter" in self.lines(gm), max(placed) > 0)

    def test_random_plans_order_what_their_waits_say_and_are_refused_without_one(self):
        module = self.emitted()
        random = Random(5)
        refused = 0
        for _ in range(150):
            count = random.randint(2, 12)
            reads = [random.sample(range(-2, i), 2) for i in range(count)]  # below 0: an input
            streams = [random.randrange(3) for _ in range(count)]
            order = []  # order of issue: any order in which results come before their readers
            while len(order) < count:
                order.append(random.choice(
                    [i for i in range(count) if i not in order
                     and all(read < 0 or read in order for read in reads[i])]))
            waits = [module.Wait(read, i) for i in range(count) for read in reads[i]
                     if read >= 0 and streams[read] != streams[i]]
            calls = [module.Call(i, "aten.add.Tensor", streams[i], order.index(i))
                     for i in range(count)]

            def graph():
                graph = torch.fx.Graph()
                nodes = [graph.placeholder("x"), graph.placeholder("y")]
                for a, b in reads:  # noqa: B023  (it is called at once)
                    nodes.append(graph.call_function(torch.ops.aten.add.Tensor,
                                                     (nodes[a + 2], nodes[b + 2])))
                graph.output(nodes[-1])
                return torch.fx.GraphModule({}, graph)
            module.REGIONS = [module.Region(0, calls, waits)]
            gm = graph()
            module.apply_plan(gm, [], random.choice([None, REDUCE_OVERHEAD]))
            self.assertOrdered(gm)
            if waits:
                less = random.sample(waits, len(waits) - 1)
                module.REGIONS = [module.Region(0, calls, less)]
                gm = graph()
                try:
                    module.apply_plan(gm, [], None)
                    self.assertOrdered(gm)  # the others imply the wait that is left out
                except module.PlanMismatch:
                    refused += 1
        self.assertGreater(refused, 50)

    def test_a_graph_of_other_functions_than_operators_is_refused(self):
        module = self.emitted()
        with self.assertRaises(module.PlanMismatch) as caught:
            module.apply_plan(torch.fx.symbolic_trace(self.program()), [], None)
        self.assertIn("node mm calls", str(caught.exception))
        with self.assertRaises(module.PlanMismatch) as caught:
            module.apply_plan(torch.fx.symbolic_trace(lambda x: x.relu()), [], None)
        self.assertIn("call_method", str(caught.exception))

    def test_results_picked_from_several_are_no_kernels(self):
        module = self.emitted()
        module.REGIONS = [module.Region(0, [module.Call(1, "aten.max.dim", 1, 0),
                                            module.Call(2, "aten.mul.Tensor", 0, 1)],
                                        [module.Wait(1, 2)])]
        gm = self.graph(lambda x, w: torch.mul(x.max(0)[0], x))
        module.apply_plan(gm, [], REDUCE_OVERHEAD)
        lines = [line for line in self.lines(gm) if "getitem" not in line]
        self.assertEqual(lines, ["air.scope_enter", "max.dim", "air.record", "air.scope_exit",
                                 "air.wait", "air.record_tagged_stream_", "mul.Tensor"])

    def test_a_graph_that_has_streams_is_refused(self):
        gm = self.graph()
        module = self.emitted()
        module.apply_plan(gm, [], None)
        with self.assertRaises(module.PlanMismatch) as caught:
            module.apply_plan(gm, [], None)
        self.assertIn("already", str(caught.exception))

    def test_a_plan_without_captures_has_no_pass(self):
        path = self.plan("eager.json")
        with open(path) as file:
            plan = json.load(file)
        plan["regions"] = [{"region": 0, "kind": "eager", "first_call": self.calls[0],
                            "last_call": self.calls[5], "reason": "by hand"}]
        with open(path, "w") as file:
            json.dump(plan, file)
        self.assertSentence(self.acltape("emit", self.trace, path, "--as", "torchair", code=2),
                            "captures nothing")


if __name__ == "__main__":
    if torch is None and TORCH_PYTHON and TORCH_PYTHON != sys.executable:
        os.execv(TORCH_PYTHON, [TORCH_PYTHON, "-B", *sys.argv])
    main()
