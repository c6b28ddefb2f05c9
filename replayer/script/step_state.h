// The content that the operands of a step have when the step begins.
#pragma once

#include <cstdint>
#include <vector>

#include "analyzer/program/step_template.h"
#include "replayer/values/recorded_content.h"

namespace acltape::replayer::script {

class StepState {
 public:
  // The arguments must outlive the object.
  StepState(const analyzer::Program& program, const analyzer::StepTemplate& step_class,
            Contents& contents)
      : program_(program), class_(step_class), recorded_(program, &contents) {}

  // Identifies a content: places with equal versions have equal content.
  struct Version {
    int64_t buffer_id = 0;
    int64_t first_byte = 0;
    int64_t leaf = 0;
    bool operator==(const Version&) const = default;
  };
  Version VersionOf(size_t match, size_t operand);

  // Returns the bytes of an operand at the start of a step. A value that comes in for the first use
  // of the operand belongs to it. Bytes that the trace did not keep are 0, unless the step reads
  // them before it writes them: then Error kTrace is thrown. The memory of a graph of the program
  // is such a place, because only the last results of an execution are recorded.
  std::vector<uint8_t> Content(size_t match, size_t operand);

  // Throws if Content would throw for any operand of any step, without loading contents.
  void CheckAll();

 private:
  void Check(size_t match, size_t operand);
  struct Place {
    int64_t buffer_id = 0;
    analyzer::ByteRange range;
    int64_t first_use = 0;
  };
  Place PlaceOf(size_t match, size_t operand) const;
  // Returns the bytes of the operand that the step reads before it writes them.
  analyzer::ByteSet Needed(size_t match, const Place& place) const;

  const analyzer::Program& program_;
  const analyzer::StepTemplate& class_;
  RecordedContent recorded_;
};

}  // namespace acltape::replayer::script
