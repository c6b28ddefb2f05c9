#!/usr/bin/env python3
"""Generates tokens with vLLM, offline, and compares them with those of transformers on the CPU.

The model is small and random (models.py): its configuration and weights are written to a folder
first, as a downloaded model lies there. Prompts are ids of tokens, so that no tokenizer is needed.
Prints the tokens of each prompt, the seconds until the model was up, and at the end one of

    equal                                        the same tokens
    log-probabilities within 0.004 (bound 0.02)  for bfloat16, models whose tokens part (models.py) and with
                                                 --log-probabilities: of the tokens that vLLM chose, against
                                                 transformers for the same text
    vectors within 0.0001 (bound 0.002)          for models that embed their prompts
    near: ...                                    for features that cannot have the same tokens (features.py)
    different: ...                               none of these
"""
import argparse
import math
import multiprocessing
import os
import sys
import tempfile
import types

import bounds
import data_parallel
import featured
from engine import make_engine, timed
from features import FEATURES
from models import (FAMILIES, engine_options, inputs_of_transformers, inputs_of_vllm, make_model, prompts_of,
                    write_model)

# What a device of the plug-in's classes calls itself.
CLASSES = {"A2": "Ascend910B1", "A3": "Ascend910_9391"}
MODES = ["eager", "PIECEWISE", "FULL_DECODE_ONLY", "FULL_AND_PIECEWISE", "FULL"]


def answers_of_transformers(options, folder):
    """Writes the model, and gives the tokens or the vector for each prompt, computed on the CPU."""
    import torch
    model = write_model(options.model, options.dtype, folder, options.wrong_weight)
    answers = []
    for index, prompt in enumerate(prompts_of(options.model)):
        inputs = inputs_of_transformers(options.model, options.dtype, folder, index, prompt)
        if FAMILIES[options.model].embeds:
            with torch.no_grad():
                last = model.model(**inputs).last_hidden_state[0, -1].float()
            answers.append((last / last.norm()).tolist())
            continue
        made = model.generate(**inputs, do_sample=False, max_new_tokens=options.tokens,
                              min_new_tokens=options.tokens, pad_token_id=0, eos_token_id=None)
        answers.append(made[0, -options.tokens:].tolist())
    return answers


def log_probabilities_of_transformers(options, folder, tokens):
    """The logarithms of the probabilities that the model gives these tokens, one after the other."""
    import torch
    model = make_model(options.model, options.dtype)
    answers = []
    for index, (prompt, chosen) in enumerate(zip(prompts_of(options.model), tokens)):
        inputs = inputs_of_transformers(options.model, options.dtype, folder, index, prompt, chosen)
        with torch.no_grad():
            logits = model(**inputs).logits[0].float()
        each = logits.log_softmax(-1)[-len(chosen) - 1:-1]
        answers.append([each[i, token].item() for i, token in enumerate(chosen)])
    return answers


def engine_of(folder, options):
    more = {"runner": "pooling", "convert": "embed"} if FAMILIES[options.model].embeds else {}
    more["enable_expert_parallel"] = options.expert_parallel
    if options.tensor_parallel > 1:
        more |= {"tensor_parallel_size": options.tensor_parallel, "distributed_executor_backend": "mp"}
    if options.paged_attention:
        more["additional_config"] = {"pa_shape_list": [1, 2, 4]}
    return make_engine(folder, options, **engine_options(options.model), **more)


def prompts_of_vllm(options):
    return inputs_of_vllm(options.model, prompts_of(options.model))


def tokens_of_vllm(folder, options):
    """For each prompt the tokens and the logarithms of their probabilities."""
    if options.data_parallel > 1:
        return data_parallel.share_out(tokens_of_prompts, options.data_parallel, folder, options)
    return tokens_of_prompts(folder, options, range(len(prompts_of(options.model))))


def tokens_of_prompts(folder, options, chosen):
    """The same for some prompts, by their numbers."""
    from vllm import SamplingParams
    sampling = SamplingParams(temperature=0, max_tokens=options.tokens, ignore_eos=True,
                              detokenize=False, logprobs=0 if options.log_probabilities else None)
    prompts = [prompts_of_vllm(options)[i] for i in chosen]
    engine = engine_of(folder, options)
    made = timed(engine.generate, options.tokens * len(prompts), prompts, sampling, use_tqdm=False)
    tokens = [list(answer.outputs[0].token_ids) for answer in made]
    for i, answer in zip(chosen, tokens):
        print(f"{len(prompts_of(options.model)[i])} tokens, then {answer}")
    if not options.log_probabilities:
        return tokens, None
    return tokens, [[place[token].logprob for place, token in zip(answer.outputs[0].logprobs, chosen)]
                    for answer, chosen in zip(made, tokens)]


def vectors_of_vllm(folder, options):
    made = engine_of(folder, options).embed(prompts_of_vllm(options), use_tqdm=False)
    return [list(answer.outputs.embedding) for answer in made]


def verdict(what, found, expected, bound):
    """A line that says how far the numbers lie apart; numbers that are none are infinitely far."""
    distances = [abs(a - b) for one, other in zip(found, expected, strict=True)
                 for a, b in zip(one, other, strict=True)]
    apart = math.inf if any(map(math.isnan, distances)) else max(distances)
    words = f"{what} within {apart:.2g} (bound {bound:.2g})"
    return words if apart <= bound else f"different: {words}"


def pretend(device_class):
    """Makes the soft device one of this class, and the plug-in one that was installed for the class."""
    os.environ["ACLTAPE_SOFT_SOC_NAME"] = CLASSES[device_class]
    installed = types.ModuleType("vllm_ascend._build_info")
    installed.__device_type__ = device_class
    sys.modules[installed.__name__] = installed  # vLLM's processes are forks of this one


def in_process(function, *arguments):
    # vLLM forks its engine, and a fork cannot use the threads with which torch has computed before.
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(function, arguments)


def compare(options, folder):
    if options.feature:
        return featured.compare(options, folder, in_process)
    expected = in_process(answers_of_transformers, options, folder)
    if FAMILIES[options.model].embeds:
        return verdict("vectors", vectors_of_vllm(folder, options), expected, bounds.VECTORS[options.dtype])
    tokens, logarithms = tokens_of_vllm(folder, options)
    if logarithms:
        expected = in_process(log_probabilities_of_transformers, options, folder, tokens)
        return verdict("log-probabilities", logarithms, expected, bounds.LOGARITHMS[options.dtype])
    return "equal" if tokens == expected else f"different: transformers has {expected}"


def arguments():
    """The program's options; tests/vllm/table.py takes its models, features and modes from them."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--mode", choices=MODES, default="eager")
    parser.add_argument("--model", choices=list(FAMILIES), default="llama")
    parser.add_argument("--dtype", choices=list(bounds.UNITS), help="default: what the model's row in models.py says")
    parser.add_argument("--tokens", type=int, default=12)
    parser.add_argument("--one-process", action="store_true",
                        help="runs the engine in this process, not in one of its own")
    parser.add_argument("--tensor-parallel", type=int, default=1, metavar="RANKS",
                        help="so many ranks share each layer, each in a process of its own")
    parser.add_argument("--data-parallel", type=int, default=1, metavar="RANKS",
                        help="so many engines share the prompts; experts are spread over all of them")
    parser.add_argument("--expert-parallel", action="store_true",
                        help="with several ranks: each has some of the experts whole")
    parser.add_argument("--device-class", choices=list(CLASSES),
                        help="A3: experts of several ranks exchange tokens by operators; default: as it is installed")
    parser.add_argument("--paged-attention", action="store_true",
                        help="with FULL_DECODE_ONLY: graphs call ATB's paged attention, not the fused one")
    parser.add_argument("--log-probabilities", action="store_true",
                        help="compares logarithms of probabilities, as is done for bfloat16")
    parser.add_argument("--wrong-weight", action="store_true",
                        help="gives vLLM a model with a wrong matrix, which the comparison must find")
    parser.add_argument("--wrong-scale", type=float, metavar="FACTOR",
                        help="multiplies a scale of a quantised layer that vLLM reads, which the comparison must find")
    parser.add_argument("--without-adapter", action="store_true",
                        help="asks vLLM without the adapter of lora, which the comparison must find")
    parser.add_argument("--feature", choices=list(FEATURES), action="append", default=[],
                        help="switches a feature on; may be given several times")
    return parser


def check(parser, options):
    """A control that changes nothing would pass for a comparison that finds nothing."""
    quantised = {"w8a8", "w8a8-dynamic"} & set(options.feature)
    if options.wrong_scale and not quantised:
        parser.error("--wrong-scale needs a quantised model: --feature w8a8")
    if options.wrong_weight and quantised:
        parser.error("a quantised model has no wrong weight; take --wrong-scale")
    if options.without_adapter and not {"lora", "lora-mixed"} & set(options.feature):
        parser.error("--without-adapter needs an adapter: --feature lora")


def main():
    parser = arguments()
    options = parser.parse_args()
    check(parser, options)
    options.dtype = options.dtype or FAMILIES[options.model].dtype
    if options.dtype == "bfloat16" or FAMILIES[options.model].parts:
        options.log_probabilities = True
    if options.device_class:
        pretend(options.device_class)
    if options.one_process:
        os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
    with tempfile.TemporaryDirectory(prefix="vllm_model_") as folder:
        print(compare(options, folder))


if __name__ == "__main__":
    main()
