// Checks that the trace holds the contents that a replay of its ACL program needs.
#include <set>

#include "analyzer/acl/acl_program.h"
#include "analyzer/calls/record_more.h"
#include "generated/meaning/parameter_positions.h"
#include "storage/error.h"

namespace acltape::analyzer {
namespace {

namespace copy = meaning::position::aclrtMemcpy2d;

using storage::Argument;

class ContentCheck {
 public:
  explicit ContentCheck(const AclProgram& program) : program_(program) {}

  void Run() {
    for (const auto& [buffer, made_by] : program_.cells) known_.insert(buffer);  // zero at first
    for (const AclCall& call : program_.calls) {
      if (call.fate != AclFate::kIssued) continue;
      CheckArguments(call);
      for (const storage::Snapshot& snapshot : call.before) {
        if (!snapshot.has_payload && NeedsContent(call)) {
          Missing(call, snapshot.position < 0
                            ? "the content of buffer " + std::to_string(snapshot.tensor.buffer_id)
                            : "the bytes that it copied");
        }
        if (snapshot.tensor.buffer_id != 0) known_.insert(snapshot.tensor.buffer_id);
      }
      if (IsExecution(call.kind())) {
        for (const int64_t stored : program_.StoredCalls(call.Integer(call.function->object))) {
          Touch(program_.calls[stored], &call);
        }
      } else if (call.call.model_id == 0 && call.group < 0) {
        // The update of a task runs nothing.
        Touch(call, nullptr);
      }
    }
  }

 private:
  // Throws if an operator has no arguments. It was then launched before the recorder saw its first
  // phase.
  void CheckArguments(const AclCall& call) const {
    if (call.kind() != AclCallKind::kOperator) return;
    for (const Argument& argument : call.arguments) {
      if (!IsIncidental(argument) && argument.kind != storage::ValueKind::kNone) return;
    }
    throw Error(ErrorKind::kTrace,
                program_.Describe(call) + " has no arguments in " + program_.trace->path() +
                    ", because its first phase was not recorded; record the program from its "
                    "start, with this version of acltape");
  }

  // True for calls that a replay issues with these bytes.
  static bool NeedsContent(const AclCall& call) {
    return IsDeviceWork(call.kind()) || IsExecution(call.kind());
  }

  [[noreturn]] void Missing(const AclCall& call, const std::string& what) const {
    throw Error(ErrorKind::kTrace, program_.Describe(call) + " needs " + what + ", which " +
                                       program_.trace->path() + " does not hold; " +
                                       HowToRecordInputs(*program_.trace));
  }

  // `execution` is the execution of a graph that holds `call`. It is null if the call runs by
  // itself.
  void Touch(const AclCall& call, const AclCall* execution) {
    // The memory of a wait may hold anything until something writes what releases it.
    if (call.kind() == AclCallKind::kValueWait) return;
    if (IsCopy(call.kind()) && execution == nullptr) {
      const TensorUse* from = call.Use(copy::kSrc);
      const TensorUse* to = call.Use(copy::kDst);
      const bool from_host = from == nullptr || program_.buffers.at(from->tensor.buffer_id).host;
      const bool to_device = to != nullptr && !program_.buffers.at(to->tensor.buffer_id).host;
      if (from_host) {
        if (to_device && call.Before(copy::kSrc) == nullptr &&
            call.Integer(meaning::position::aclrtMemcpy::kCount) != 0) {
          Missing(call, "the bytes that it copied");
        }
        for (const TensorUse& use : call.writes) known_.insert(use.tensor.buffer_id);
        return;
      }
    }
    for (const TensorUse& use : call.reads) {
      if (use.layout->ElementCount() == 0 || known_.count(use.tensor.buffer_id) != 0) continue;
      const std::string inside =
          execution == nullptr ? "" : " for " + program_.Describe(call) + " of its graph";
      Missing(execution == nullptr ? call : *execution,
              "the content of buffer " + std::to_string(use.tensor.buffer_id) + inside);
    }
    for (const TensorUse& use : call.writes) known_.insert(use.tensor.buffer_id);
  }

  const AclProgram& program_;
  std::set<int64_t> known_;  // buffers with recorded or written content
};

}  // namespace

void NameResults(AclProgram& program) {
  const auto add = [](AclCall& call, int position, const storage::TensorRef& tensor,
                      const storage::Layout& layout) {
    storage::Snapshot snapshot;
    snapshot.call_id = call.call.call_id;
    snapshot.position = position;
    snapshot.after = true;
    snapshot.tensor = tensor;
    snapshot.bytes = layout.ElementCount() * storage::DTypeBytes(layout.dtype);
    snapshot.packing = layout.IsDense() ? 0 : 1;
    for (const storage::Snapshot& other : call.after) {
      if (other.position == position && other.tensor.tensor_id() == tensor.tensor_id()) return;
    }
    call.after.push_back(std::move(snapshot));
  };
  for (AclCall& call : program.calls) {
    if (call.fate != AclFate::kIssued || call.call.model_id != 0) continue;
    if (IsExecution(call.kind())) {
      for (const int64_t stored : program.StoredCalls(call.Integer(call.function->object))) {
        for (const TensorUse& use : program.calls[stored].writes) {
          if (!program.buffers.at(use.tensor.buffer_id).host) {
            add(call, -1, use.tensor, *use.layout);
          }
        }
      }
    } else if ((call.kind() == AclCallKind::kOperator && call.group < 0) ||
               call.kind() == AclCallKind::kReduce || call.kind() == AclCallKind::kRandom) {
      for (const TensorUse& use : call.writes) add(call, use.argument, use.tensor, *use.layout);
    } else if (call.kind() == AclCallKind::kCopy || call.kind() == AclCallKind::kCopyAsync) {
      const TensorUse* to = call.Use(copy::kDst);
      const TensorUse* from = call.Use(copy::kSrc);
      const bool to_host = to == nullptr || program.buffers.at(to->tensor.buffer_id).host;
      if (!to_host || from == nullptr || program.buffers.at(from->tensor.buffer_id).host) continue;
      add(call, 0, {0, from->tensor.layout_id}, *from->layout);
    }
  }
}

void CheckContents(const AclProgram& program) { ContentCheck(program).Run(); }

}  // namespace acltape::analyzer
