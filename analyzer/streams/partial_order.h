// The order that the edges of a Dag imply, and the fewest edges that imply the same order.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "analyzer/streams/dag.h"

namespace acltape::analyzer::streams {

// A square matrix of bits, by rows of 64-bit words: 8 KiB for 256 nodes, 8 MiB for 8,192.
class BitMatrix {
 public:
  explicit BitMatrix(size_t size)
      : size_(size), words_((size + 63) / 64), bits_(size * words_, 0) {}

  size_t size() const { return size_; }
  size_t words() const { return words_; }
  const uint64_t* Row(size_t row) const { return bits_.data() + row * words_; }
  bool Get(size_t row, size_t column) const { return Row(row)[column / 64] >> (column % 64) & 1; }
  void Set(size_t row, size_t column) {
    bits_[row * words_ + column / 64] |= uint64_t{1} << (column % 64);
  }
  // Sets in row `to` every bit that row `from` has.
  void AddRow(size_t to, size_t from) {
    for (size_t w = 0; w < words_; ++w) bits_[to * words_ + w] |= bits_[from * words_ + w];
  }
  // Calls `visit` with each column whose bit is set in the row, ascending, until `visit` returns
  // false.
  template <typename Visit>
  void VisitRow(size_t row, Visit&& visit) const {
    const uint64_t* words = Row(row);
    for (size_t w = 0; w < words_; ++w) {
      for (uint64_t rest = words[w]; rest != 0; rest &= rest - 1) {
        if (!visit(w * 64 + static_cast<size_t>(std::countr_zero(rest)))) return;
      }
    }
  }

 private:
  size_t size_;
  size_t words_;
  std::vector<uint64_t> bits_;
};

// The order that the edges of a Dag imply. It takes n * n / 8 bytes and edges * n / 64 operations.
class PartialOrder {
 public:
  explicit PartialOrder(const Dag& dag);

  size_t size() const { return before_.size(); }
  bool Before(size_t a, size_t b) const { return before_.Get(a, b); }
  // The transitive closure: row a has a bit for each node that a is before.
  const BitMatrix& closure() const { return before_; }
  // The transitive reduction (minimum equivalent graph): the edges that no other path implies.
  // Every set of edges with this closure contains all of them.
  const std::vector<DagEdge>& covers() const { return covers_; }

 private:
  BitMatrix before_;
  std::vector<DagEdge> covers_;  // by `from`, then `to`
};

// The largest set of nodes of which none is before another, ascending. These nodes could all run at
// the same time. By Dilworth's theorem their number is the least number of streams that allows it.
// Fulkerson 1956, by a maximum matching on the closure (matching.h) and the vertex cover of König's
// theorem.
std::vector<int32_t> MaximumAntichain(const PartialOrder& order);

}  // namespace acltape::analyzer::streams
