// Decodes records of recorder/wire/records.h. The bytes come from another process, which may have
// been hit by anything: every length is checked, nothing is trusted, and a bad record is an answer
// (false), never a crash. Fuzzed in tests/recorder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "recorder/wire/records.h"
#include "storage/trace.h"

namespace acltape::collector {

// One record, header included.
using RecordBytes = std::span<const std::byte>;

// The first record of `bytes`; empty when there is no sound header.
RecordBytes FirstRecord(std::span<const std::byte> bytes);

// Copies the fixed part of a record and gives what follows it; false when the record is too short.
template <typename R>
bool SplitRecord(RecordBytes record, R* fixed, std::span<const std::byte>* rest) {
  if (record.size() < sizeof(R)) return false;
  std::memcpy(static_cast<void*>(fixed), record.data(), sizeof(R));
  *rest = record.subspan(sizeof(R));
  return true;
}

// `count` NUL-terminated strings; false when one is not terminated inside `bytes`.
bool SplitTexts(std::span<const std::byte> bytes, std::string_view* texts, size_t count);

// An argument without name and position; the layouts of its tensors still to be interned.
struct DecodedArgument {
  storage::SignatureArgument value;  // the layout_id of a tensor is its index in `layouts` plus one
  std::vector<storage::Layout> layouts;
};

// The arguments of a call. False when a tag is unknown, a length leaves the bytes or a slot is not
// below `slot_count`; what was decoded before stays in `arguments`.
bool DecodeArguments(std::span<const std::byte> bytes, uint32_t slot_count,
                     std::vector<DecodedArgument>* arguments);

}  // namespace acltape::collector
