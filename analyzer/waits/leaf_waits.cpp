#include "analyzer/waits/leaf_waits.h"

namespace acltape::analyzer::waits {
namespace {

// True for a leaf that copies between the host and a device and does not leave it to the device.
bool BlocksAsCopy(const Work& work, size_t call) {
  bool host_read = false;
  bool host_write = false;
  bool device_read = false;
  bool device_write = false;
  bool pinned = false;
  work.VisitAccesses(call, [&](const ByteAccess& access) {
    const storage::Buffer& buffer = work.trace->GetBuffer(access.buffer);
    const bool host = buffer.device == 0;
    host_read |= host && !access.write;
    host_write |= host && access.write;
    device_read |= !host && !access.write;
    device_write |= !host && access.write;
    pinned |= host && buffer.block_id != 0;
  });
  if (!(host_read && device_write) && !(host_write && device_read)) return false;
  bool asks_not_to = false;
  for (const storage::SignatureArgument& argument : *work.form(call).arguments) {
    asks_not_to |= argument.name == "non_blocking" && argument.integer != 0;
  }
  return !asks_not_to || (host_read && !pinned);
}

}  // namespace

HostWaits FindLeafWaits(const Work& work) {
  HostWaits found;
  for (size_t call = 0; call < work.size(); ++call) {
    const bool reads = work.form(call).kind == LeafKind::kHostRead;
    if (work.calls[call].status != 0 || (!reads && !BlocksAsCopy(work, call))) continue;
    HostWait& wait = found.waits.emplace_back();
    wait.calls.push_back(static_cast<uint32_t>(call));
    wait.leaf = work.calls[call].call_id;
    wait.kind = reads ? WaitKind::kRead : WaitKind::kCopy;
    wait.begin_ns = work.calls[call].begin_ns;
    wait.blocked_ns = work.calls[call].duration_ns;
    wait.end_ns = wait.begin_ns + wait.blocked_ns;
  }
  return found;
}

}  // namespace acltape::analyzer::waits
