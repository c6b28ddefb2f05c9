// libc_sec.so: the bounded string functions that the vendor's libraries share. They answer with the
// codes of that library: 0, or what went wrong, with the destination emptied where it says so.
#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <cstring>

#include "runtime/compat/export.h"
#include "securec.h"

namespace {

constexpr int kReset = 0x80;  // added to the code when the destination was emptied
constexpr int kOverlap = 54;
constexpr size_t kMostString = 0x7FFFFFFF;

bool Overlap(const char* to, const char* from, size_t bytes) {
  return to < from + bytes && from < to + bytes;
}

// Puts at most `count` characters of `from` and a zero after the `kept` characters that `to`
// holds. The destination is emptied when there is no room for them.
int CopyText(char* to, size_t room, size_t kept, const char* from, size_t count) {
  if (room == 0 || room > kMostString) return ERANGE;
  if (to == nullptr) return EINVAL;
  if (from == nullptr || kept == room) {
    to[0] = '\0';
    return EINVAL | kReset;
  }
  if (to == from && kept == 0 && strnlen(from, room) <= count && strnlen(from, room) < room)
    return 0;
  const size_t length = strnlen(from, count < room ? count : room);
  if (length >= room - kept) {
    to[0] = '\0';
    return ERANGE | kReset;
  }
  if (Overlap(to + kept, from, length + 1)) {
    to[0] = '\0';
    return kOverlap | kReset;
  }
  std::memcpy(to + kept, from, length);
  to[kept + length] = '\0';
  return 0;
}

}  // namespace

// Writes at most `count` characters. Gives -1 when the text is longer. The destination then holds
// the part that fits, or nothing when even `count` characters are too many for it.
ACLTAPE_COMPAT int vsnprintf_s(char* to, size_t room, size_t count, const char* format,
                               va_list args) {
  if (to == nullptr || format == nullptr || room == 0 || room > kMostString) return -1;
  const size_t limit = count < room ? count + 1 : room;
  const int length = std::vsnprintf(to, limit, format, args);
  if (length < 0) {
    to[0] = '\0';
    return -1;
  }
  if (static_cast<size_t>(length) < limit) return length;
  if (count >= room) to[0] = '\0';
  return -1;
}

ACLTAPE_COMPAT int snprintf_s(char* to, size_t room, size_t count, const char* format, ...) {
  va_list args;
  va_start(args, format);
  const int length = vsnprintf_s(to, room, count, format, args);
  va_end(args);
  return length;
}

ACLTAPE_COMPAT int vsprintf_s(char* to, size_t room, const char* format, va_list args) {
  return vsnprintf_s(to, room, room, format, args);
}

ACLTAPE_COMPAT int sprintf_s(char* to, size_t room, const char* format, ...) {
  va_list args;
  va_start(args, format);
  const int length = vsnprintf_s(to, room, room, format, args);
  va_end(args);
  return length;
}

ACLTAPE_COMPAT int strcpy_s(char* to, size_t room, const char* from) {
  return CopyText(to, room, 0, from, room);
}

ACLTAPE_COMPAT int strncpy_s(char* to, size_t room, const char* from, size_t count) {
  return CopyText(to, room, 0, from, count);
}

ACLTAPE_COMPAT int strcat_s(char* to, size_t room, const char* from) {
  return to == nullptr ? CopyText(to, room, 0, from, room)
                       : CopyText(to, room, strnlen(to, room), from, room);
}

ACLTAPE_COMPAT int strncat_s(char* to, size_t room, const char* from, size_t count) {
  return to == nullptr ? CopyText(to, room, 0, from, count)
                       : CopyText(to, room, strnlen(to, room), from, count);
}

ACLTAPE_COMPAT char* strtok_s(char* text, const char* separators, char** rest) {
  if (separators == nullptr || rest == nullptr || (text == nullptr && *rest == nullptr)) {
    return nullptr;
  }
  return strtok_r(text, separators, rest);
}

ACLTAPE_COMPAT int memcpy_s(void* to, size_t room, const void* from, size_t bytes) {
  if (room == 0 || room > kMostString) return ERANGE;
  if (to == nullptr) return EINVAL;
  if (from == nullptr || bytes > room) {
    std::memset(to, 0, room);
    return (from == nullptr ? EINVAL : ERANGE) | kReset;
  }
  if (to == from) return 0;
  if (Overlap(static_cast<char*>(to), static_cast<const char*>(from), bytes)) {
    std::memset(to, 0, room);
    return kOverlap | kReset;
  }
  std::memcpy(to, from, bytes);
  return 0;
}

// Source and destination may overlap.
ACLTAPE_COMPAT int memmove_s(void* to, size_t room, const void* from, size_t bytes) {
  if (room == 0 || room > kMostString) return ERANGE;
  if (to == nullptr) return EINVAL;
  if (from == nullptr || bytes > room) {
    std::memset(to, 0, room);
    return (from == nullptr ? EINVAL : ERANGE) | kReset;
  }
  std::memmove(to, from, bytes);
  return 0;
}

ACLTAPE_COMPAT int memset_s(void* to, size_t room, int value, size_t bytes) {
  if (room == 0 || room > kMostString) return ERANGE;
  if (to == nullptr) return EINVAL;
  std::memset(to, value, bytes < room ? bytes : room);
  return bytes > room ? (ERANGE | kReset) : 0;
}
