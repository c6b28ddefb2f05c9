#!/usr/bin/env python3
"""Generates tokens with vLLM, offline, and with transformers on the CPU; says whether they are equal.

The model is small and random: its configuration and weights are written to a folder first, as a
downloaded model lies there. Prompts are ids of tokens, so that no tokenizer is needed. Prints the
tokens of each prompt, the seconds until the model was up, and at the end "equal", "near" where
log-probabilities are held against each other (features.py), or "different".
"""
import argparse
import multiprocessing
import os
import tempfile
import time

import features

MODES = ["eager", "PIECEWISE", "FULL_DECODE_ONLY", "FULL_AND_PIECEWISE", "FULL"]
PROMPTS = [[1, 5, 9, 200, 33, 7, 80], [2, 11], [3, 4, 5, 6, 7, 8, 9, 10, 90, 91, 92, 93, 94]]
COMMON = {
    "vocab_size": 512, "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64,
    "max_position_embeddings": 512, "bos_token_id": 1, "eos_token_id": 2,
    "tie_word_embeddings": False, "initializer_range": 0.08,
}


def write_model(name, dtype, folder):
    """A model of this family with random weights, saved to the folder; the model itself."""
    import torch
    import transformers
    families = {
        "llama": (transformers.LlamaConfig, transformers.LlamaForCausalLM),
        "qwen2": (transformers.Qwen2Config, transformers.Qwen2ForCausalLM),
        "qwen3": (transformers.Qwen3Config, transformers.Qwen3ForCausalLM),
    }
    config_class, model_class = families[name]
    torch.manual_seed(0)
    config = config_class(**COMMON)
    if name == "qwen2":
        config.head_dim = COMMON["hidden_size"] // COMMON["num_attention_heads"]
    model = model_class(config).to(getattr(torch, dtype)).eval()
    model.save_pretrained(folder)
    return model


def tokens_of_transformers(options, folder):
    """Writes the model and what its features need, and generates with it on the CPU."""
    import torch
    chosen = features.Chosen(options.feature)
    prompts = chosen.prompts(PROMPTS)
    models = chosen.models(write_model(options.model, options.dtype, folder), folder, len(prompts))
    if chosen.tolerance() is not None:
        return features.save_references(models, folder)
    answers = []
    for prompt, model in zip(prompts, models):
        ids = torch.tensor([prompt])
        made = model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False,
                              max_new_tokens=options.tokens, min_new_tokens=options.tokens,
                              pad_token_id=0, eos_token_id=None)
        answers.append(made[0, len(prompt):].tolist())
    return answers


def answers_of_vllm(folder, options):
    """The answers to all prompts, for each round."""
    from vllm import LLM, SamplingParams
    chosen = features.Chosen(options.feature)
    graphs = {"cudagraph_mode": "NONE" if options.mode == "eager" else options.mode,
              "cudagraph_capture_sizes": [1, 2, 4]}
    begin = time.monotonic()
    engine = LLM(**{"model": folder, "skip_tokenizer_init": True, "dtype": options.dtype, "max_model_len": 256,
                    "gpu_memory_utilization": 0.02, "num_gpu_blocks_override": 32, "max_num_seqs": 4,
                    "enforce_eager": options.mode == "eager", "seed": 0, "compilation_config": graphs,
                    **chosen.engine(folder)})
    print(f"up after {time.monotonic() - begin:.1f} s", flush=True)
    sampling = SamplingParams(**{"temperature": 0, "max_tokens": options.tokens, "ignore_eos": True,
                                 "detokenize": False, **chosen.sampling()})
    prompts = [{"prompt_token_ids": prompt} for prompt in chosen.prompts(PROMPTS)]
    rounds = []
    for _ in range(chosen.rounds()):
        begin = time.monotonic()
        rounds.append(engine.generate(prompts, sampling, use_tqdm=False,
                                      lora_request=chosen.adapters(folder, len(prompts))))
        print(f"generated {options.tokens * len(prompts)} tokens in {time.monotonic() - begin:.2f} s", flush=True)
    features.print_figures(engine, rounds)
    return rounds


def arguments():
    """The program's options; tests/vllm/table.py takes its models, features and modes from them."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--mode", choices=MODES, default="eager")
    parser.add_argument("--model", choices=["llama", "qwen2", "qwen3"], default="llama")
    parser.add_argument("--dtype", choices=["float16", "bfloat16"], default="float16")
    parser.add_argument("--tokens", type=int, default=12)
    parser.add_argument("--feature", choices=list(features.FEATURES), action="append", default=[],
                        help="switches a feature on; may be given several times")
    parser.add_argument("--one-process", action="store_true",
                        help="runs the engine in this process, not in one of its own")
    return parser


def main():
    options = arguments().parse_args()
    if options.one_process:
        os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
    with tempfile.TemporaryDirectory(prefix="vllm_model_") as folder:
        # vLLM forks its engine, and a fork cannot use the threads with which torch has computed before.
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            expected = pool.apply(tokens_of_transformers, (options, folder))
        rounds = answers_of_vllm(folder, options)
        prompts = features.Chosen(options.feature).prompts(PROMPTS)
        for prompt, answer in zip(prompts, rounds[-1]):
            print(f"{len(prompt)} tokens, then {list(answer.outputs[0].token_ids)}")
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            print(pool.apply(features.verdict, (options.feature, folder, prompts, expected,
                                                features.plain(rounds))))


if __name__ == "__main__":
    main()
