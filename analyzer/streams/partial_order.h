// Who comes before whom in a Dag, and the fewest edges that say so.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "analyzer/streams/dag.h"

namespace acltape::analyzer {

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
  // Adds the bits of one row to another.
  void AddRow(size_t to, size_t from) {
    for (size_t w = 0; w < words_; ++w) bits_[to * words_ + w] |= bits_[from * words_ + w];
  }
  // Visits the columns of the row's bits, ascending, as long as `visit` returns true.
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

// The order that the edges of a Dag imply. Takes n * n / 8 bytes and edges * n / 64 operations.
class PartialOrder {
 public:
  explicit PartialOrder(const Dag& dag);

  size_t size() const { return before_.size(); }
  bool Before(size_t a, size_t b) const { return before_.Get(a, b); }
  // Row a has the nodes that a is before: the transitive closure.
  const BitMatrix& closure() const { return before_; }
  // The transitive reduction (minimum equivalent graph): edges that no other path implies. Any set
  // of edges with this closure holds all of them.
  const std::vector<DagEdge>& covers() const { return covers_; }

 private:
  BitMatrix before_;
  std::vector<DagEdge> covers_;  // by `from`, then `to`
};

// The most nodes of which none is before another: what could run at the same time, and by
// Dilworth's theorem the least number of streams that keeps it possible. Ascending. Fulkerson 1956,
// by a maximum matching on the closure (matching.h) and the vertex cover of König's theorem.
std::vector<int32_t> MaximumAntichain(const PartialOrder& order);

}  // namespace acltape::analyzer
