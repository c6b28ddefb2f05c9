"""The features of vLLM that offline.py switches on: a row each, with the engine's options and what is expected.

Speculation must give the tokens that transformers generates on the CPU. All else is held against the log-probabilities
that transformers gives to the tokens that vLLM chose, with the weights that the feature stands for: an adapter is
merged into them, and quantised products have the same integers (quantised.py). What is sampled depends on the device's
random numbers, and long prompts or an adapter's product that are summed in another order part where two tokens are
nearly as likely.
"""
import dataclasses
import json
import math
import os
import typing

import bounds
import models
from quantised import PRODUCTS, layers_of, quantise, quantise_reference

SEED = 7
# More than one block of the cache (128 tokens) is common to the prompts.
PREFIX = [3 + (37 * place) % 490 for place in range(140)]  # none of them stands for an image
LONG = [PREFIX + [11, 12, 13], PREFIX + [40, 41], PREFIX[:50] + [9, 8, 7]]
# The end of each prompt was there before, with what may follow.
REPEATED = [[5, 6, 7, 8, 9] * 4, [2, 11, 2, 11, 2, 11, 2], [3, 4, 90, 91, 92, 3, 4, 90, 91]]
RANK, ALPHA = 8, 16


@dataclasses.dataclass(frozen=True)
class Feature:
    """One row. Fields that are left out change nothing.

    `engine` gives options of vllm.LLM for the model's folder; `change` is called in the process of transformers
    with the model and its folder, before it generates, and gives back a model for each prompt, or None for the
    model itself; `adapter` says which prompts are asked with the adapter of the folder.
    """
    engine: typing.Callable = lambda folder: {}
    sampling: dict = dataclasses.field(default_factory=dict)
    prompts: typing.Optional[list] = None
    rounds: int = 1
    change: typing.Optional[typing.Callable] = None
    adapter: tuple = ()
    # Called with a model of transformers and the folder before it is asked for log-probabilities.
    load: typing.Optional[typing.Callable] = None
    # How far the log-probability of a token may be from that of transformers in float16; None: the tokens must be
    # equal.
    tolerance: typing.Optional[float] = None
    # How far they may be on average.
    mean: float = math.inf
    # Of tokens that the cache must have had in the last round, at least.
    cached: int = 0


def write_adapter(without):
    """Writes a random adapter in peft's format; the prompts at these places are not asked with it."""
    def change(model, folder):
        import copy
        import safetensors.torch
        import torch
        merged = copy.deepcopy(model)
        torch.manual_seed(1)
        tensors = {}
        with torch.no_grad():
            for path, module in layers_of(merged):
                rows, columns = module.weight.shape
                first = (torch.randn(RANK, columns) * 0.1).to(module.weight.dtype)
                second = (torch.randn(rows, RANK) * 0.1).to(module.weight.dtype)
                tensors[f"base_model.model.{path}.lora_A.weight"] = first
                tensors[f"base_model.model.{path}.lora_B.weight"] = second
                module.weight += ((ALPHA / RANK) * (second.float() @ first.float())).to(module.weight.dtype)
        place = os.path.join(folder, "adapter")
        os.mkdir(place)
        safetensors.torch.save_file(tensors, os.path.join(place, "adapter_model.safetensors"))
        with open(os.path.join(place, "adapter_config.json"), "w", encoding="utf-8") as file:
            json.dump({"peft_type": "LORA", "task_type": "CAUSAL_LM", "r": RANK, "lora_alpha": ALPHA,
                       "bias": "none", "target_modules": list(PRODUCTS), "base_model_name_or_path": folder}, file)
        return [model if place in without else merged for place in range(3)]
    return change


def write_draft(model, folder):
    """A model near to this one, so that some of what it proposes is right and some is not."""
    import copy
    import torch
    draft = copy.deepcopy(model)
    torch.manual_seed(2)
    with torch.no_grad():
        for _, module in layers_of(draft):
            module.weight += torch.randn_like(module.weight) * 0.004
    draft.save_pretrained(os.path.join(folder, "draft"))


FEATURES = {
    "prefix-caching": Feature(
        engine=lambda folder: {"enable_prefix_caching": True}, prompts=LONG, rounds=2, cached=256,
        tolerance=0.05),
    "chunked-prefill": Feature(
        engine=lambda folder: {"enable_chunked_prefill": True, "max_num_batched_tokens": 64}, prompts=LONG,
        tolerance=0.05),
    "sampling": Feature(
        sampling={"temperature": 0.8, "top_k": 5, "top_p": 0.9, "seed": SEED}, rounds=2, tolerance=0.05),
    "lora": Feature(
        engine=lambda folder: {"enable_lora": True, "max_loras": 1, "max_lora_rank": 8},
        change=write_adapter(()), adapter=(0, 1, 2), tolerance=0.05),
    # The plug-in's compiled model seems to keep the number of runs of tokens with one adapter that it was traced with,
    # so this one is right without graphs alone (docs/vllm_ascend.md).
    "lora-mixed": Feature(
        engine=lambda folder: {"enable_lora": True, "max_loras": 1, "max_lora_rank": 8},
        change=write_adapter((1,)), adapter=(0, 2), tolerance=0.05),
    "ngram": Feature(
        engine=lambda folder: {"disable_log_stats": False, "speculative_config": {
            "method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_min": 1, "prompt_lookup_max": 4}},
        prompts=REPEATED),
    "draft-model": Feature(
        engine=lambda folder: {"disable_log_stats": False, "speculative_config": {
            "method": "draft_model", "model": os.path.join(folder, "draft"), "num_speculative_tokens": 3}},
        change=write_draft),
    # A rounding moves an input by a whole step of its integer. The bounds are twice what roundings make of these models
    # (roundings.py); with a scale of down_proj that is wrong by a factor of 1.5 they are farther off on average.
    "w8a8-dynamic": Feature(
        engine=lambda folder: {"quantization": "ascend"}, change=quantise("W8A8_DYNAMIC"),
        load=quantise_reference, tolerance=0.4, mean=0.1),
    "w8a8": Feature(
        engine=lambda folder: {"quantization": "ascend"}, change=quantise("W8A8"),
        load=quantise_reference, tolerance=0.55, mean=0.17),
}


class Chosen:
    """The features of one run, by their names."""

    def __init__(self, names):
        self.rows = [FEATURES[name] for name in names]

    def prompts(self):
        """The prompts that the features need; None for those of the model."""
        return next((row.prompts for row in self.rows if row.prompts), None)

    def rounds(self):
        return max((row.rounds for row in self.rows), default=1)

    def cached(self):
        return max((row.cached for row in self.rows), default=0)

    def tolerance(self, dtype):
        """How far a log-probability may be. It is not less than what the roundings of the dtype make."""
        each = [row.tolerance for row in self.rows if row.tolerance]
        return max(*each, bounds.LOGARITHMS[dtype]) if each else None

    def mean(self):
        return min((row.mean for row in self.rows), default=math.inf)

    def engine(self, folder):
        return {name: value for row in self.rows for name, value in row.engine(folder).items()}

    def sampling(self):
        options = {name: value for row in self.rows for name, value in row.sampling.items()}
        return {**options, "logprobs": 1} if any(row.tolerance for row in self.rows) else options

    def models(self, model, folder, count):
        """Writes what the features need beside the model; a model for each prompt."""
        made = [row.change(model, folder) for row in self.rows if row.change]
        return next((models for models in made if models), [model] * count)

    def adapters(self, folder, count):
        """The request of an adapter for each prompt, or None where no feature has one."""
        adapted = {place for row in self.rows for place in row.adapter}
        if not adapted:
            return None
        from vllm.lora.request import LoRARequest
        request = LoRARequest("adapter", 1, os.path.join(folder, "adapter"))
        return [request if place in adapted else None for place in range(count)]


def save_references(models, folder):
    """Keeps the models of transformers for `verdict`: one folder for each prompt."""
    for place, model in enumerate(models):
        model.save_pretrained(os.path.join(folder, f"reference{place}"))


def print_figures(engine, rounds):
    """What says that a feature was at work: tokens that the cache had, and drafts."""
    for place, answers in enumerate(rounds):
        print(f"round {place + 1}: {sum(answer.num_cached_tokens or 0 for answer in answers)} tokens were cached")
    try:
        metrics = engine.get_metrics()
    except AssertionError:  # where statistics are off, which is how offline engines begin
        return
    for metric in metrics:
        if "spec_decode" in metric.name and hasattr(metric, "value"):
            print(f"{metric.name} {metric.value}")


def plain(rounds):
    """The answers as numbers: for each round and prompt its tokens, their log-probabilities, and what was cached."""
    def of(answer):
        output = answer.outputs[0]
        tokens = list(output.token_ids)
        chances = [step[token].logprob for step, token in zip(output.logprobs or [], tokens)]
        return tokens, chances, answer.num_cached_tokens or 0
    return [[of(answer) for answer in answers] for answers in rounds]


def verdict(options, folder, prompts, expected, rounds):
    """The last line of the program: equal, near, or different with the reason."""
    chosen = Chosen(options.feature)
    tokens = [[answer[0] for answer in answers] for answers in rounds]
    if any(answers != tokens[0] for answers in tokens):
        return f"different: the rounds have {tokens}"
    cached = sum(answer[2] for answer in rounds[-1])
    if cached < chosen.cached():
        return f"different: {cached} tokens were cached, of at least {chosen.cached()}"
    if chosen.tolerance(options.dtype) is not None:
        return _near(options, folder, prompts, rounds[0])
    return "equal" if tokens[0] == expected else f"different: transformers has {expected}"


def _reference(options, folder, place):
    """The model of transformers for the prompt at this place."""
    import torch
    import transformers
    model = getattr(transformers, models.FAMILIES[options.model].model).from_pretrained(
        os.path.join(folder, f"reference{place}"), dtype=getattr(torch, options.dtype))
    for row in Chosen(options.feature).rows:
        if row.load:
            row.load(model, folder)
    return model


def _near(options, folder, prompts, answers):
    """Whether each token is among those that could be chosen, and has the log-probability of transformers."""
    import torch
    chosen = Chosen(options.feature)
    allowed, candidates = chosen.tolerance(options.dtype), chosen.sampling().get("top_k", 1)
    farthest, likeliest, apart = 0.0, 0, []
    for place, (prompt, (tokens, chances, _)) in enumerate(zip(prompts, answers)):
        inputs = models.inputs_of_transformers(options.model, options.dtype, folder, place, prompt, tokens)
        with torch.no_grad():
            logits = _reference(options, folder, place)(**inputs).logits[0, -len(tokens) - 1:-1].float()
        expected = logits.log_softmax(-1)
        for token, chance, row in zip(tokens, chances, expected):
            best = row.topk(candidates).values
            apart.append(abs(float(row[token]) - chance))
            farthest = max(farthest, apart[-1], float(best[-1] - row[token]))
            likeliest += int(row[token] == best[0])
    mean = sum(apart) / len(apart)
    print(f"{likeliest} of {len(apart)} tokens are the likeliest ones; the farthest log-probability is {farthest:.4f} "
          f"from that of transformers, of {allowed} allowed, and {mean:.4f} on average", flush=True)
    if farthest <= allowed and mean <= chosen.mean():
        return "near"
    return f"different: a log-probability is {farthest:.2g} from that of transformers, {mean:.2g} on average"
