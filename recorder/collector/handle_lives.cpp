#include "recorder/collector/handle_lives.h"

#include <string_view>

#include "generated/meaning/interface_numbers.h"

namespace acltape::collector {
namespace {

// The name of an aclmdlRICaptureMode; empty if it is none.
std::string_view ModeName(uint32_t mode) {
  for (const meaning::NamedNumber& known : meaning::kAclCaptureModes) {
    if (static_cast<uint32_t>(known.number) == mode) return known.name;
  }
  return "";
}

}  // namespace

void HandleLives::Take(const wire::HandleRecord& record, int64_t process_id) {
  Life& life = lives_[record.handle_id];
  storage::Handle& row = life.row;
  row.id = static_cast<int64_t>(record.handle_id);
  life.kind = record.kind;
  life.changed = true;
  const auto call_id = static_cast<int64_t>(record.call_id);
  switch (record.moment) {
    case wire::HandleMoment::kCreated:
      life.created = true;
      row.process_id = process_id;
      row.handle = static_cast<int64_t>(record.address);
      row.device = record.device;
      row.flags = record.flags;
      row.create_call = call_id;
      if (record.kind == wire::HandleKind::kModel) {
        row.mode = ModeName(record.flags);
      }
      break;
    case wire::HandleMoment::kCaptureEnded:
      row.end_call = call_id;
      break;
    case wire::HandleMoment::kDestroyed:
      row.destroy_call = call_id;
      break;
  }
  if (!life.created || row.destroy_call == 0) return;
  Write(life);
  lives_.erase(record.handle_id);
}

void HandleLives::Write(const Life& life) {
  switch (life.kind) {
    case wire::HandleKind::kStream:
      writer_.AddStream(life.row);
      break;
    case wire::HandleKind::kEvent:
      writer_.AddEvent(life.row);
      break;
    case wire::HandleKind::kModel:
      writer_.AddModel(life.row);
      break;
  }
}

void HandleLives::WriteLiving() {
  for (auto& [id, life] : lives_) {
    if (!life.changed) continue;
    Write(life);
    life.changed = false;
  }
}

}  // namespace acltape::collector
