#include "page/source_lines.h"

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "storage/columns.h"
#include "storage/database.h"

namespace acltape::page {
namespace {

using nlohmann::json;

constexpr int64_t kAround = 2;       // lines before and after
constexpr size_t kMostPlaces = 500;  // places whose lines are shown
constexpr size_t kMostLetters = 200;

// The first letters of a line; none of its UTF-8 is cut in two.
std::string Shortened(std::string line) {
  if (!line.empty() && line.back() == '\r') line.pop_back();
  if (line.size() <= kMostLetters) return line;
  size_t end = kMostLetters;
  while (end > 0 && (static_cast<unsigned char>(line[end]) & 0xC0) == 0x80) --end;
  return line.substr(0, end);
}

}  // namespace

json SourceLinesOf(const storage::Reader& trace, const json& findings) {
  json lines = json::object();
  if (!storage::HasColumns(trace, "call_location", "call_id,file,line")) return lines;
  std::map<std::string, std::set<int64_t>> wanted;
  storage::Statement place(trace.database(),
                           "SELECT file, line FROM call_location WHERE call_id = ?1 "
                           "AND file IS NOT NULL AND line > 0");
  size_t places = 0;
  for (const json& finding : findings["findings"]) {
    if (places >= kMostPlaces) break;
    if (!finding.contains("call_id") || !finding["call_id"].is_number_integer()) continue;
    place.Reset();
    place.Bind(1, finding["call_id"].get<int64_t>());
    if (!place.Next()) continue;
    ++places;
    std::set<int64_t>& numbers = wanted[std::string(place.Text(0))];
    for (int64_t near = -kAround; near <= kAround; ++near) numbers.insert(place.Integer(1) + near);
  }
  for (const auto& [file, numbers] : wanted) {
    std::ifstream source(file);
    std::string line;
    for (int64_t number = 1; number <= *numbers.rbegin() && std::getline(source, line); ++number) {
      if (numbers.contains(number)) lines[file][std::to_string(number)] = Shortened(line);
    }
  }
  return lines;
}

}  // namespace acltape::page
