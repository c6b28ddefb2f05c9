// Reads the files that a user names beside a trace: plans, baselines, standards.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace acltape::storage {

// More than any such file has. Nothing larger is read, so that a file of another kind does not take
// the memory.
constexpr int64_t kMostPlainBytes = int64_t{256} << 20;

// The text of a plain file. Nothing if there is none, if it is no plain file (reading a pipe or a
// device may wait or never end) or if it has more than `most` bytes; `why` then continues a
// sentence whose subject is the file: "cannot be read (Permission denied)".
std::optional<std::string> ReadPlainFile(const std::string& path, std::string* why = nullptr,
                                         int64_t most = kMostPlainBytes);

// The first bytes of a plain file of any size; fewer where it has fewer, none where there is none.
std::string PlainHead(const std::string& path, size_t bytes);

}  // namespace acltape::storage
