import importlib
from collections import namedtuple

import torch

# A recorded call: its id in the trace, the operator as FX names its target, the stream (0 is the
# default one) and its place in the plan's order of issue. A wait: the calls between which it
# stands.
Call = namedtuple("Call", "call_id target stream issue")
Wait = namedtuple("Wait", "record_after wait_before")
Region = namedtuple("Region", "region calls waits")

#@PLAN@

STREAM_LABEL = "acltape_{}".format
# The namespaces of the two compilers' operators, and the modules that declare the rest of them.
TAGGED_EVENTS = {"air": "torchair.ops._tagged_event", "npugraph_ex": "npugraph_ex.ops._tagged_event"}
# Operators that launch nothing, by name without overload; the recorded views are among them.
NO_KERNEL = RECORDED_VIEWS | {
    "_reshape_alias", "_unsafe_view", "alias", "as_strided", "detach", "diagonal", "empty",
    "empty_like", "empty_strided", "expand", "lift_fresh", "new_empty", "new_empty_strided",
    "permute", "reshape", "select", "slice", "split", "split_with_sizes", "squeeze", "sym_numel",
    "sym_size", "sym_storage_offset", "sym_stride", "t", "transpose", "unbind", "unfold",
    "unsqueeze", "view",
}


class PlanMismatch(RuntimeError):
    """The graph does not hold the recorded calls, so that the plan says nothing about it."""


def apply_plan(gm, example_inputs=None, config=None):
    """Puts the kernels of a graph on the streams of the plan: a pass for post_grad_custom_pre_pass.

    The kernels of the graph, in order, must be a run of the recorded calls of one region. Raises
    PlanMismatch, and leaves the graph as it was, when they are not.
    """
    air = stream_operators(namespace_of(config))
    kernels, write_backs = kernels_of(gm.graph)
    calls, waits, nodes, write_backs = find_run(kernels, write_backs)
    check_order(calls, nodes, waits)
    if any(a.issue > b.issue for a, b in zip(calls, calls[1:])):
        reorder(gm.graph, dict(zip(nodes, calls)))
    # In its other mode torchair plans memory itself and has no operator for this.
    place(gm.graph, calls, nodes, waits, write_backs,
          share_tensors=mode_of(config) in ("reduce-overhead", "npugraph_ex"), air=air)
    gm.graph.lint()
    gm.recompile()


def namespace_of(config):
    """Where the compiler that runs the pass has its operators for streams; a key of TAGGED_EVENTS."""
    return "npugraph_ex" if "npugraph_ex" in type(config).__module__.split(".") else "air"


def mode_of(config):
    return getattr(getattr(config, "mode", None), "value", None)


def name_of(node):
    """(namespace, operator, overload) of a call_function node; None when it is no operator."""
    # An operator of torch.ops has a schema, a packet of overloads lists them.
    if node.op != "call_function" or not any(hasattr(node.target, attribute)
                                             for attribute in ("_schema", "overloads")):
        return None
    parts = str(node.target).split(".")
    return parts[0], parts[1], parts[2] if len(parts) == 3 else "default"


def launches_nothing(function):
    """A function that is no operator and only picks results or reckons with sizes."""
    return function.__module__ in ("_operator", "math") or function.__name__.startswith("sym_")


def kernels_of(graph):
    """The nodes that launch kernels, and those after them that copy results into inputs."""
    kernels = []
    for node in graph.nodes:
        if node.op in ("call_method", "call_module"):
            raise PlanMismatch(
                f"node {node.name} is a {node.op}: the plan is for a graph of ATen operators.")
        name = name_of(node)
        if node.op == "call_function" and name is None and not launches_nothing(node.target):
            raise PlanMismatch(f"node {node.name} calls {node.target}, which is no ATen operator.")
        if name is not None and name[0] in TAGGED_EVENTS:
            raise PlanMismatch(
                f"node {node.name} is {node.target}: the graph has its streams already.")
        if name is not None and name[1] not in NO_KERNEL:
            kernels.append(node)
    # Functionalisation turns a change of an input into a copy at the end.
    first = len(kernels)
    while (first > 0 and name_of(kernels[first - 1])[1] == "copy_"
           and kernels[first - 1].args[0].op == "placeholder"):
        first -= 1
    return kernels[:first], kernels[first:]


def same_operator(recorded, node):
    """Equal but for writing in place or into an out argument: functionalisation changes that."""
    def functional(name):
        namespace, operator, overload = name
        if operator.endswith("_") and not operator.endswith("__"):
            operator = operator[:-1]
        return namespace, operator, None if overload.endswith("out") else overload
    ours, theirs = functional(recorded.target.split(".")), functional(name_of(node))
    return ours[:2] == theirs[:2] and (ours[2] == theirs[2] or None in (ours[2], theirs[2]))


def equal_kernels(calls, nodes):
    """How many kernels, from the first one, are the calls."""
    for i, (call, node) in enumerate(zip(calls, nodes)):
        if not same_operator(call, node):
            return i
    return min(len(calls), len(nodes))


def find_run(kernels, write_backs):
    """The calls that the kernels are, the waits among them by place, the kernels, and the copies
    into inputs that are not among them: those that the program made itself were recorded."""
    if not kernels:
        raise PlanMismatch("the graph has no kernel that the plan could place.")
    for nodes in (kernels + write_backs, kernels):
        runs = [(region, region.calls[first:first + len(nodes)]) for region in REGIONS
                for first in range(len(region.calls) - len(nodes) + 1)
                if equal_kernels(region.calls[first:], nodes) == len(nodes)]
        if runs:
            break
    else:
        raise PlanMismatch(describe_mismatch(kernels))
    treatments = [treatment(region, calls) for region, calls in runs]
    for other, (_, calls) in zip(treatments, runs):
        if other != treatments[0]:
            first = runs[0][1]
            raise PlanMismatch(
                f"the graph is like calls {first[0].call_id} to {first[-1].call_id} and like calls "
                f"{calls[0].call_id} to {calls[-1].call_id}, which the plan treats differently.")
    _, waits, _ = treatments[0]
    return runs[0][1], waits, nodes, write_backs if len(nodes) == len(kernels) else []


def treatment(region, calls):
    """Returns the plan's treatment of each call of a run, by place in the run."""
    place_of = {call.call_id: i for i, call in enumerate(calls)}
    waits = sorted((place_of[wait.record_after], place_of[wait.wait_before])
                   for wait in region.waits
                   if wait.record_after in place_of and wait.wait_before in place_of)
    order = sorted(range(len(calls)), key=lambda i: calls[i].issue)
    return [call.stream for call in calls], waits, order


def describe_mismatch(kernels):
    """Where the graph parts from the recorded calls that it is like longest."""
    equal, region, first = max(
        ((equal_kernels(region.calls[first:], kernels), region, first) for region in REGIONS
         for first in range(len(region.calls))), key=lambda run: run[0])
    node = kernels[min(equal, len(kernels) - 1)]
    calls = region.calls[first:]
    wanted = (f"call {calls[equal].call_id} {calls[equal].target}" if equal < len(calls)
              else "none, as the region ends")
    return (f"the graph is not what was recorded: of its {len(kernels)} kernels, kernel {equal} is "
            f"{node.target} (node {node.name}), and region {region.region} has {wanted} there.")


def check_order(calls, nodes, waits):
    """Equal operators may still pass their results on in another way: whatever a kernel reads from
    another one, in this graph, must be ordered before it by streams and waits."""
    place_of = {node: i for i, node in enumerate(nodes)}
    clocks = {}    # by stream, how many kernels of each stream are ordered before the next one
    after = {}     # by kernel, the clock of its stream right after it
    for i in sorted(range(len(calls)), key=lambda i: calls[i].issue):
        stream = calls[i].stream
        clock = clocks.setdefault(stream, {})
        for record_after, wait_before in waits:
            if wait_before == i:
                for other, count in after[record_after].items():
                    clock[other] = max(clock.get(other, 0), count)
        for maker in makers_of(nodes[i], place_of):
            made = calls[place_of[maker]]
            if maker not in after or clock.get(made.stream, 0) < after[maker][made.stream]:
                raise PlanMismatch(
                    f"the graph passes results on in another way than was recorded: "
                    f"{nodes[i].name} (call {calls[i].call_id}) reads what {maker.name} (call "
                    f"{made.call_id}) makes, and the plan does not order them.")
        clock[stream] = clock.get(stream, 0) + 1
        after[i] = after[nodes[i]] = dict(clock)


def makers_of(node, kernels):
    """The kernels whose results a node reads, through views."""
    reads = list(node.all_input_nodes)
    while reads:
        read = reads.pop()
        if read in kernels:
            yield read
        else:
            reads.extend(read.all_input_nodes)


def reorder(graph, call_of):
    """Moves the kernels into the order of issue, each after the views that it reads through."""
    order = [node for node in graph.nodes if node.op == "placeholder"]
    done = set(order)

    def append(node):
        for read in node.all_input_nodes:
            if read not in done:
                append(read)
        done.add(node)
        order.append(node)

    for node in sorted(call_of, key=lambda node: call_of[node].issue):
        append(node)
    order.extend(node for node in graph.nodes if node not in done)
    for before, node in zip(order, order[1:]):
        if before.next is not node:
            before.append(node)


def place(graph, calls, nodes, waits, write_backs, share_tensors, air):
    """Inserts scopes, records and waits around the kernels, which stand in order of issue."""
    call_of = dict(zip(nodes, calls))
    awaited = {}
    for record_after, wait_before in waits:
        awaited.setdefault(nodes[wait_before], []).append(nodes[record_after])
    recorded = {node for before in awaited.values() for node in before}
    issued = sorted(nodes, key=lambda node: call_of[node].issue)
    last_of = {call_of[node].stream: node for node in issued if call_of[node].stream != 0}
    if write_backs:  # they run on the default stream, after all others
        recorded |= set(last_of.values())

    record_of = {}
    current = 0
    last = None
    for node in issued:
        stream = call_of[node].stream
        with graph.inserting_before(node):
            if stream != current and current != 0:
                graph.call_function(air.scope_exit, args=())
            if stream != current and stream != 0:
                graph.call_function(air.scope_enter, args=(
                    ["_user_stream_label"], [STREAM_LABEL(stream)]))
            current = stream
            if node in awaited:
                graph.call_function(air.wait, args=([record_of[n] for n in awaited[node]],))
            if share_tensors:
                label = STREAM_LABEL(stream) if stream != 0 else "default"
                for tensor in shared_tensors(node, call_of):
                    graph.call_function(air.record_tagged_stream(), args=(tensor, label))
        last = node
        if node in recorded:
            with graph.inserting_after(node):
                last = record_of[node] = graph.call_function(air.record, args=())
    if current != 0:
        with graph.inserting_after(last):
            last = graph.call_function(air.scope_exit, args=())
    if write_backs and last_of:
        with graph.inserting_after(last):
            graph.call_function(air.wait, args=([record_of[n] for n in last_of.values()],))


def shared_tensors(node, call_of):
    """The tensors that a kernel reads from kernels on other streams: their memory must not be used
    again before this stream is done with it."""
    stream = call_of[node].stream
    for read in node.all_input_nodes:
        name = name_of(read)
        if name is not None and name[1].startswith("sym_"):
            continue  # a size
        makers = [read] if read in call_of else makers_of(read, call_of)
        if any(call_of[maker].stream != stream for maker in makers):
            yield read


def stream_operators(namespace):
    """The operators of torchair or npugraph_ex that stand for streams and events in a graph."""
    declared = getattr(torch.ops, namespace)

    def record_tagged_stream():
        if not hasattr(declared, "record_tagged_stream_"):
            importlib.import_module(TAGGED_EVENTS[namespace])  # declares it
        return declared.record_tagged_stream_.default

    operators = {}
    # The code that npugraph_ex generates leaves out waits of its own namespace; it has those of air.
    for place, name in ((namespace, "scope_enter"), (namespace, "scope_exit"), ("air", "record"),
                        ("air", "wait")):
        if not hasattr(getattr(torch.ops, place), name):
            raise PlanMismatch(f"torch.ops.{place}.{name} is not there: import torchair first.")
        operators[name] = getattr(getattr(torch.ops, place), name).default
    return namedtuple("Air", [*operators, "record_tagged_stream"])(
        **operators, record_tagged_stream=record_tagged_stream)
