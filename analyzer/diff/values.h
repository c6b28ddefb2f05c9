// Compares recorded contents of two traces: whole contents if both traces keep them, else digests
// and recorded statistics.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "analyzer/diff/flow.h"
#include "analyzer/metrics/metrics.h"
#include "analyzer/metrics/standard.h"
#include "analyzer/program/program.h"
#include "storage/database.h"

namespace acltape::analyzer::diff {

enum class DiffVerdict : uint8_t { kEqual, kWithin, kDifferent, kNotComparable };
std::string_view DiffVerdictName(DiffVerdict verdict);  // "equal", "not comparable" ...

// The name of the result of a host read.
constexpr std::string_view kHostValue = "host value";

struct ValueDifference {
  DiffVerdict verdict = DiffVerdict::kNotComparable;
  std::string reason;
  // The relative error in the L2 norm, or that of the statistics; 1 if there is no number for it.
  double error = 0;
  std::optional<metrics::TensorMetrics> metrics;  // if both contents were read
  std::string name;                               // name of the result: "out", "self"
  // The coarser of two floating types that differ, or the caller's `rounded`.
  storage::DType rounded = storage::DType::kUndefined;
};

// The floating type with fewer digits of the two. kUndefined counts as having all digits.
storage::DType CoarsestType(storage::DType a, storage::DType b);
// The relative error of rounding to a type.
double RoundingOf(storage::DType type);

// The contents that a trace keeps, in order of the calls.
struct RecordedValues {
  std::vector<storage::Snapshot> snapshots;
  // Contents that were cut out of recorded ones, by digest.
  std::unordered_map<std::string, std::shared_ptr<const std::vector<uint8_t>>> own_payloads;
};
RecordedValues ValuesOf(const storage::Reader& trace);
// The contents of the leaves of an ACL program.
RecordedValues ValuesOf(Program leaves);

class ValueComparer {
 public:
  // `standard` is a name or a file. If it is empty, bits are compared where element type,
  // framework, machine and device are equal, else thresholds by operator and element type apply.
  // The flows and values must outlive the comparer. Throws as Standard::Load does.
  ValueComparer(const Flow& a, const RecordedValues& a_values, const Flow& b,
                const RecordedValues& b_values, const std::string& standard);

  // The standards in use: "bitwise; ascend between element types".
  std::string Description() const;

  // True if both traces recorded something about the results of these nodes.
  bool Comparable(int32_t a, int32_t b) const;
  // Compares all results of two nodes and returns the worst, in order of what they write. For host
  // reads it compares the values that they gave. `rounded` is the coarsest element type that the
  // inputs went through on one side only (kUndefined: none). With such a type bits need not be
  // equal.
  ValueDifference Compare(int32_t a, int32_t b, storage::DType rounded);
  // Compares one result of each node.
  ValueDifference CompareOutput(int32_t a, int32_t a_output, int32_t b, int32_t b_output,
                                storage::DType rounded);
  // Compares the parts of two nodes' results that two readers saw.
  ValueDifference CompareReads(const FlowInput& a, const FlowInput& b, storage::DType rounded);
  // Compares two contents from outside.
  ValueDifference CompareExternals(int32_t a, int32_t b);

 private:
  struct Content {
    int64_t call_id = 0;
    int position = -1;
    const storage::Layout* layout = nullptr;
    const storage::Layout* part = nullptr;  // null: all of it
    const storage::Snapshot* snapshot = nullptr;
    // The bytes of a part that several calls wrote, in row-major order. Null: one call wrote it.
    std::shared_ptr<const std::vector<uint8_t>> gathered;
    const storage::Layout& seen() const { return part == nullptr ? *layout : *part; }
  };
  struct Statistics {
    std::array<double, 4> values{};  // min, max, mean, l2
    int64_t nan = 0;
    int64_t inf = 0;
  };
  // One of the two traces, with its recorded contents.
  struct Side {
    const Flow* flow = nullptr;
    const RecordedValues* values = nullptr;
    std::vector<storage::Snapshot> after;  // in order of call_id
    std::vector<storage::Snapshot> before;
    std::unique_ptr<storage::Statement> statistics;
  };

  std::vector<uint8_t> Payload(int side, const std::string& digest) const;
  Content OutputOf(int side, int32_t node, int32_t output) const;
  std::optional<Statistics> StatisticsOf(int side, const Content& content);
  Content ReadOf(int side, const FlowInput& input) const;
  // Puts the bytes of a read together from the results of the calls that wrote them. Null where one
  // of these is not kept, or some bytes are of no call.
  std::shared_ptr<const std::vector<uint8_t>> Gathered(int side, const FlowInput& input) const;
  std::vector<uint8_t> RowMajorContent(int side, const Content& content) const;
  const metrics::Standard& StandardFor(storage::DType a, storage::DType b,
                                       storage::DType rounded) const;
  ValueDifference CompareContents(const std::array<Content, 2>& contents, const std::string& op,
                                  storage::DType rounded);
  ValueDifference CompareStatistics(const std::array<Content, 2>& contents, bool bits);
  ValueDifference CompareHostReads(int32_t a, int32_t b, storage::DType rounded);
  ValueDifference CompareHostValues(int32_t a, int32_t b) const;
  Content CopiedToHost(int side, int32_t node);

  std::array<Side, 2> sides_;
  std::deque<storage::Layout> typed_layouts_;
  bool same_environment_ = false;
  std::optional<metrics::Standard> chosen_;
  std::optional<metrics::Standard> bitwise_;
  std::optional<metrics::Standard> tolerant_;
};

}  // namespace acltape::analyzer::diff
