// Tells eager runs that the program makes on purpose beside a graph from those with which it checks
// the graph or warms up.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "analyzer/executions/own_graphs.h"

namespace acltape::analyzer::executions {

class EagerUse {
 public:
  // The graphs must outlive the object.
  explicit EagerUse(const OwnGraphs& graphs) : graphs_(graphs) {}

  // True if the run, entries that ran alone in this order, comes after the first execution of the
  // graph and the program uses what it makes: it runs eagerly what no graph serves. A result that
  // nothing reads, or that is compared with the graph's, is a check.
  bool IsBeside(std::span<const uint32_t> run, const OwnGraph& graph);

 private:
  void MakeIndex();

  const OwnGraphs& graphs_;
  bool indexed_ = false;
  std::unordered_map<int64_t, uint32_t> first_;                 // entries, by buffer
  std::unordered_map<int64_t, std::vector<uint32_t>> readers_;  // entries that ran alone, by buffer
};

// When eager runs happened, as indices of turns: those with the graph's own values or lines before
// its capture, and those with others.
struct RunOrder {
  uint32_t first_equal = UINT32_MAX;
  uint32_t last_other = 0;
  size_t other_kinds = 0;  // different ones
};

// True if the program changed once, from one kind of run to that of the capture, and stayed there.
bool IsOneChange(const RunOrder& order);

}  // namespace acltape::analyzer::executions
