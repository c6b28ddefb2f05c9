// The places of a step's objects in a script. Each internal buffer and each operand of the template
// step has a home. It also has a place in the memory of the graphs, unless it is a stable operand.
// A tensor of any step of the class is found by its counterpart in the template.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "analyzer/program/step_template.h"
#include "replayer/engine/step_layout.h"

namespace acltape::replayer::script {

// A side is where a call runs: eagerly at the homes of its buffers, or in a graph. A value
// can lie on one side or on both. The enumerators are bits of a set.
enum class Side : uint8_t { kHome = 1, kGraph = 2 };

// An object of a step: an internal buffer of the template step, or an operand.
struct StepObject {
  int64_t buffer = 0;  // buffer of the template
  int64_t bytes = 0;
  int operand = -1;         // index in StepTemplate::operands; -1: internal
  int64_t home = 0;         // offset among the homes
  int64_t other_home = -1;  // second home of a moving operand; -1: none
  int64_t graph = -1;       // offset in the graphs' memory; -1: graphs use its home
};

class StepPlaces {
 public:
  StepPlaces(const analyzer::Program& program, const analyzer::StepTemplate& step_class,
             const StepLayout& layout);

  std::vector<StepObject>& objects() { return objects_; }
  const std::vector<StepObject>& objects() const { return objects_; }
  int64_t home_bytes() const { return home_bytes_; }

  struct Where {
    int object = 0;
    int64_t offset = 0;  // in the object
  };
  // Returns the place of a tensor's first byte, for a tensor of a step of the class. Throws Error
  // kDevice if it has none.
  Where Find(size_t match, int64_t buffer, const storage::Layout& layout);

  // A part of a buffer that lies in one object. Parts returns the parts for bytes [first, end) of a
  // buffer.
  struct Part {
    int object = 0;
    int64_t offset = 0;  // in the object
    int64_t first = 0;   // first byte in the buffer
    int64_t bytes = 0;
  };
  std::vector<Part> Parts(size_t match, int64_t buffer, int64_t first, int64_t end);

  int ObjectOfOperand(size_t operand) const { return first_operand_ + static_cast<int>(operand); }

 private:
  const std::unordered_map<int64_t, std::vector<int>>& ObjectsOf(size_t match);
  int64_t FirstByte(size_t match, int object) const;

  const analyzer::StepTemplate& class_;
  std::vector<StepObject> objects_;
  int first_operand_ = 0;
  int64_t home_bytes_ = 0;
  // For each step, the objects of each buffer of that step.
  std::map<size_t, std::unordered_map<int64_t, std::vector<int>>> objects_of_;
};

// Tells, for ranges of bytes of an object, which sides hold the latest content. If neither does,
// nothing was ever put there.
class Residence {
 public:
  void Set(int64_t first, int64_t end, uint8_t sides);
  struct Range {
    int64_t first = 0;
    int64_t end = 0;
    uint8_t sides = 0;  // bits of Side
  };
  std::vector<Range> Of(int64_t first, int64_t end) const;

 private:
  void Split(int64_t offset);
  std::map<int64_t, uint8_t> from_{{0, 0}};  // sides, by start of a range
};

}  // namespace acltape::replayer::script
