#include "replayer/device/patience.h"

#include <ctime>

namespace acltape::replayer {
namespace {

// The time for which this process has computed.
double ComputedMs() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return 1e3 * static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_nsec);
}

bool IsTimeout(const CallResult& result) {
  return result.code() == ACL_ERROR_RT_STREAM_SYNC_TIMEOUT ||
         result.code() == ACL_ERROR_RT_EVENT_SYNC_TIMEOUT;
}

}  // namespace

std::optional<CallResult> WaitInPieces(const Patience& patience,
                                       const std::function<CallResult(int limit_ms)>& wait) {
  const double idle_ms = 0.1 * patience.piece_ms;
  for (int idle = 0; idle < patience.idle_pieces;) {
    const double before = ComputedMs();
    CallResult result = wait(patience.piece_ms);
    if (!IsTimeout(result)) return result;
    idle = ComputedMs() - before < idle_ms ? idle + 1 : 0;
  }
  return std::nullopt;
}

}  // namespace acltape::replayer
