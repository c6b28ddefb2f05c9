"""Layers that models other than transformers have, and routing to experts, on CPU and NPU."""
import torch
import torch_npu
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


def tensors_of(value):
    if torch.is_tensor(value):
        return [value]
    return [tensor for member in value for tensor in tensors_of(member)]


def trained(module, *inputs):
    """The results of a module, and the gradients of its parameters."""
    results = tensors_of(module(*inputs))
    sum(result.square().sum() for result in results).backward()
    return results + [parameter.grad for parameter in module.parameters()]


def bags(device):
    indices = torch.tensor([1, 2, 4, 5, 4, 3, 2, 9], device=device)
    starts = torch.tensor([0, 4, 4], device=device)
    found = []
    for mode in ("sum", "mean", "max"):
        bag = nn.EmbeddingBag(10, 4, mode=mode, padding_idx=3).to(device)
        found += trained(bag, indices, starts)
        with torch.no_grad():
            found.append(bag(indices, starts))
    weighted = nn.EmbeddingBag(10, 4, mode="sum").to(device)
    factors = torch.linspace(-1, 1, 8).to(device)
    return found + [weighted(indices, starts, per_sample_weights=factors)]


def recurrent(device):
    """One layer in one direction, several in both: torch_npu takes another way for each."""
    found = []
    for kind in (nn.GRU, nn.LSTM):
        for layers, both in ((1, False), (2, True)):
            layer = kind(5, 6, layers, bidirectional=both, batch_first=True).to(device)
            steps = torch.randn(3, 4, 5).to(device).requires_grad_()
            found += [*trained(layer, steps), steps.grad]
    return found


class Packed(nn.Module):
    """An LSTM over sequences of 4, 2 and 1 steps."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(5, 6)

    def forward(self, steps):
        packed, state = self.lstm(pack_padded_sequence(steps, torch.tensor([4, 2, 1])))
        return pad_packed_sequence(packed)[0], state


def packed(device):
    # The gradient of the input is left out: torch_npu packs with gaps, and PyTorch's gradient of the
    # packing does not know of them.
    return trained(Packed().to(device), torch.randn(4, 3, 5).to(device))


def volumes(device):
    volume = torch.randn(2, 3, 5, 6, 7).to(device).requires_grad_()
    return [*trained(nn.AdaptiveAvgPool3d((2, 3, 2)), volume), volume.grad]


def same_on_both(name, layers):
    found = []
    for device in ("cpu", "npu"):
        torch.manual_seed(0)
        found.append([tensor.detach().cpu() for tensor in layers(device)])
    for cpu, npu in zip(*found, strict=True):
        torch.testing.assert_close(npu, cpu, rtol=1e-4, atol=1e-5)
    print(name)


def experts():
    """Tokens to their experts and back, by the adapter's own operators."""
    tokens, scores = torch.randn(6, 16), torch.randn(6, 8)
    weights, chosen, _ = torch_npu.npu_moe_gating_top_k_softmax(scores.npu(), k=2)
    expected = torch.softmax(scores, -1).topk(2)
    torch.testing.assert_close(weights.cpu(), expected.values)
    assert torch.equal(chosen.cpu().long(), expected.indices)

    order = torch.argsort(expected.indices.flatten(), stable=True)
    routed, rows, counts, _ = torch_npu.npu_moe_init_routing_v2(
        tokens.npu(), chosen, active_num=12, expert_num=8, expert_capacity=0, drop_pad_mode=0,
        expert_tokens_num_type=1, expert_tokens_num_flag=True, quant_mode=-1,
        active_expert_range=[0, 8], row_idx_type=0)
    assert torch.equal(routed.cpu(), tokens[order // 2])
    assert torch.equal(counts.cpu(), torch.bincount(expected.indices.flatten(), minlength=8))
    back = torch_npu.npu_moe_finalize_routing(routed, None, None, None, weights, rows, chosen,
                                              drop_pad_mode=2)
    torch.testing.assert_close(back.cpu(), tokens * expected.values.sum(-1, keepdim=True))

    leaf = tokens.npu().requires_grad_()
    permuted, where = torch_npu.npu_moe_token_permute(leaf, chosen)
    torch_npu.npu_moe_token_unpermute(permuted, where, probs=weights).sum().backward()
    torch.testing.assert_close(leaf.grad.cpu(), expected.values.sum(-1, keepdim=True).expand(6, 16))
    print("experts")


def attention_of(query, key, value, ends):
    parts, first = [], 0
    for end in ends:
        heads = [tensor[first:end].transpose(0, 1) for tensor in (query, key, value)]
        parts.append(nn.functional.scaled_dot_product_attention(*heads, is_causal=True))
        first = end
    return torch.cat(parts, 1).transpose(0, 1)


def packed_attention():
    """Two sequences that follow each other, each with a causal mask, forward and backward."""
    ends = [3, 7]
    cpu = [torch.randn(7, 4, 16).requires_grad_() for _ in range(3)]
    npu = [tensor.detach().npu().requires_grad_() for tensor in cpu]
    later = torch.ones(2048, 2048, dtype=torch.bool).triu(1).npu()
    found = torch_npu.npu_fusion_attention(
        *npu, 4, "TND", scale=0.25, atten_mask=later, sparse_mode=2, actual_seq_qlen=ends,
        actual_seq_kvlen=ends)[0]
    expected = attention_of(*cpu, ends)
    torch.testing.assert_close(found.cpu(), expected, rtol=1e-4, atol=1e-5)
    gradient = torch.randn(7, 4, 16)
    found.backward(gradient.npu())
    expected.backward(gradient)
    for ours, wanted in zip(npu, cpu):
        torch.testing.assert_close(ours.grad.cpu(), wanted.grad, rtol=1e-4, atol=1e-5)
    print("packed attention")


def block_sparse_attention():
    """Blocks of 3 queries and 128 keys, of which a mask names those that take part."""
    blocks = torch.tensor([[1, 0], [1, 1]], dtype=torch.int8).expand(1, 4, 2, 2).contiguous()
    half = [torch.randn(1, heads, rows, 128).half() for heads, rows in ((4, 5), (2, 130), (2, 130))]
    cpu = [tensor.float().requires_grad_() for tensor in half]
    npu = [tensor.npu().requires_grad_() for tensor in half]
    found = torch_npu.npu_block_sparse_attention(
        *npu, blocks.npu(), [3, 128], q_input_layout="BNSD", kv_input_layout="BNSD",
        num_key_value_heads=2, scale_value=0.1, inner_precise=0, softmax_lse_flag=1)[0]
    take_part = blocks.bool().repeat_interleave(3, 2).repeat_interleave(128, 3)[..., :5, :130]
    query, key, value = cpu
    expected = nn.functional.scaled_dot_product_attention(
        query, key.repeat_interleave(2, 1), value.repeat_interleave(2, 1), take_part, scale=0.1)
    torch.testing.assert_close(found.float().cpu(), expected, rtol=1e-2, atol=1e-3)
    gradient = torch.randn(1, 4, 5, 128).half()
    found.backward(gradient.npu())
    expected.backward(gradient.float())
    for ours, wanted in zip(npu, cpu):
        torch.testing.assert_close(ours.grad.float().cpu(), wanted.grad, rtol=1e-2, atol=1e-3)
    print("attention over blocks")


for layers in (bags, recurrent, packed, volumes):
    same_on_both(layers.__name__, layers)
torch.manual_seed(0)
experts()
packed_attention()
block_sparse_attention()
print("equal")
