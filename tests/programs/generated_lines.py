"""Copies issued by code that a compiler generated, as torch.compile's backends do: a module whose lines
are the nodes of a graph, called by a method of what holds the graph. Prints the copied numbers.
"""
import ctypes
import types

acl = ctypes.CDLL("libascendcl.so")
COUNT = 4
SIZE = ctypes.c_size_t(4 * COUNT)


class Node:
    def __init__(self, name, stack_trace):
        self.name, self.stack_trace = name, stack_trace


class Graph:
    def __init__(self, nodes):
        self.nodes = nodes


Graph.__module__ = "torch.fx.graph"

GENERATED = """
def forward(copy, first, second, third, fourth):
    one = copy(first, second, 1);  two = None

    two = copy(third, first, 2);  one = None
    three = copy(fourth, first, 2)
    return three
"""
TRACE = """  File "/home/user/model.py", line 11, in forward
    return self.inner(x)
           ^^^^^^^^^^^^^
  File "/home/user/layers.py", line %d, in inner
    x = x.to(device)
  File "/usr/lib/python3/dist-packages/torch/nn/functional.py", line 5, in linear
    return torch.addmm(x)
"""


class Holder:
    def __init__(self, graph):
        self.fx_graph = types.SimpleNamespace(graph=graph)
        module = types.ModuleType("ge_mod")
        exec(compile(GENERATED, "<string>", "exec"), module.__dict__)
        self.forward = module.forward

    def run(self, *arguments):
        return self.forward(*arguments)  # line of the caller


# A function of the framework: its frame is passed over.
copy = eval(compile("lambda to, source, kind: acl.aclrtMemcpy(to, SIZE, source, SIZE, kind)",
                    "/usr/lib/python3/dist-packages/torch/_ops.py", "eval"))


def main():
    assert acl.aclInit(None) == 0
    assert acl.aclrtSetDevice(0) == 0
    memory = ctypes.c_void_p()
    assert acl.aclrtMalloc(ctypes.byref(memory), SIZE, 0) == 0
    values = (ctypes.c_float * COUNT)(1, 2, 3, 4)
    back, again = (ctypes.c_float * COUNT)(), (ctypes.c_float * COUNT)()
    holder = Holder(Graph([Node("one", TRACE % 21), Node("two", TRACE % 22), Node("three", None)]))
    holder.run(copy, memory, values, back, again)
    print(*back, *again)
    assert acl.aclFinalize() == 0


main()
