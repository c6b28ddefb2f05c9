#include "replayer/acl_level/known_bytes.h"

#include "analyzer/calls/acl_uses.h"

namespace acltape::replayer::acl_level {

using analyzer::AclCallKind;
using analyzer::TensorUse;

void KnownBytes::SetDoubt(const analyzer::AclCall& call) {
  if (together_ || call.suspect) return;
  // Where the recording gives what a collective received, nothing depends on what it sent.
  bool doubtful = analyzer::IsCapturedCollective(call);
  if (!call.TakesFromRanks()) {
    for (const TensorUse& use : call.reads) {
      const auto doubt = doubt_.find(use.tensor.buffer_id);
      doubtful = doubtful ||
                 (doubt != doubt_.end() &&
                  !doubt->second.Within(use.layout->FirstByte(), use.layout->EndByte()).empty());
    }
  }
  // A workspace then holds what the operator computed with.
  for (const storage::Argument& argument : call.arguments) {
    if (!doubtful || !analyzer::IsWorkspace(argument) || argument.tensors.empty()) continue;
    const storage::TensorRef& tensor = argument.tensors[0];
    if (tensor.buffer_id == 0) continue;
    const storage::Layout& layout = trace_.GetLayout(tensor.layout_id);
    doubt_[tensor.buffer_id].Add(layout.FirstByte(), layout.EndByte());
  }
  for (const TensorUse& use : call.writes) {
    if (!doubtful && !doubt_.contains(use.tensor.buffer_id)) continue;
    analyzer::ByteSet written;
    analyzer::AddElements(*use.layout, written);
    analyzer::ByteSet& doubt = doubt_[use.tensor.buffer_id];
    if (doubtful) {
      doubt.Add(written);
    } else {
      doubt.Remove(written);
    }
  }
}

void KnownBytes::AddWrites(const analyzer::AclCall& call) {
  SetDoubt(call);
  AddKnownWrites(call);
}

void KnownBytes::AddKnownWrites(const analyzer::AclCall& call) {
  if (call.suspect) return;
  const bool copy = call.kind() == AclCallKind::kCopy || call.kind() == AclCallKind::kCopyAsync;
  const TensorUse* from = copy ? call.Use(analyzer::kCopyFrom) : nullptr;
  const TensorUse* to = copy ? call.Use(analyzer::kCopyTo) : nullptr;
  if (from != nullptr && to != nullptr && call.Before(analyzer::kCopyFrom) == nullptr) {
    const int64_t shift = to->layout->FirstByte() - from->layout->FirstByte();
    for (const analyzer::ByteRange& part :
         Of(from->tensor.buffer_id).Within(from->layout->FirstByte(), from->layout->EndByte())) {
      sets_[to->tensor.buffer_id].Add(part.first + shift, part.end + shift);
    }
    return;
  }
  AddAllWrites(call);
}

void KnownBytes::AddAllWrites(const analyzer::AclCall& call) {
  for (const TensorUse& use : call.writes)
    analyzer::AddElements(*use.layout, sets_[use.tensor.buffer_id]);
}

}  // namespace acltape::replayer::acl_level
