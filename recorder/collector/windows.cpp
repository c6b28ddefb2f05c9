#include "recorder/collector/windows.h"

namespace acltape::collector {

Windows::Window& Windows::Enter(int64_t process_id, uint32_t number, int64_t next_call,
                                int64_t at_ns) {
  Window*& known = known_[{process_id, number}];
  if (known == nullptr) {
    known = &windows_.emplace_back();
    known->row.process_id = process_id;
    known->row.begin_ns = known->row.end_ns = at_ns;
    known->entered_at_call = next_call;
  }
  known->entered_at_call = std::min(known->entered_at_call, next_call);
  known->row.begin_ns = std::min(known->row.begin_ns, at_ns);
  return *known;
}

void Windows::Write() {
  for (Window& window : windows_) {
    if (!window.changed || window.dropped) continue;
    if (window.row.window_id == 0) window.row.window_id = ++written_;
    writer_.AddWindow(window.row);
    window.changed = false;
  }
}

std::optional<Windows::Cut> Windows::CutOldest() {
  std::map<int64_t, int> left;  // windows of each process
  for (const Window& window : windows_) left[window.row.process_id] += window.dropped ? 0 : 1;
  const auto oldest = std::find_if(windows_.begin(), windows_.end(), [&](const Window& window) {
    return !window.dropped && left[window.row.process_id] > 1;
  });
  if (oldest == windows_.end()) return {};
  oldest->dropped = true;
  if (oldest->row.window_id != 0) ++dropped_;
  Cut cut{INT64_MAX, INT64_MAX};
  for (const Window& window : windows_) {
    if (window.dropped) continue;
    cut.first_call = std::min(cut.first_call, window.entered_at_call);
    cut.begin_ns = std::min(cut.begin_ns, window.row.begin_ns);
  }
  return cut;
}

}  // namespace acltape::collector
