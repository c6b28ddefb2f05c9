"""Faults for vLLM and its plug-in for Ascend devices, planted in this process.

A row of FAULTS has a function that plants one, and the mode in which it shows. Where a fault is one
line of an installed function, `edited` compiles a copy of the function with that line changed; the copy
has the file name and the line numbers of the original. Other faults are functions of this file.
"""
import inspect
import textwrap
from dataclasses import dataclass
from typing import Callable

RUNNERS = []  # the model runner of this process, from the moment that its model is loaded


def edited(owner, name, old, new):
    """Replaces a function of a class or module by a copy in which this text is another one."""
    function = getattr(owner, name)
    lines, first = inspect.getsourcelines(function)
    source = textwrap.dedent("".join(lines))
    if source.count(old) != 1 or old.count("\n") != new.count("\n"):
        raise RuntimeError(f"{name} has another text than this fault was made for")
    made = {}
    code = compile("\n" * (first - 1) + source.replace(old, new), inspect.getsourcefile(function), "exec")
    exec(code, function.__globals__, made)
    setattr(owner, name, made[name])


def runner_class():
    from vllm_ascend.worker.model_runner_v1 import NPUModelRunner
    return NPUModelRunner


def keep_runner():
    from vllm.platforms import current_platform
    from vllm_ascend.utils import adapt_patch
    # A worker imports the parts of the plug-in in this order; in another one they do not find each other.
    assert current_platform.device_type == "npu"
    adapt_patch()
    import vllm_ascend.ops  # noqa: F401
    runner = runner_class()
    load = runner.load_model

    def load_model(self, *args, **kwargs):
        load(self, *args, **kwargs)
        RUNNERS.append(self)

    runner.load_model = load_model


def stale_lengths(right):
    """The lengths of the first decode of a batch size are kept for all later ones."""
    from vllm_ascend.attention.attention_v1 import AscendAttentionMetadataBuilder, AscendAttentionState
    build = AscendAttentionMetadataBuilder.build
    kept = {}

    def build_and_keep(self, *args, **kwargs):
        metadata = build(self, *args, **kwargs)
        if metadata.attn_state == AscendAttentionState.DecodeOnly:
            lengths = metadata.seq_lens_list
            metadata.seq_lens_list = kept.setdefault(len(lengths), lengths)
        return metadata

    if not right:
        AscendAttentionMetadataBuilder.build = build_and_keep


def stale_block_table(right):
    """The block table is copied to the device when a request comes or goes, not when one gets a block."""
    from vllm_ascend.worker.block_table import BlockTable
    commit = BlockTable.commit_block_table

    def commit_block_table(self, num_reqs):
        if getattr(self, "committed", None) != num_reqs:
            self.committed = num_reqs
            commit(self, num_reqs)

    if not right:
        BlockTable.commit_block_table = commit_block_table


def slots_refilled(right):
    """The slots are made on the host, and cleared for the next step while they are still being copied."""
    runner = runner_class()
    build = runner._build_attention_metadata

    def build_with_slots(self, num_tokens, *args, **kwargs):
        if not kwargs.get("for_cudagraph_capture"):
            table = self.input_batch.block_table[0]
            if right:
                table.slot_mapping.cpu.fill_(-1)
            table.compute_slot_mapping_draft(self.req_indices.np[:num_tokens], self._positions_np_buf[:num_tokens])
            if not right:
                table.slot_mapping.cpu.fill_(-1)
        return build(self, num_tokens, *args, **kwargs)

    runner._build_attention_metadata = build_with_slots


def update_without_wait(right):
    """Lengths are updated without a wait for the replay before, which may still use the old ones."""
    from vllm_ascend.compilation.acl_graph import ACLGraphWrapper
    if not right:
        edited(ACLGraphWrapper, "__call__", "torch.npu.current_stream().synchronize()", "pass")


def padded_row(right):
    """Rows that fill up a batch get the slot of the last real row, and overwrite its keys and values."""
    if not right:
        edited(runner_class(), "_build_attention_metadata", "slot_mapping[num_tokens:num_tokens_padded].fill_(-1)",
               "slot_mapping[num_tokens:num_tokens_padded] = slot_mapping[num_tokens - 1]")


def replace_weights(right):
    """Loads other weights between two requests: into new tensors, of which the graphs know nothing."""
    import torch
    for layer in RUNNERS[0].get_model().model.layers:
        weight = layer.mlp.down_proj.weight
        new = torch.roll(weight.data, 1, 0)
        if right:
            weight.data.copy_(new)
        else:
            weight.data = new


def item_in_step(right):
    """The longest sequence is asked from the device in each step; the host knows it."""
    if not right:
        edited(runner_class(), "_build_attention_metadata", "self.optimistic_seq_lens_cpu.numpy()[:num_reqs].max()",
               "self.seq_lens[:num_reqs].max()")


def item_in_capture(right):
    """The attention of a layer looks whether there is something to write: the host reads during a capture."""
    from vllm_ascend.attention.attention_v1 import AscendAttentionBackendImpl
    if not right:
        edited(AscendAttentionBackendImpl, "reshape_and_cache", "if len(kv_cache) > 1:",
               "if len(kv_cache) > 1 and attn_metadata.slot_mapping.max().item() >= -1:")


def fp16_overflow(right):
    """A layer scales what it projects up and down again; the large numbers do not fit in float16."""
    from vllm.model_executor.models.llama import LlamaMLP

    def forward(self, x):
        x, _ = self.gate_up_proj(x)
        x = self.act_fn(x)
        if ".1." not in self.down_proj.prefix:
            return self.down_proj(x)[0]
        x = x * 65536.0
        return self.down_proj(x)[0] / 65536.0

    if not right:
        LlamaMLP.forward = forward


def mask_freed(right):
    """The mask of the attention is made anew in each step; the graphs keep the address of an old one."""
    from vllm_ascend.attention.attention_mask import AttentionMaskBuilder
    builder = inspect.getclosurevars(AttentionMaskBuilder).nonlocals["cls"]
    if not right:
        edited(builder, "get_splitfuse_attn_mask", "if self.chunked_prefill_attn_mask is None:",
               "if self is not None:")


HIDDEN_STATES = []


def output_kept(right):
    """Keeps the hidden states of each step for later; they are memory of a graph."""
    runner = runner_class()
    forward = runner._model_forward

    def model_forward(self, *args, **kwargs):
        hidden = forward(self, *args, **kwargs)
        HIDDEN_STATES.append(hidden.clone() if right else hidden)
        return hidden

    runner._model_forward = model_forward


def read_hidden_states(_):
    """Prints what was kept of the last eight steps."""
    import torch
    norms = torch.stack([hidden[0].float().norm() for hidden in HIDDEN_STATES[-8:]])
    print("norms of hidden states:", norms.tolist(), flush=True)


def rope_float16(right):
    """The angles of rotary embeddings are rounded to float16 before their cosine is taken."""
    from vllm.model_executor.layers.rotary_embedding import RotaryEmbedding
    if not right:
        edited(RotaryEmbedding, "_compute_cos_sin_cache", 'freqs = torch.einsum("i,j -> ij", t, inv_freq)',
               'freqs = torch.einsum("i,j -> ij", t, inv_freq).half().float()')


def input_on_other_stream(right):
    """The tokens are copied on a stream of their own, for which nothing waits."""
    import torch
    runner = runner_class()
    prepare = runner._prepare_input_ids
    streams = []

    def prepare_input_ids(self, *args, **kwargs):
        if not streams:
            streams.append(torch.npu.Stream())
        main = torch.npu.current_stream()
        streams[0].wait_stream(main)
        with torch.npu.stream(streams[0]):
            prepare(self, *args, **kwargs)
        if right:
            main.wait_stream(streams[0])

    runner._prepare_input_ids = prepare_input_ids


@dataclass
class Fault:
    plant: Callable = lambda right: None        # before the engine is made
    mode: str = "FULL_DECODE_ONLY"
    between: Callable = lambda right: None      # between two rounds of generation
    after: Callable = lambda right: None        # after the last round
    rounds: int = 1
    engine: dict = None                         # arguments of the engine


FAULTS = {
    "stale-lengths": Fault(stale_lengths),
    "stale-block-table": Fault(stale_block_table),
    "slots-refilled": Fault(slots_refilled),
    "update-without-wait": Fault(update_without_wait),
    "padded-row": Fault(padded_row),
    "weight-replaced": Fault(between=replace_weights, rounds=2),
    "item-in-step": Fault(item_in_step),
    "item-in-capture": Fault(item_in_capture),
    "fp16-overflow": Fault(fp16_overflow, mode="eager"),
    "mask-freed": Fault(mask_freed),
    "output-kept": Fault(output_kept, after=read_hidden_states),
    "rope-float16": Fault(rope_float16, mode="eager"),
    "input-on-other-stream": Fault(input_on_other_stream),
}
