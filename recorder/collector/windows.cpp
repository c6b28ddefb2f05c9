#include "recorder/collector/windows.h"

namespace acltape::collector {

Windows::Window& Windows::Enter(int64_t process_id, uint32_t number, int64_t at_ns) {
  Window*& known = known_[{process_id, number}];
  if (known == nullptr) {
    known = &windows_.emplace_back();
    known->row.process_id = process_id;
    known->row.begin_ns = known->row.end_ns = at_ns;
  }
  known->row.begin_ns = std::min(known->row.begin_ns, at_ns);
  return *known;
}

void Windows::Write() {
  for (Window& window : windows_) {
    if (!window.changed) continue;
    if (window.row.window_id == 0) window.row.window_id = ++written_;
    writer_.AddWindow(window.row);
    window.changed = false;
  }
}

}  // namespace acltape::collector
