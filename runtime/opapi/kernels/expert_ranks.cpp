#include "runtime/opapi/kernels/expert_ranks.h"

#include <algorithm>
#include <string>
#include <tuple>

#include "runtime/opapi/kernels/expect_dtypes.h"

namespace acltape::opapi {

using at::Tensor;

ExpertRanks ReadExpertRanks(const Call& call, int i, int others, const Group& group) {
  ExpertRanks where;
  where.ranks = group.ranks();
  where.rank = group.rank();
  if (call.Int(i + 1) != where.ranks) {
    call.RejectArg(i + 1, "is " + std::to_string(call.Int(i + 1)) + ", and the group has " +
                              std::to_string(where.ranks) + " ranks");
  }
  if (call.Int(i + 2) != where.rank) {
    call.RejectArg(i + 2, "is " + std::to_string(call.Int(i + 2)) + ", and this is rank " +
                              std::to_string(where.rank) + " of the group");
  }
  if (call.Int(i + 5) < 0 || call.Int(i + 5) > 1) {
    call.RejectArg(i + 5, "is " + std::to_string(call.Int(i + 5)) +
                              "; the soft device exchanges with the group of experts alone");
  }
  if (call.Int(i + 7) != 0)
    call.RejectArg(i + 7, "must be 0: shared experts lie on the first ranks");
  where.experts = call.Int(i + 3);
  where.shared_ranks = call.Int(i + 9);
  if (where.shared_ranks < 0 || where.shared_ranks >= where.ranks) {
    call.RejectArg(i + 9, "is " + std::to_string(where.shared_ranks) + ", expected 0 to " +
                              std::to_string(where.ranks - 1));
  }
  // Without ranks of their own, one shared expert may be announced, and none is.
  const int64_t shared = call.Int(i + 8);
  if (where.shared_ranks == 0 ? shared != 0 && shared != 1
                              : shared < 1 || where.shared_ranks % shared != 0) {
    call.RejectArg(i + 8, "is " + std::to_string(shared) + ", which does not fit " +
                              std::to_string(where.shared_ranks) + " ranks of shared experts");
  }
  if (where.shared_ranks > 0) where.shared = shared;
  const int64_t routed_ranks = where.ranks - where.shared_ranks;
  if (where.experts < 1 || where.experts % routed_ranks != 0) {
    call.RejectArg(i + 3, "is " + std::to_string(where.experts) + ", which " +
                              std::to_string(routed_ranks) + " ranks do not share evenly");
  }
  if (others < 0) return where;
  for (int k = 0; k < 3; ++k) {
    if (call.Int(others + k) < 0) call.RejectArg(others + k, "is negative");
  }
  where.zeros = call.Int(others);
  where.copies = call.Int(others + 1);
  where.constants = call.Int(others + 2);
  return where;
}

Choices ReadChoices(const Call& call, int i, int mask) {
  Choices choices{call.View(i), {}};
  ExpectDtypes(call, i, choices.ids, {at::kInt});
  call.ExpectRank(i, choices.ids, 2);
  if (call.IsAbsent(mask)) return choices;
  choices.mask = call.View(mask);
  ExpectDtypes(call, mask, choices.mask, {at::kBool});
  if (choices.mask.dim() == 2) {
    call.ExpectSizes(mask, choices.mask, choices.ids.sizes());
  } else {
    call.ExpectSizes(mask, choices.mask, {choices.ids.size(0)});
  }
  return choices;
}

int64_t ReadAllTokens(const Call& call, int i, int64_t tokens, const ExpertRanks& where) {
  const int64_t all = call.Int(i);
  if (all == 0) return tokens * where.ranks;
  if (all < tokens * where.ranks || all % where.ranks != 0) {
    call.RejectArg(i, "is " + std::to_string(all) + ", expected " + std::to_string(where.ranks) +
                          " times the most tokens of a rank; this one has " +
                          std::to_string(tokens));
  }
  return all;
}

std::vector<Sent> SentTokens(const ExpertRanks& where, const Choices& choices) {
  const int64_t tokens = choices.ids.size(0), k = choices.ids.size(1);
  const Tensor ids = choices.ids.to(at::kLong).contiguous();
  Tensor mask = choices.mask.defined() ? choices.mask : at::ones({tokens}, at::kBool);
  if (mask.dim() == 1) mask = mask.unsqueeze(1);
  mask = mask.expand({tokens, k}).contiguous();
  const auto id = ids.accessor<int64_t, 2>();
  const auto counts = mask.accessor<bool, 2>();
  const int64_t each = where.routed_each();
  // Each shared expert lies on several ranks, and a rank's tokens go to one of them.
  const int64_t group = where.shared == 0 ? 1 : where.shared_ranks / where.shared;
  std::vector<Sent> sent;
  for (int64_t i = 0; i < tokens; ++i) {
    bool takes_part = false;
    for (int64_t j = 0; j < k; ++j) {
      if (!counts[i][j]) continue;
      takes_part = true;
      const int64_t expert = id[i][j];
      TORCH_CHECK(expert >= 0 && expert < where.ids(), "expertIds[", i, ", ", j, "] is ", expert,
                  ", and there are ", where.ids(), " experts");
      if (expert >= where.experts) continue;
      sent.push_back({i, j, where.shared_ranks + expert / each, expert % each});
    }
    for (int64_t s = 0; takes_part && s < where.shared; ++s) {
      sent.push_back({i, k + s, s * group + where.rank % group, 0});
    }
  }
  std::stable_sort(sent.begin(), sent.end(), [](const Sent& a, const Sent& b) {
    return std::tie(a.rank, a.expert) < std::tie(b.rank, b.expert);
  });
  return sent;
}

Tensor BytesAs(const Tensor& rows, int64_t first, int64_t count, at::ScalarType dtype) {
  return rows.narrow(1, first, count).clone(at::MemoryFormat::Contiguous).view(dtype);
}

std::vector<int64_t> CountByRank(const std::vector<Sent>& sent, int64_t ranks) {
  std::vector<int64_t> counts(ranks, 0);
  for (const Sent& one : sent) ++counts[one.rank];
  return counts;
}

std::vector<int64_t> PlacesAtExperts(const std::vector<Sent>& sent) {
  std::vector<int64_t> places(sent.size(), 0);
  for (size_t n = 1; n < sent.size(); ++n) {
    if (sent[n].rank == sent[n - 1].rank && sent[n].expert == sent[n - 1].expert) {
      places[n] = places[n - 1] + 1;
    }
  }
  return places;
}

}  // namespace acltape::opapi
