// The Arrow C data interface and the Arrow C stream interface: structures by which two libraries of
// one process hand columns to each other without a copy and without linking against each other.
// Names, order and types of the members are fixed by the specifications
// (https://arrow.apache.org/docs/format/CDataInterface.html and CStreamInterface.html).
#pragma once

#include <cstdint>

extern "C" {

struct ArrowSchema {
  const char* format;  // "l": int64, "g": double, "u": UTF-8 with offsets of 32 bits, "+s": columns
  const char* name;
  const char* metadata;
  int64_t flags;
  int64_t n_children;
  ArrowSchema** children;
  ArrowSchema* dictionary;
  void (*release)(ArrowSchema*);  // null: released
  void* private_data;
};

struct ArrowArray {
  int64_t length;
  int64_t null_count;
  int64_t offset;
  int64_t n_buffers;
  int64_t n_children;
  const void** buffers;
  ArrowArray** children;
  ArrowArray* dictionary;
  void (*release)(ArrowArray*);  // null: released, and the end of a stream
  void* private_data;
};

struct ArrowArrayStream {
  // These return 0, or a number of <cerrno> whose sentence get_last_error gives.
  int (*get_schema)(ArrowArrayStream*, ArrowSchema* out);
  int (*get_next)(ArrowArrayStream*, ArrowArray* out);
  const char* (*get_last_error)(ArrowArrayStream*);
  void (*release)(ArrowArrayStream*);
  void* private_data;
};

}  // extern "C"

namespace acltape::storage::arrow {

constexpr int64_t kNullable = 2;  // ARROW_FLAG_NULLABLE of ArrowSchema::flags

}  // namespace acltape::storage::arrow
