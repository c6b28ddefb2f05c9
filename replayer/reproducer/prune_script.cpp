#include "replayer/reproducer/prune_script.h"

#include <algorithm>
#include <map>

#include "analyzer/calls/byte_set.h"
#include "replayer/engine/script_operands.h"

namespace acltape::replayer::reproducer {
namespace {

using analyzer::ByteSet;
using storage::Layout;

int64_t SpanOf(const Layout& layout) { return layout.EndByte() - layout.FirstByte(); }

class Reads {
 public:
  explicit Reads(const Script& script) {
    for (const Operation& operation : script.operations) {
      if (const auto* launch = std::get_if<Launch>(&operation)) {
        // Results count as read, because an operator may keep the bytes between their elements.
        for (const ScriptOperand& operand : OperandsOf(script.calls[launch->call])) {
          const Layout& layout = operand.tensor->layout;
          Add({operand.tensor->memory.block(), layout.FirstByte()}, SpanOf(layout));
        }
      } else if (const auto* copy = std::get_if<CopyBytes>(&operation)) {
        Add(copy->from, copy->bytes);
      } else if (const auto* observe = std::get_if<Observe>(&operation)) {
        for (int output = observe->first; output < observe->end; ++output) {
          Add(script.outputs[output].spot, SpanOf(script.outputs[output].layout));
        }
      }
    }
  }

  bool Any(const Spot& spot, int64_t bytes) const {
    const auto found = read_.find(spot.block);
    return found != read_.end() && !found->second.Within(spot.offset, spot.offset + bytes).empty();
  }

 private:
  void Add(const Spot& spot, int64_t bytes) {
    read_[spot.block].Add(spot.offset, spot.offset + bytes);
  }
  std::map<int, ByteSet> read_;  // by block
};

}  // namespace

void PruneScript(Script& script) {
  // A copy that is dropped does not read its source any more. So repeat this until nothing more is
  // dropped.
  for (size_t before = 0; before != script.operations.size();) {
    before = script.operations.size();
    const Reads reads(script);
    std::erase_if(script.operations, [&](const Operation& operation) {
      if (const auto* upload = std::get_if<UploadTo>(&operation)) {
        return !reads.Any(upload->to, upload->bytes);
      }
      if (const auto* upload = std::get_if<UploadStrided>(&operation)) {
        return !reads.Any(upload->to, SpanOf(*upload->layout));
      }
      const auto* copy = std::get_if<CopyBytes>(&operation);
      return copy != nullptr && !reads.Any(copy->to, copy->bytes);
    });
  }
}

}  // namespace acltape::replayer::reproducer
