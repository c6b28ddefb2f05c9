"""Writes fleet tables of a training of several ranks that never ran, with faults that are planted.

Each step of a rank has matrix products, a reduction over all ranks and a message to the next rank, on the host and on
the device. Times have noise, and are the same for the same seed.
"""
import hashlib
import random

import slow_writer

OPS = ("aclnnMatmul", "aclnnAdd", "aclnnGelu", "HcclAllReduce", "HcclSend", "HcclRecv", "HcclBroadcast",
       "aclmdlRIExecuteAsync")
MATMUL, ADD, GELU, REDUCE, SEND, RECEIVE, BROADCAST, EXECUTE = range(1, 9)
LINES = {**dict.fromkeys(OPS, "train.py:12"), "aclnnMatmul": "train.py:30", "HcclSend": "train.py:30"}
# What each takes, in nanoseconds.
USUAL = {MATMUL: 80000, ADD: 20000, GELU: 30000, REDUCE: 200000, SEND: 50000, RECEIVE: 50000, BROADCAST: 90000,
         EXECUTE: 60000}
BYTES = 1 << 20


class Faults:
    """What is planted; each is None or tells where."""

    def __init__(self, **planted):
        self.slow_link = planted.get("slow_link")            # (sending rank, times)
        self.late_rank = planted.get("late_rank")            # rank that comes late to each step
        self.slow_op = planted.get("slow_op")                # (rank or None for all, op, times)
        self.parting = planted.get("parting")                # (rank, step)
        self.other_order = planted.get("other_order")        # (rank, step)
        self.without_graphs = planted.get("without_graphs")  # rank
        self.more_memory = planted.get("more_memory")        # rank
        self.more_results = planted.get("more_results")      # (rank, step); no fault
        self.slow_once = planted.get("slow_once")            # (rank, step, op, times); no fault


class _Rank:
    def __init__(self, run, rank, ranks, steps, faults, seed):
        self.rank, self.ranks, self.faults = rank, ranks, faults
        self.chance = random.Random(f"{seed} {run} {rank}")
        self.rows = {"meta": [("base_ns", str(rank * 10 ** 12)), ("schema_version", "9")],
                     "process": [(1, 100 + rank, rank, "python3")], "thread": [(1, 1, 100, "main")],
                     "op": [(place, "hccl" if name.startswith("Hccl") else "aclmdlRI" if "mdlRI" in name else "aclnn",
                             name, "", "") for place, name in enumerate(OPS, 1)],
                     "layout": [(1, "uint8", f"[{BYTES}]", "[1]", 0, None, 0, None)],
                     "signature": [], "signature_argument": [], "call_row": [], "call_extra": [], "step": [],
                     "device_span": [], "snapshot": [], "buffer_row": [], "stream": [(1, 1, 0, 0, 0, None, None)],
                     "communicator": [(1, 1, 5, "world", rank, ranks)],
                     "stack_location": [(1, "train.py", 12, "train"), (2, "train.py", 30, "train")]}
        for op in range(1, len(OPS) + 1):
            self._signature(op)
        self.call, self.now = 0, 1000
        for step in range(steps):
            self._step(step)
        self._totals()

    def _signature(self, op):
        self.rows["signature"].append((op, op))
        said = []
        if op in (REDUCE, BROADCAST):
            said = [("sendBuf", "tensor", 1, None), ("recvBuf", "tensor", 1, None), ("count", "int", None, BYTES // 4),
                    ("dataType", "int", None, 4), ("comm", "int", None, 1)]
            said.append(("op", "int", None, 0) if op == REDUCE else ("root", "int", None, 0))
        elif op in (SEND, RECEIVE):
            peer = (self.rank + (1 if op == SEND else -1)) % self.ranks
            said = [("sendBuf" if op == SEND else "recvBuf", "tensor", 1, None), ("count", "int", None, BYTES // 4),
                    ("dataType", "int", None, 4), ("destRank" if op == SEND else "srcRank", "int", None, peer),
                    ("comm", "int", None, 1)]
        for position, (name, kind, layout, value) in enumerate(said):
            slot = 0 if layout else None
            self.rows["signature_argument"].append((op, position, name, "in", kind, layout, slot, value, None, None,
                                                    None))

    def _call(self, op, step, device_ns=None):
        self.call += 1
        took = int(USUAL[op] / 10 * self.chance.gauss(1, 0.01))
        leaf = 4 if OPS[op - 1].startswith("aclnn") else 0
        if leaf and self.faults.slow_op is not None:
            rank, slow, times = self.faults.slow_op
            if OPS[op - 1] == slow and rank in (None, self.rank):
                took = int(took * times)
        if self.faults.slow_once and self.faults.slow_once[:3] == (self.rank, step, OPS[op - 1]):
            took = int(took * self.faults.slow_once[3])
        # Graphs are executed inside of the call before; what is sent is the backward work of the first product.
        around = self.call - 1 if op == EXECUTE else None
        forward = 1 if op == SEND else None
        stack = None if around or forward else 2 if op == MATMUL else 1
        self.rows["call_row"].append((self.call, op, 1, around, None, leaf, self.now, took, "[1]", stack, step))
        self.rows["call_extra"].append((self.call, 0, 1, None, None, None, None, forward))
        begin = self.now + took + self.rank * 10 ** 12
        inside = int(USUAL[op] * self.chance.gauss(1, 0.02)) if device_ns is None else device_ns
        self.rows["device_span"].append((self.call, 1, begin, begin + inside, 0))
        self.now += took + 500
        return took

    def _step(self, step):
        first, begin = self.call + 1, self.now
        for _ in range(3):
            for op in (MATMUL, ADD, GELU):
                self._call(op, step)
        if self.rank != self.faults.without_graphs:
            self._call(EXECUTE, step)
        # Who comes last waits for nobody; all ranks draw the same order.
        order = random.Random(f"order {step}").sample(range(self.ranks), self.ranks)
        usual = 0 if self.rank == order[0] else 30000
        # Who is late to a step is late to its first collective alone: then all have met.
        longer = usual if self.faults.late_rank is None else 0 if self.rank == self.faults.late_rank else 400000
        both = [(REDUCE, USUAL[REDUCE] + longer), (BROADCAST, USUAL[BROADCAST] + usual)]
        if self.faults.other_order == (self.rank, step):
            both.reverse()
        for op, inside in both:
            self._call(op, step, inside + self.chance.randrange(200))
            content = f"{op} {step}"
            rank, since = self.faults.parting or (None, 0)
            if rank == self.rank and step >= since:
                content += " parted"
            # A list of two results, which ranks write in another order, and in one step one of them once more.
            results = [(1, hash_of(content)), (2, hash_of(content + " second"))]
            if self.faults.more_results == (self.rank, step):
                results.insert(0, (0, hash_of("another")))
            for buffer, digest in results[::-1] if self.rank % 2 else results:
                self.rows["snapshot"].append((self.call, 1, "after", buffer << 24 | 1, digest, BYTES, 0, 0, 0., 1., .5,
                                              1., 0, 0))
        for op in (SEND, RECEIVE):
            sender = self.rank if op == SEND else (self.rank - 1) % self.ranks
            times = self.faults.slow_link[1] if self.faults.slow_link and self.faults.slow_link[0] == sender else 1
            self._call(op, step, int(USUAL[op] * times * self.chance.gauss(1, 0.02)))
        size = BYTES * (3 if self.faults.more_memory == self.rank else 1)
        self.rows["buffer_row"].append((step + 1, 4096, size, first, self.call, 4 | 1 << 8, begin, 5000, None))
        self.rows["step"].append((step, first, self.call, "range:step"))
        self.now += 2000

    def _totals(self):
        totals, steps = {}, {}
        for call, op, _, _, _, bits, begin, took, _, _, step in self.rows["call_row"]:
            entry = totals.setdefault(op, [0, call, 0, 0, took, took])
            entry[0] += 1
            if bits & 4:
                entry[2:] = [entry[2] + 1, entry[3] + took, min(entry[4], took), max(entry[5], took)]
            entry = steps.setdefault(step, [call, call, 0, 0, begin, begin, 0])
            entry[1:] = [call, entry[2] + 1, entry[3] + (bits >> 2 & 1), entry[4], begin + took,
                         entry[6] + (took if bits & 4 else 0)]
        self.rows["signature_total"] = [(op, *entry) for op, entry in totals.items()]
        self.rows["step_total"] = [(step, first, last, calls, leaves, end - begin, leaf_ns, 3, 0, 0)
                                   for step, (first, last, calls, leaves, begin, end, leaf_ns) in steps.items()]
        self.rows["table_total"] = [("call_row", len(self.rows["call_row"])), ("buffer_row", 0)]


def hash_of(text):
    return hashlib.md5(text.encode()).hexdigest()


def write(folder, run, ranks=6, steps=12, seed=0, recorded=None, label="main", **planted):
    faults = Faults(**planted)
    for rank in range(ranks):
        slow_writer.write_rows(folder, _Rank(run, rank, ranks, steps, faults, seed).rows, run, rank, label=label,
                               recorded=recorded, world_size=ranks, trace={"path": f"/traces/{run}.rank{rank}.db"})
