// Experts that lie on the ranks of a group, for operators that send tokens to them and bring the
// results back (dispatch_experts.cpp, combine_experts.cpp).
#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "runtime/opapi/engine/call.h"
#include "runtime/opapi/kernels/group_kernel.h"

namespace acltape::opapi {

// The first `shared_ranks` ranks have the shared experts, to which every token goes. The others
// have the routed ones, as many on each, which tokens name by ids from 0 on.
struct ExpertRanks {
  int64_t ranks = 1, rank = 0;
  int64_t experts = 0;  // routed ones
  int64_t shared = 0, shared_ranks = 0;
  // Experts with ids after those of the routed ones, which compute nothing that needs a rank: the
  // first kind gives zeros, the second one the token, the third one a mixture with constants.
  int64_t zeros = 0, copies = 0, constants = 0;

  int64_t routed_each() const { return experts / (ranks - shared_ranks); }
  bool has_shared() const { return rank < shared_ranks; }
  int64_t here() const { return has_shared() ? 1 : routed_each(); }  // experts of this rank
  int64_t ids() const { return experts + zeros + copies + constants; }
};

// Reads (groupEp, epWorldSize, epRankId, moeExpertNum, groupTp, tpWorldSize, tpRankId,
// expertShardType, sharedExpertNum, sharedExpertRankNum) from position `i` on, and the three
// numbers of other experts from `others` on, unless that is -1.
ExpertRanks ReadExpertRanks(const Call& call, int i, int others, const Group& group);

// [tokens, k] of ids at position `i`, and the mask of [tokens] or [tokens, k] at `mask`.
struct Choices {
  at::Tensor ids, mask;
};
Choices ReadChoices(const Call& call, int i, int mask);

// The tokens of all ranks together, from globalBs at position `i`; 0 means as many as here on each.
int64_t ReadAllTokens(const Call& call, int i, int64_t tokens, const ExpertRanks& where);

// A token that goes to an expert.
struct Sent {
  int64_t token, choice;  // choices after the k of the token are shared experts
  int64_t rank, expert;   // counted on its rank
};

// Elements that assistInfoForCombine has for each token that came to a rank: the numbers of the
// rank that sent it, of the token and of the choice there.
constexpr int64_t kTold = 3;

// In the order in which a rank sends them: by rank, expert, token and choice. What the mask leaves
// out and what stays here are no part.
std::vector<Sent> SentTokens(const ExpertRanks& where, const Choices& choices);

// Some bytes of each row of bytes, as elements of a dtype.
at::Tensor BytesAs(const at::Tensor& rows, int64_t first, int64_t count, at::ScalarType dtype);

// For each rank, the number of tokens that go there.
std::vector<int64_t> CountByRank(const std::vector<Sent>& sent, int64_t ranks);

// For each token the places, among those that `sent` counts for its rank and expert, from 0 on.
std::vector<int64_t> PlacesAtExperts(const std::vector<Sent>& sent);

}  // namespace acltape::opapi
