// What the stages of an alignment share: what is aligned so far, and the hashes that follow from
// it. Identities are numbers that two aligned nodes or externals have in common.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

#include "analyzer/diff/alignment.h"

namespace acltape::analyzer {

class Matching {
 public:
  // Externals with one content on both sides have one identity from the start; others are alike
  // when they have equally many elements and are parameters or not.
  Matching(const Flow& a, const Flow& b);

  std::array<const Flow*, 2> flows;
  std::array<std::vector<int32_t>, 2> partner;    // by node, -1
  std::array<std::vector<uint64_t>, 2> identity;  // by node, 0: none
  std::array<std::vector<int32_t>, 2> external_partner;
  std::vector<NodeGroup> groups;
  std::array<std::vector<int32_t>, 2> group_of;

  bool Free(int side, size_t node) const {
    return partner[side][node] < 0 && group_of[side][node] < 0;
  }
  // Free, or aligned with a call of another operator, which a group may explain better.
  bool Loose(int side, size_t node) const;
  void Pair(int32_t a, int32_t b);
  void Unpair(int32_t a);
  void AddGroup(NodeGroup group);

  // Label of a node; sources of random numbers that gave the same on both sides have that in it.
  uint64_t LabelOf(int side, size_t node, bool exact) const;
  // What an input is to the alignment; 0 when its source has no identity (then `otherwise`, by
  // node, or the label of the source stands in, when wanted).
  uint64_t SourceKey(int side, const FlowInput& input) const;
  uint64_t ExternalKey(int side, int32_t external) const { return external_key_[side][external]; }

 private:
  uint64_t NewIdentity() { return MixHash(0xA11C0DE, ++identities_); }
  void PairExternals(int32_t a, int32_t b);

  std::array<std::vector<uint64_t>, 2> external_key_;
  std::array<std::unordered_set<uint64_t>, 2> contents_;  // of sources
  uint64_t identities_ = 0;
};

// Hashes of the nodes of a range, by side; `depth` how far they look, or kWhole.
constexpr int kWhole = 1 << 20;
struct RangeHashes {
  std::array<std::vector<uint64_t>, 2> up;    // of what a node computes and from what
  std::array<std::vector<uint64_t>, 2> down;  // and of what is computed from it
};
RangeHashes HashRange(const Matching& matching, const Segment& segment, bool exact, int depth);

// The stages. Each returns the number of nodes that it aligned.
size_t MatchByHashes(Matching& matching, const Segment& segment);
// Only what is certain on the whole of two programs, before steps are paired.
size_t MatchUnique(Matching& matching, const Segment& segment);
size_t AlignGaps(Matching& matching, const Segment& segment);
size_t FindGroups(Matching& matching, const Segment& segment);

// How well two nodes fit: 0 not at all. `inputs` and `consumers` say whether all of those that
// have an identity agree (and there is one).
struct Fit {
  double score = 0;
  bool inputs = false;
  bool consumers = false;
};
Fit FitOf(const Matching& matching, int32_t a, int32_t b);

}  // namespace acltape::analyzer
