#include "recorder/collector/fold_choice.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <array>
#include <fstream>
#include <string_view>

#include "storage/database.h"
#include "storage/reader.h"
#include "storage/schema.h"

namespace acltape::collector {
namespace {

constexpr char kCalls[] = "SELECT call_id FROM call_row ORDER BY call_id";

}  // namespace

bool HoldsAllCalls(const std::string& anew, const std::string& old) {
  const storage::Reader new_trace(anew);
  const storage::Reader old_trace(old);
  storage::Statement held(new_trace.database(), kCalls);
  storage::Statement wanted(old_trace.database(), kCalls);
  bool more = held.Next();
  while (wanted.Next()) {
    const int64_t call = wanted.Integer(0);
    while (more && held.Integer(0) < call) more = held.Next();
    if (!more || held.Integer(0) != call) return false;
  }
  return true;
}

std::string NameForKept(const std::string& path) {
  std::string name = path + ".kept";
  struct stat status;
  for (int number = 2; lstat(name.c_str(), &status) == 0; ++number) {
    name = fmt::format("{}.kept.{}", path, number);
  }
  return name;
}

bool IsLeftByFold(const std::string& path) {
  struct stat status;
  if (lstat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return false;
  if (status.st_size == 0) return true;
  // An SQLite file has its application's number at byte 68, the highest byte first.
  constexpr std::string_view kSqlite = "SQLite format 3";
  std::array<char, 72> head = {};
  std::ifstream file(path, std::ios::binary);
  if (!file.read(head.data(), head.size())) return false;
  uint32_t application = 0;
  for (size_t i = 68; i < head.size(); ++i) {
    application = application << 8 | static_cast<unsigned char>(head[i]);
  }
  return std::string_view(head.data(), kSqlite.size()) == kSqlite &&
         application == static_cast<uint32_t>(storage::kApplicationId);
}

}  // namespace acltape::collector
