// Where the things of a step lie in a script: each internal buffer and each operand of the template
// step has a home, and unless it is a stable operand also a place in the memory of the graphs. The
// tensors of any step of the class are found by what they correspond to in the template.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "analyzer/step_template.h"
#include "replayer/step_layout.h"

namespace acltape::replayer {

enum class Side : uint8_t { kHome = 1, kGraph = 2 };

// An internal buffer of the template step, or an operand.
struct StepObject {
  int64_t buffer = 0;  // of the template
  int64_t bytes = 0;
  int operand = -1;         // index in StepTemplate::operands; -1: internal
  int64_t home = 0;         // offset among the homes
  int64_t other_home = -1;  // of operands that move: a second one
  int64_t graph = -1;       // offset in the graphs' memory; -1: used at home by both sides
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
  // Element 0 of a tensor of a step of the class. Throws Error kDevice when it has no place.
  Where Find(size_t match, int64_t buffer, const storage::Layout& layout);

  // Where the bytes [0, bytes) of a buffer of a step lie: parts in objects.
  struct Part {
    int object = 0;
    int64_t offset = 0;  // in the object
    int64_t first = 0;   // of the buffer
    int64_t bytes = 0;
  };
  std::vector<Part> Parts(size_t match, int64_t buffer, int64_t bytes);

  int ObjectOfOperand(size_t operand) const { return first_operand_ + static_cast<int>(operand); }

 private:
  const std::unordered_map<int64_t, std::vector<int>>& ObjectsOf(size_t match);
  int64_t FirstByte(size_t match, int object) const;

  const analyzer::StepTemplate& class_;
  std::vector<StepObject> objects_;
  int first_operand_ = 0;
  int64_t home_bytes_ = 0;
  // By match: a buffer of that step to its objects.
  std::map<size_t, std::unordered_map<int64_t, std::vector<int>>> objects_of_;
};

// Which sides hold the latest bytes of an object; ranges in bytes. Neither: nothing was ever put
// there.
class Residence {
 public:
  void Set(int64_t first, int64_t end, uint8_t sides);
  struct Range {
    int64_t first = 0;
    int64_t end = 0;
    uint8_t sides = 0;  // of Side
  };
  std::vector<Range> Of(int64_t first, int64_t end) const;

 private:
  void Split(int64_t at);
  std::map<int64_t, uint8_t> from_{{0, 0}};  // begin of a range to its sides
};

}  // namespace acltape::replayer
