#include "replayer/acl_level/known_bytes.h"

namespace acltape::replayer::acl_level {

using analyzer::AclCallKind;
using analyzer::TensorUse;

void KnownBytes::AddWrites(const analyzer::AclCall& call) {
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
