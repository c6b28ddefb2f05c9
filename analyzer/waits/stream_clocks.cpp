#include "analyzer/waits/stream_clocks.h"

namespace acltape::analyzer::waits {

Clock CoveredByHost(const Work& work, uint32_t call, bool pageable, StreamClocks& clocks) {
  using K = AclCallKind;
  const WorkForm& form = work.form(call);
  switch (form.acl_kind()) {
    case K::kDeviceSync:
      return clocks.OfAll();
    case K::kEventSync:
    case K::kEventQuery:
    case K::kEventTime: {
      const Clock* record = clocks.OfRecord(form.Integer(form.function->object));
      return record == nullptr ? Clock() : *record;
    }
    case K::kStreamDestroy:
      if (form.acl_variant() == AclVariant::kForced) return {};
      return clocks.OfStream(work.calls[call].stream_id);
    case K::kStreamSync:
    case K::kStreamQuery:
    case K::kExecuteNow:
      return clocks.OfStream(work.calls[call].stream_id);
    default:
      return pageable ? clocks.OfStream(work.calls[call].stream_id) : Clock();
  }
}

}  // namespace acltape::analyzer::waits
