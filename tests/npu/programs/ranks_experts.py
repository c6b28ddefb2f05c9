"""A layer of experts that lie on the ranks of a group, through torch_npu's operators that send tokens to them and bring
the results back, against all experts on the CPU: ranks_experts.py [ranks] [graph]."""
import ranks
import torch
import torch.distributed as dist
import torch_npu

WIDTH, INNER, EACH, CHOICES, TOKENS = 32, 48, 3, 2, 6


def values(salt, shape, dtype=torch.float32):
    return torch.randn(shape, generator=torch.Generator().manual_seed(salt)).to(dtype)


class Layer:
    """All experts and the tokens of all ranks, as any rank knows them."""

    def __init__(self, count, dtype):
        self.dtype, self.experts = dtype, EACH * count
        self.up = [values(e, (WIDTH, INNER), dtype) / 8 for e in range(self.experts)]
        self.down = [values(100 + e, (INNER, WIDTH), dtype) / 8 for e in range(self.experts)]

    def tokens(self, rank):
        """Tokens, the ids of their experts and the weights; the last expert gets none."""
        scores = values(200 + rank, (TOKENS, self.experts - 1)).softmax(-1)
        weights, ids = scores.topk(CHOICES)
        return values(300 + rank, (TOKENS, WIDTH), self.dtype), ids.to(torch.int32), weights.float()

    def expected(self, rank, active):
        """The sums for the tokens of a rank, by one process that has all experts; tokens from `active` on are zeros."""
        x, ids, weights = self.tokens(rank)
        rows = torch.zeros(TOKENS, WIDTH)
        for token in range(active):
            for expert, weight in zip(ids[token].tolist(), weights[token], strict=True):
                inner = torch.nn.functional.silu(x[token].float() @ self.up[expert].float())
                rows[token] += weight * (inner @ self.down[expert].float())
        return rows


def results(up, down, x, scales, counts, list_type):
    """What the experts of this rank make of the tokens that came."""
    if x.dtype == torch.int8:
        x = (x.float() * scales.unsqueeze(1)).to(up.dtype)
    groups = {"group_list": counts, "split_item": 2, "group_type": 0, "group_list_type": list_type}
    inner, = torch_npu.npu_grouped_matmul([x], [up], **groups)
    return torch_npu.npu_grouped_matmul([torch.nn.functional.silu(inner)], [down], **groups)[0]


def counted(rank, count, name):
    """Tokens that go to experts and come back as the host counts them: FC1 where they come, FC2 on the way back."""
    def sent(source):  # to each expert of each rank; one gets none
        return [0 if e == 1 else (source + e) % 3 for e in range(EACH * count)]

    def rows(source):
        return values(400 + source, (sum(sent(source)), WIDTH), torch.float16)

    received = [n for source in range(count) for n in sent(source)[rank * EACH:(rank + 1) * EACH]]
    up = [values(e, (WIDTH, INNER), torch.float16) / 8 for e in range(EACH * count)]
    down = [values(100 + e, (INNER, WIDTH), torch.float16) / 8 for e in range(EACH * count)]
    mine = slice(rank * EACH, (rank + 1) * EACH)
    x, shared = rows(rank).npu(), values(500 + rank, (4, WIDTH), torch.float16)
    first, second = torch.stack(up[mine]).npu(), torch.stack(down[mine]).npu()

    def step():
        inner, beside, came = torch_npu.npu_alltoallv_gmm(
            x, first, name, count, sent(rank), received, mm_x=shared.npu(), mm_weight=up[0].npu(),
            permute_out_flag=True)
        back, _ = torch_npu.npu_gmm_alltoallv(inner, second, name, count, received, sent(rank))
        return beside, came, back

    beside, came, back = step()
    parts = [part for e in range(rank * EACH, (rank + 1) * EACH)
             for part in (rows(source).split(sent(source))[e] for source in range(count))]
    assert torch.equal(came.cpu(), torch.cat(parts))
    wanted = torch.cat([part.float() @ up[e].float() @ down[e].float()
                        for e, part in enumerate(rows(rank).split(sent(rank)))])
    assert (back.cpu().float() - wanted).abs().max() <= wanted.abs().max() * 2**-9
    wanted = shared.float() @ up[0].float()
    assert (beside.cpu().float() - wanted).abs().max() <= wanted.abs().max() * 2**-9


def experts(rank, count):
    dist.barrier()
    group = dist.distributed_c10d._get_default_group()
    name = group._get_backend(torch.device("npu")).get_hccl_comm_name(rank)
    counted(rank, count, name)
    for dtype in (torch.float16, torch.bfloat16):
        layer = Layer(count, dtype)
        x, ids, weights = (tensor.npu() for tensor in layer.tokens(rank))
        mine = slice(rank * EACH, (rank + 1) * EACH)
        up, down = torch.stack(layer.up[mine]).npu(), torch.stack(layer.down[mine]).npu()
        place = {"group_ep": name, "ep_world_size": count, "ep_rank_id": rank, "moe_expert_num": layer.experts,
                 "shared_expert_num": 0, "shared_expert_rank_num": 0, "expert_shard_type": 0, "global_bs": 0}
        for second in (False, True):
            for quant_mode in (0, 2):
                for list_type in (0, 1):
                    active = TOKENS - 2 if second else TOKENS
                    masked = {"x_active_mask": (torch.arange(TOKENS) < active).npu()} if second else {}

                    def step(second=second, quant_mode=quant_mode, list_type=list_type, masked=masked, place=place,
                             x=x, ids=ids, weights=weights, up=up, down=down):
                        send = torch_npu.npu_moe_distribute_dispatch_v2 if second else \
                            torch_npu.npu_moe_distribute_dispatch
                        came, scales, info, counts, received, tp_counts, _ = send(
                            x=x, expert_ids=ids, quant_mode=quant_mode, expert_token_nums_type=list_type, **masked,
                            **place)
                        rows = results(up, down, came, scales, counts, list_type)
                        back = torch_npu.npu_moe_distribute_combine_v2 if second else \
                            torch_npu.npu_moe_distribute_combine
                        told = {"assist_info_for_combine" if second else "expand_idx": info}
                        return back(expand_x=rows, expert_ids=ids, ep_send_counts=received, expert_scales=weights,
                                    tp_send_counts=tp_counts, **told, **masked, **place)

                    got = ranks.run_graph(step) if ranks.argument(2, "") == "graph" else step()
                    wanted = layer.expected(rank, active)
                    # Tokens, inner values and results are rounded; integers have 127 steps.
                    bound = wanted.abs().max() * ((2**-6 if dtype == torch.bfloat16 else 2**-9) +
                                                  (2**-5 if quant_mode else 0))
                    error = (got.cpu().float() - wanted).abs().max()
                    assert got.dtype == dtype and error <= bound, f"{place}: error {error}, bound {bound}"
                    assert wanted.abs().max() > 0.1


if __name__ == "__main__":
    ranks.run(experts, int(ranks.argument(1, "2")))
