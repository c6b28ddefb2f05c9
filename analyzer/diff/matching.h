// The state that the stages of an alignment share: the nodes that are aligned so far, and hashes
// that use them. An identity is a number that two aligned nodes or externals have in common.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

#include "analyzer/diff/alignment.h"

namespace acltape::analyzer::diff {

class Matching {
 public:
  // External contents that are equal on both sides have one identity from the start. Others get
  // equal keys if they have equally many elements and both or neither are parameters.
  Matching(const Flow& a, const Flow& b);

  std::array<const Flow*, 2> flows;
  std::array<std::vector<int32_t>, 2> partner;    // by node; -1: none
  std::array<std::vector<uint64_t>, 2> identity;  // by node, 0: none
  std::array<std::vector<int32_t>, 2> external_partner;
  std::vector<NodeGroup> groups;
  std::array<std::vector<int32_t>, 2> group_of;

  bool Free(int side, size_t node) const {
    return partner[side][node] < 0 && group_of[side][node] < 0;
  }
  // True if the node is free, or aligned with a call of another operator. A group may explain it
  // better.
  bool Loose(int side, size_t node) const;
  void Pair(int32_t a, int32_t b);
  void Unpair(int32_t a);
  void AddGroup(NodeGroup group);

  // The label of a node. If sources of random numbers gave the same on both sides, the label
  // includes that.
  uint64_t LabelOf(int side, size_t node, bool exact) const;
  // The identity of what an input reads, or 0 if its source has none.
  uint64_t SourceKey(int side, const FlowInput& input) const;

 private:
  uint64_t NewIdentity() { return MixHash(0xA11C0DE, ++identities_); }
  void PairExternals(int32_t a, int32_t b);

  std::array<std::vector<uint64_t>, 2> external_key_;
  std::array<std::unordered_set<uint64_t>, 2> contents_;  // contents of sources
  uint64_t identities_ = 0;
};

// Hashes of the nodes of a range, by side. `depth` says how far they look; kWhole means everything.
constexpr int kWhole = 1 << 20;
struct RangeHashes {
  std::array<std::vector<uint64_t>, 2> up;    // hashes of a node and its sources
  std::array<std::vector<uint64_t>, 2> down;  // hashes of a node and its users
};
RangeHashes HashRange(const Matching& matching, const Segment& segment, bool exact, int depth);

// The stages. Each one returns the number of nodes that it aligned.
size_t MatchByHashes(Matching& matching, const Segment& segment);
// Aligns only what is certain over two whole programs, before steps are paired.
size_t MatchUnique(Matching& matching, const Segment& segment);
size_t AlignGaps(Matching& matching, const Segment& segment);
size_t FindGroups(Matching& matching, const Segment& segment);

// Says how well two nodes fit. A score of 0 means not at all. `inputs` (or `consumers`) is true if
// there are such neighbours with an identity and all of them agree.
struct Fit {
  double score = 0;
  bool inputs = false;
  bool consumers = false;
};
Fit FitOf(const Matching& matching, int32_t a, int32_t b);

}  // namespace acltape::analyzer::diff
