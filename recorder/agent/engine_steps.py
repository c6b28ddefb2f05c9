"""Opens ranges around the steps of vLLM's engine, in the recorded program. No file of vLLM is changed.

The agent runs this text when libtorch has been loaded. It does nothing until the program imports one of the
modules below, which vLLM's engine has in each process that executes a model. The worker is then followed by
what it has: no version is asked for. A recorded program has these ranges:

    vllm.step prefill=7 decode=2 requests=3    from the worker's execute_model until its sample_tokens returns
    vllm.forward rows=4 graph=FULL             the model's forward: rows with padding, the mode of graphs
    vllm.warm-up rows=4                        a run without requests (_dummy_run)
    vllm.profile, vllm.capture                 the engine measures its memory; it captures its graphs

Steps are those of the trace (recorder/wire/step_name.h). analyzer/steps/engine_step.h reads the names.
"""
import functools
import sys
import threading

WORKER_MODULE = "vllm.v1.worker.worker_base"
FORWARD_MODULE = "vllm.forward_context"


class Agent:
    """The functions of the recorder in this process."""

    def __init__(self):
        import ctypes
        process = ctypes.PyDLL(None)
        self.range_begin, self.range_end, self.note = (
            process.acltape_agent_range_begin, process.acltape_agent_range_end, process.acltape_agent_note)
        self.range_begin.argtypes = [ctypes.c_char_p]
        self.note.argtypes = [ctypes.c_char_p] * 4

    def begin(self, name):
        self.range_begin(name.encode())

    def end(self):
        self.range_end()

    def lacks(self, subject, what):
        """Notes in the trace that the steps of an engine are not in it."""
        self.note(b"engine_steps_not_followed", subject.encode(), what.encode(),
                  b"mark the steps in the program: acltape.step(), or record with --steps-from NAME")

    def around(self, call, name_of):
        """`call` inside a range whose name `name_of` makes from the arguments of a call."""
        @functools.wraps(call)
        def inside_range(*arguments, **named):
            self.begin(name_of(*arguments, **named))
            try:
                return call(*arguments, **named)
            finally:
                self.end()
        return inside_range


class Requests:
    """The requests that an engine works on: how many tokens of a step are prompt, how many are generated."""

    def __init__(self):
        self.prompts = {}  # tokens of the prompt, by request

    def take(self, scheduled):
        for request in getattr(scheduled, "finished_req_ids", ()):
            self.prompts.pop(request, None)
        for new in scheduled.scheduled_new_reqs:
            tokens = getattr(new, "prompt_token_ids", None)
            tokens = getattr(new, "prompt_embeds", None) if tokens is None else tokens
            self.prompts[new.req_id] = len(tokens) if tokens is not None else 0

    def counts(self, scheduled):
        """Numbers of prefill tokens, decode tokens and requests."""
        self.take(scheduled)
        first = {new.req_id for new in scheduled.scheduled_new_reqs}
        known = scheduled.scheduled_cached_reqs
        if isinstance(known, list):
            computed = {request.req_id: request.num_computed_tokens for request in known}
        else:
            computed = dict(zip(known.req_ids, known.num_computed_tokens))
        resumed = getattr(known, "resumed_req_ids", ())
        prefill = decode = 0
        for request, tokens in scheduled.num_scheduled_tokens.items():
            if request in first or request in resumed or computed[request] < self.prompts.get(request, 0):
                prefill += tokens
            else:
                decode += tokens
        return prefill, decode, len(scheduled.num_scheduled_tokens)


class Steps:
    """The steps of one worker. A step is open from its execution until the tokens are sampled."""

    def __init__(self, agent, samples):
        self.agent, self.samples = agent, samples
        self.requests = Requests()
        self.thread = None  # in which a step is open
        self.told = False

    def close(self):
        if self.thread == threading.get_ident():
            self.thread = None
            self.agent.end()

    def name_of(self, scheduled):
        try:
            prefill, decode, requests = self.requests.counts(scheduled)
        except Exception as error:  # noqa: BLE001  what another version hands over is not known
            if not self.told:
                self.told = True
                self.agent.note(b"engine_step_unknown", b"vllm",
                                f"the tokens of steps are not known: {error!r}".encode(),
                                b"the steps are those of the engine nevertheless")
            return "vllm.step"
        if prefill + decode == 0:
            return "vllm.update"
        return f"vllm.step prefill={prefill} decode={decode} requests={requests}"

    def executing(self, execute):
        @functools.wraps(execute)
        def execute_model(scheduled, *arguments, **named):
            self.close()  # one whose tokens were never sampled
            self.agent.begin(self.name_of(scheduled))
            self.thread = threading.get_ident()
            waits = False
            try:
                result = execute(scheduled, *arguments, **named)
                waits = result is None and self.samples
            finally:
                if not waits:
                    self.close()
            return result
        return execute_model

    def sampling(self, sample):
        @functools.wraps(sample)
        def sample_tokens(*arguments, **named):
            try:
                return sample(*arguments, **named)
            finally:
                self.close()
        return sample_tokens


def forward_name(*arguments, **named):
    """The name of a forward's range: its rows and its mode, as far as the engine's context says them."""
    parts = ["vllm.forward"]
    try:
        context = sys.modules[FORWARD_MODULE].get_forward_context()
    except (KeyError, AttributeError, AssertionError):
        context = None
    rows = getattr(getattr(context, "batch_descriptor", None), "num_tokens", None)
    if rows is None:
        shapes = (getattr(value, "shape", None) for value in (*arguments, *named.values()))
        rows = next((shape[0] for shape in shapes if shape), None)
    if rows is not None:
        parts.append(f"rows={int(rows)}")
    mode = getattr(getattr(context, "cudagraph_runtime_mode", None), "name", None)
    if mode is not None:
        parts.append(f"graph={mode}")
    return " ".join(parts)


def warm_up_name(*arguments, **named):
    rows = arguments[0] if arguments else named.get("num_tokens")
    return f"vllm.warm-up rows={rows}" if isinstance(rows, int) else "vllm.warm-up"


RUNNER_RANGES = {
    "_model_forward": forward_name,
    "_dummy_run": warm_up_name,
    "profile_run": lambda *arguments, **named: "vllm.profile",
    "capture_model": lambda *arguments, **named: "vllm.capture",
}


def follow(agent, worker):
    """Puts the ranges around what this worker and its model runner have. Only the two objects are changed."""
    execute = getattr(worker, "execute_model", None)
    if not callable(execute):
        agent.lacks(type(worker).__qualname__, "this worker has no function execute_model")
        return
    sample = getattr(worker, "sample_tokens", None)
    steps = Steps(agent, callable(sample))
    worker.execute_model = steps.executing(execute)
    if callable(sample):
        worker.sample_tokens = steps.sampling(sample)
    runner = getattr(worker, "model_runner", None)
    for name, name_of in RUNNER_RANGES.items():
        call = getattr(runner, name, None)
        if callable(call):
            setattr(runner, name, agent.around(call, name_of))


def change_workers(module):
    """A worker is followed once it has made its model runner: at the end of init_device."""
    agent = Agent()
    wrapper = getattr(module, "WorkerWrapperBase", None)
    begin = getattr(wrapper, "init_device", None)
    if begin is None:
        agent.lacks("vllm", f"the module {WORKER_MODULE} has no WorkerWrapperBase.init_device")
        return

    @functools.wraps(begin)
    def init_device(self, *arguments, **named):
        result = begin(self, *arguments, **named)
        try:
            follow(agent, getattr(self, "worker", self))
        except Exception as error:  # noqa: BLE001  the program goes on without the ranges
            agent.lacks("vllm", f"the worker could not be followed: {error!r}")
        return result

    wrapper.init_device = init_device


def look_for_worker(module):
    """Says at once when this vllm has no module in which a worker could be found."""
    import os
    parts = WORKER_MODULE.split(".")[1:]
    if not any(os.path.exists(os.path.join(folder, *parts) + ".py") for folder in getattr(module, "__path__", ())):
        Agent().lacks("vllm", f"it has no module {WORKER_MODULE}")


CHANGES = {"vllm": look_for_worker, WORKER_MODULE: change_workers}


class Finder:
    """Finds the modules of the table as Python does, and has them changed after they are loaded."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        change = CHANGES.get(name)
        if change is None:
            return None
        for other in sys.meta_path:
            if other is cls or not hasattr(other, "find_spec"):
                continue
            spec = other.find_spec(name, path, target)
            if spec is not None:
                break
        else:
            return None
        load = getattr(spec.loader, "exec_module", None)
        if load is None:
            return spec

        def load_and_change(module):
            load(module)
            change(module)

        spec.loader.exec_module = load_and_change
        return spec


def start():
    sys.meta_path.insert(0, Finder)
    for name, change in CHANGES.items():
        module = sys.modules.get(name)
        if module is not None:
            change(module)


start()
