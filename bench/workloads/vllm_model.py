#!/usr/bin/env python3
"""Writes a small Llama with random weights to a folder, with a tokenizer of bytes, as vLLM serves it.

Beside it, in expected.json, lies what transformers generates with it on the CPU: for each prompt its
text, and the numbers of the tokens that follow. vllm_ask.py asks a server the same.
"""
import argparse
import json
import os

import tokenizers
import torch
import transformers

PROMPTS = ["Captured once, replayed often.", "Ascend", "Which stream waits for which event?"]


def write_tokenizer(folder):
    """Each byte is a token, after three special ones; gives the tokenizer."""
    words = ["<pad>", "<s>", "</s>"] + sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    bytewise = tokenizers.Tokenizer(
        tokenizers.models.BPE({word: number for number, word in enumerate(words)}, []))
    bytewise.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    bytewise.decoder = tokenizers.decoders.ByteLevel()
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=bytewise, pad_token="<pad>", bos_token="<s>", eos_token="</s>")
    tokenizer.save_pretrained(folder)
    return tokenizer


def write_model(folder, vocabulary):
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=vocabulary, hidden_size=256, intermediate_size=512, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, head_dim=64, max_position_embeddings=512,
        bos_token_id=1, eos_token_id=2, tie_word_embeddings=False, initializer_range=0.08)
    model = transformers.LlamaForCausalLM(config).half().eval()
    model.save_pretrained(folder)
    return model


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("folder", help="the folder, which is made if it is missing")
    parser.add_argument("--tokens", type=int, default=12, help="how many to generate (%(default)s)")
    options = parser.parse_args()
    os.makedirs(options.folder, exist_ok=True)
    tokenizer = write_tokenizer(options.folder)
    model = write_model(options.folder, -(-len(tokenizer) // 64) * 64)
    answers = []
    for prompt in PROMPTS:
        ids = torch.tensor([tokenizer.encode(prompt)])
        made = model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False,
                              max_new_tokens=options.tokens, min_new_tokens=options.tokens,
                              pad_token_id=0, eos_token_id=None)
        answers.append({"prompt": prompt, "tokens": made[0, ids.shape[1]:].tolist()})
    with open(os.path.join(options.folder, "expected.json"), "w", encoding="utf-8") as file:
        json.dump(answers, file, indent=1)
    print(f"{options.folder}: a Llama of {sum(p.numel() for p in model.parameters()):,} weights")


if __name__ == "__main__":
    main()
