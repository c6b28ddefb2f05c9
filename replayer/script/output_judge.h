// Whether an output is as the reference: its bits, or by a precision standard its values.
//
// With bits alone digests are enough. A standard needs the reference's values, which are kept
// (value_store.h). Each output is judged by the rules for its operator and element type, as
// `replay --standard` does.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analyzer/metrics/standard.h"
#include "replayer/script/run_script.h"
#include "replayer/script/value_store.h"

namespace acltape::replayer {

// How an output differs from the reference, more than it may.
struct OutputDifference {
  analyzer::TensorMetrics metrics;  // a: the reference
  std::string reason;               // "max_rel 0.0031 > 0.001 (float16, matmul)"
};

class OutputJudge {
 public:
  // Null: bitwise.
  explicit OutputJudge(std::shared_ptr<const analyzer::Standard> standard,
                       int64_t memory_limit = ValueStore::kMemoryLimit);

  bool bitwise() const { return standard_ == nullptr; }
  // Null when bitwise.
  const analyzer::Standard* standard() const { return standard_.get(); }

  // An output of the reference. Returns its digest; its values are kept unless bits are compared.
  std::string Keep(const std::vector<uint8_t>& packed);

  // Not when bitwise. Of an output of the operator `op` with another digest than the reference's,
  // which was kept; nothing when the standard lets it pass.
  std::optional<OutputDifference> Judge(const std::string& op, const storage::Layout& layout,
                                        const std::string& reference,
                                        const std::vector<uint8_t>& packed) const;

 private:
  const std::shared_ptr<const analyzer::Standard> standard_;
  ValueStore values_;
};

// What stands for a result in place of its digest when the standard refuses it.
inline constexpr const char* kBeyond = "beyond the standard";

// A run of a script whose outputs are held against a reference.
class JudgedRun {
 public:
  // Of one observation, by output.
  using Digests = std::vector<std::string>;
  // Where the digest of the reference is for output `number` of an observation. It is empty where
  // the output itself is the reference, and gets its digest then.
  using Reference = std::function<std::string&(int observation, int number)>;

  struct First {
    int observation = -1;  // -1: all are as the reference
    int output = 0;        // in Script::outputs
    std::vector<uint8_t> packed;
    OutputDifference difference;  // nothing in it when bitwise
  };

  // A null `reference`: digests alone are wanted. `progress`, which may be null, is called for each
  // output. Throws as RunScript and ValueStore do.
  JudgedRun(Device& device, const analyzer::Program& program, const Script& script,
            OutputJudge& judge, const Reference& reference,
            const std::function<void(int observation)>& progress = nullptr);

  // What tells results apart, by observation: digests; with a standard the reference's digest for
  // what the standard lets pass, and kBeyond for what it refuses. So results that vary within the
  // standard are the same, and what a fault makes wrong is, in whatever bits.
  const std::vector<Digests>& observed() const { return observed_; }
  const First& first() const { return first_; }
  int64_t within() const { return within_; }  // outputs with other bits that the standard lets pass

 private:
  std::vector<Digests> observed_;
  First first_;
  int64_t within_ = 0;
};

// The digest at a place, for JudgedRun::Reference.
std::string& DigestAt(JudgedRun::Digests& digests, int number);

}  // namespace acltape::replayer
