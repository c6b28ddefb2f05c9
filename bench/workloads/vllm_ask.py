#!/usr/bin/env python3
"""Asks a server of vLLM, by the client of OpenAI, what vllm_model.py asked transformers.

Waits until the server is up. Prints the tokens of each prompt, and whether they are those of
transformers; ends with 1 where they are not, and with 2 where no server comes up.
"""
import argparse
import json
import os
import sys
import time

import openai


def wait_for(client, seconds, pid):
    """The name of the model that the server has, as soon as it answers."""
    begin = time.monotonic()
    while time.monotonic() - begin < seconds:
        try:
            model = client.models.list().data[0].id
            print(f"the server answers after {time.monotonic() - begin:.0f} s", flush=True)
            return model
        except openai.APIConnectionError:
            time.sleep(0.5)
        if pid and not os.path.exists(f"/proc/{pid}"):
            break
    print("no server came up", file=sys.stderr)
    sys.exit(2)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("folder", help="the folder that vllm_model.py wrote")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--wait", type=float, default=300, help="seconds for the server to come up")
    parser.add_argument("--pid", type=int, help="gives up as soon as this process has ended")
    options = parser.parse_args()
    client = openai.OpenAI(base_url=f"http://127.0.0.1:{options.port}/v1", api_key="none",
                           max_retries=0)
    model = wait_for(client, options.wait, options.pid)
    with open(os.path.join(options.folder, "expected.json"), encoding="utf-8") as file:
        expected = json.load(file)
    answer = client.completions.create(
        model=model, prompt=[question["prompt"] for question in expected], temperature=0,
        max_tokens=len(expected[0]["tokens"]),
        extra_body={"ignore_eos": True, "return_token_ids": True})
    same = True
    for question, choice in zip(expected, sorted(answer.choices, key=lambda choice: choice.index)):
        found = choice.model_extra["token_ids"]
        equal = found == question["tokens"]
        same = same and equal
        print(f"{question['prompt']!r}, then {found}: "
              + ("equal" if equal else f"different, transformers has {question['tokens']}"))
    sys.exit(0 if same else 1)


if __name__ == "__main__":
    main()
