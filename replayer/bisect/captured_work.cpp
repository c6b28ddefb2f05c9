#include "replayer/bisect/captured_work.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "replayer/engine/script_operands.h"

namespace acltape::replayer::bisect {
namespace {

// Returns the bytes that a call touches. `planned` is the same invocation with the buffers of the
// program.
std::vector<Touch> TouchesOf(const ScriptCall& call,
                             const analyzer::lowering::Invocation& planned) {
  std::vector<Touch> touches;
  for (const ScriptOperand& operand : OperandsOf(call)) {
    const storage::Layout& layout = operand.tensor->layout;
    const analyzer::lowering::OperandMemory& memory =
        planned.arguments[operand.argument].tensors[operand.element].memory;
    const bool temporary = memory.kind() == analyzer::lowering::OperandMemory::Kind::kTemporary;
    Touch touch{false,
                true,
                operand.tensor->memory.block(),
                layout.FirstByte(),
                layout.EndByte(),
                &layout,
                temporary ? 0 : memory.buffer()};
    if (operand.read) touches.push_back(touch);
    touch.write = true;
    if (operand.write) touches.push_back(touch);
  }
  return touches;
}

}  // namespace

std::vector<CapturedOperation> CapturedOperations(const script::MixedStep& step,
                                                  const Script& script) {
  using Kind = CapturedOperation::Kind;
  std::unordered_map<int64_t, int64_t> leaf_of;  // by call
  for (const analyzer::StepMatch& match : step.step_class().matches) {
    for (const int64_t leaf : match.leaves) {
      leaf_of[step.session().program().leaves[leaf].call.call_id] = leaf;
    }
  }
  std::map<int64_t, size_t> launched;  // by call: invocations of it in this capture
  std::vector<CapturedOperation> captured;
  const auto add_work = [&](int64_t call_id, int stream, std::vector<Touch> touches) {
    captured.push_back({Kind::kWork, 0, {step.PlaceOf(call_id), stream, std::move(touches)}});
  };
  const auto touch = [](bool write, const Spot& spot, int64_t bytes) {
    return Touch{write, false, spot.block, spot.offset, spot.offset + bytes, nullptr, 0};
  };
  bool inside = false;
  for (const Operation& operation : script.operations) {
    if (std::holds_alternative<BeginCapture>(operation)) {
      inside = true;
      launched.clear();
      captured.push_back({Kind::kBegin, 0, {}});
    } else if (std::holds_alternative<EndCapture>(operation)) {
      inside = false;
    }
    if (!inside) continue;
    if (const auto* launch = std::get_if<Launch>(&operation)) {
      const ScriptCall& call = script.calls[launch->call];
      const analyzer::lowering::Lowering& lowering =
          step.execution().lowered().lowerings[leaf_of.at(call.call_id)];
      add_work(call.call_id, launch->stream,
               TouchesOf(call, lowering.invocations.at(launched[call.call_id]++)));
    } else if (const auto* fill = std::get_if<FillBytes>(&operation)) {
      add_work(fill->call_id, fill->stream, {touch(true, fill->to, fill->bytes)});
    } else if (const auto* copy = std::get_if<CopyBytes>(&operation)) {
      add_work(copy->call_id, copy->stream,
               {touch(false, copy->from, copy->bytes), touch(true, copy->to, copy->bytes)});
    } else if (const auto* record = std::get_if<RecordEvent>(&operation)) {
      captured.push_back({Kind::kRecord, record->event, {0, record->stream, {}}});
    } else if (const auto* wait = std::get_if<WaitEvent>(&operation)) {
      captured.push_back({Kind::kWait, wait->event, {0, wait->stream, {}}});
    }
  }
  return captured;
}

}  // namespace acltape::replayer::bisect
