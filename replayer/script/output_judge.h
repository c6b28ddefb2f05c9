// Judges if an output equals the reference: by its bits, or by its values with a precision
// standard.
//
// To compare bits, digests are enough. A standard needs the values of the reference, which are kept
// (value_store.h). Each output is judged by the rules for its operator and element type, as `replay
// --standard` does.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analyzer/metrics/standard.h"
#include "replayer/script/run_script.h"
#include "replayer/script/value_store.h"

namespace acltape::replayer::script {

// A difference between an output and the reference that is too great.
struct OutputDifference {
  analyzer::metrics::TensorMetrics metrics;  // a: the reference
  std::string reason;                        // "max_rel 0.0031 > 0.001 (float16, matmul)"
};

class OutputJudge {
 public:
  // `standard` is null to compare bits.
  explicit OutputJudge(std::shared_ptr<const analyzer::metrics::Standard> standard,
                       int64_t memory_limit = ValueStore::kMemoryLimit);

  bool bitwise() const { return standard_ == nullptr; }
  // Returns null if bits are compared.
  const analyzer::metrics::Standard* standard() const { return standard_.get(); }

  // Adds an output of the reference and returns its digest. Its values are kept unless bits are
  // compared.
  std::string Keep(const std::vector<uint8_t>& packed);

  // Judges an output of the operator `op` whose digest differs from `reference`, which must have
  // been kept. Returns nothing if the standard accepts the output. Must not be called if bits are
  // compared.
  std::optional<OutputDifference> Judge(const std::string& op, const storage::Layout& layout,
                                        const std::string& reference,
                                        const std::vector<uint8_t>& packed) const;

 private:
  const std::shared_ptr<const analyzer::metrics::Standard> standard_;
  ValueStore values_;
};

// Takes the place of a result's digest if the standard refuses the result.
inline constexpr const char* kBeyond = "beyond the standard";

// A run of a script whose outputs are compared with a reference.
class JudgedRun {
 public:
  // The digests of one observation, by output.
  using Digests = std::vector<std::string>;
  // Returns the reference's digest for output `number` of an observation. If it is empty, this
  // output becomes the reference, and its digest is stored there.
  using Reference = std::function<std::string&(int observation, int number)>;

  struct First {
    int observation = -1;  // -1: all equal the reference
    int output = 0;        // in Script::outputs
    std::vector<uint8_t> packed;
    OutputDifference difference;  // not set if bits are compared
  };

  // If `reference` is null, only digests are collected. `progress` is called for each output; it
  // may be null. Throws as RunScript and ValueStore do.
  JudgedRun(Device& device, const analyzer::Program& program, const Script& script,
            OutputJudge& judge, const Reference& reference,
            const std::function<void(int observation)>& progress = nullptr);

  // Returns a text for each output, by observation, that tells results apart. Normally it is the
  // digest. With a standard it is the reference's digest if the standard accepts the output, else
  // kBeyond. So results that vary within the standard count as equal, and all results that the
  // standard refuses count as equal to each other.
  const std::vector<Digests>& observed() const { return observed_; }
  const First& first() const { return first_; }
  int64_t within() const { return within_; }  // outputs with other bits that are accepted

 private:
  std::vector<Digests> observed_;
  First first_;
  int64_t within_ = 0;
};

// Returns the digest at a place, for JudgedRun::Reference.
std::string& DigestAt(JudgedRun::Digests& digests, int number);

}  // namespace acltape::replayer::script
