#include "analyzer/waits/early_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

namespace acltape::analyzer::waits {
namespace {

// An adapter may wait on a thread of its own, which has no line. The event has the line on which
// the program asked for it.
std::string WhereOf(const EarlyWait& wait, const lint::Places& places) {
  std::string where = places.Text(wait.wait);
  if (where.empty() && wait.made_by >= 0) where = places.Text(static_cast<size_t>(wait.made_by));
  return where;
}

std::string NameOf(const Work& work, size_t call, lint::Words& words) {
  const WorkForm& form = work.form(call);
  if (!IsExecution(form.acl_kind())) return words.Call(call);
  return fmt::format("graph {}", form.Integer(form.function->object));
}

}  // namespace

std::vector<EarlyLine> FindEarlyLines(const Work& work, const std::vector<EarlyWait>& waits,
                                      const lint::Places& places, lint::Words& words) {
  struct Sums {
    EarlyLine line;
    const EarlyWait* first = nullptr;
  };
  std::map<std::tuple<std::string, int64_t, int64_t, std::string>, Sums> sums;
  for (const EarlyWait& wait : waits) {
    const std::string needed =
        wait.needed_by < 0 ? "" : NameOf(work, static_cast<size_t>(wait.needed_by), words);
    const int64_t stream = work.calls[wait.wait].stream_id;
    const int64_t awaited = work.calls[wait.record].stream_id;
    Sums& one = sums[{WhereOf(wait, places), stream, awaited, needed}];
    if (one.line.waits++ == 0) {
      one.first = &wait;
      one.line.where = WhereOf(wait, places);
      one.line.stream = stream;
      one.line.awaited_stream = awaited;
      one.line.needed_by = needed;
    }
    one.line.between += wait.between;
    one.line.device_ns += wait.device_ns;
  }
  std::vector<EarlyLine> lines;
  for (auto& [key, one] : sums) {
    EarlyLine& line = one.line;
    line.awaited = NameOf(work, one.first->awaited, words);
    const std::string what = fmt::format("nothing on stream {} needs {} of stream {}", line.stream,
                                         line.awaited, line.awaited_stream);
    const std::string count = line.waits == 1 ? "" : fmt::format(", {} times", line.waits);
    const std::string between = NameOf(work, one.first->first_between, words);
    line.advice =
        line.needed_by.empty()
            ? fmt::format(
                  "waits{} for what nothing needs: {} before it waits for that stream "
                  "again",
                  count, what)
            : fmt::format(
                  "waits too early{}: {} before {}; wait just before that, so that {} and "
                  "what follows it run beside it",
                  count, what, line.needed_by, between);
    lines.push_back(std::move(line));
  }
  std::ranges::stable_sort(lines, std::ranges::greater(), &EarlyLine::waits);
  return lines;
}

}  // namespace acltape::analyzer::waits
