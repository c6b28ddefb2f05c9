// Recorded contents of two traces, compared: whole contents where both keep them, else digests and
// recorded statistics.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analyzer/diff/flow.h"
#include "analyzer/metrics/metrics.h"
#include "analyzer/metrics/standard.h"
#include "storage/database.h"

namespace acltape::analyzer {

enum class DiffVerdict : uint8_t { kEqual, kWithin, kDifferent, kNotComparable };
std::string_view DiffVerdictName(DiffVerdict verdict);  // "equal", "not comparable" ...

// Name of what a host read gave.
constexpr std::string_view kHostValue = "host value";

struct ValueDifference {
  DiffVerdict verdict = DiffVerdict::kNotComparable;
  std::string reason;
  // Relative error in the L2 norm, or of the statistics; 1 where there is no number for it.
  double error = 0;
  std::optional<TensorMetrics> metrics;  // when both contents were read
  std::string name;                      // of the result: "out", "self"
  // The coarser of two floating types that differ, or `rounded` of the question.
  storage::DType rounded = storage::DType::kUndefined;
};

// The floating type with fewer digits of the two; kUndefined counts as having all.
storage::DType CoarsestType(storage::DType a, storage::DType b);
// Relative error of rounding to a type.
double RoundingOf(storage::DType type);

class ValueComparer {
 public:
  // `standard`: a name or file; empty: bits where element type, framework, machine and device are
  // the same, else thresholds by operator and element type. The flows must outlive it. Throws as
  // Standard::Load.
  ValueComparer(const Flow& a, const Flow& b, const std::string& standard);

  // Standards in use, "bitwise; ascend between element types".
  std::string Description() const;
  bool same_environment() const { return same_environment_; }

  // Whether both traces have anything recorded of the results of these nodes.
  bool Comparable(int32_t a, int32_t b) const;
  // The worst of all results of two nodes, in order of what they write; of host reads the values
  // that they gave. `rounded`: the coarsest element type that what they compute from went through
  // on one side only (kUndefined: none); bits are not asked for then.
  ValueDifference Compare(int32_t a, int32_t b, storage::DType rounded);
  // One result of each.
  ValueDifference CompareOutput(int32_t a, int32_t a_output, int32_t b, int32_t b_output,
                                storage::DType rounded);
  // What two readers saw of results of two nodes, each its part.
  ValueDifference CompareReads(const FlowInput& a, const FlowInput& b, storage::DType rounded);
  // Contents from outside.
  ValueDifference CompareExternals(int32_t a, int32_t b);

 private:
  struct Content {
    int64_t call_id = 0;
    int position = -1;
    const storage::Layout* layout = nullptr;
    const storage::Layout* part = nullptr;  // null: all of it
    const storage::Snapshot* snapshot = nullptr;
    const storage::Layout& seen() const { return part == nullptr ? *layout : *part; }
  };
  struct Statistics {
    std::array<double, 4> values{};  // min, max, mean, l2
    int64_t nan = 0;
    int64_t inf = 0;
  };
  struct Side {
    const Flow* flow = nullptr;
    std::vector<storage::Snapshot> after;  // in order of call_id
    std::vector<storage::Snapshot> before;
    std::unique_ptr<storage::Statement> statistics;
  };

  Content OutputOf(int side, int32_t node, int32_t output) const;
  std::optional<Statistics> StatisticsOf(int side, const Content& content);
  Content ReadOf(int side, const FlowInput& input) const;
  std::vector<uint8_t> RowMajorContent(int side, const Content& content) const;
  const Standard& StandardFor(storage::DType a, storage::DType b, storage::DType rounded) const;
  ValueDifference CompareContents(const std::array<Content, 2>& contents, const std::string& op,
                                  storage::DType rounded);
  ValueDifference CompareStatistics(const std::array<Content, 2>& contents, bool bits);
  ValueDifference CompareHostReads(int32_t a, int32_t b) const;

  std::array<Side, 2> sides_;
  bool same_environment_ = false;
  std::optional<Standard> chosen_;
  std::optional<Standard> bitwise_;
  std::optional<Standard> tolerant_;
};

}  // namespace acltape::analyzer
