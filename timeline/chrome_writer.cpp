#include "timeline/chrome_writer.h"

#include <fmt/format.h>

#include <iterator>

#include "timeline/valid_text.h"

namespace acltape::timeline {
namespace {

// A track that is no thread gets the number of one above all that an operating system gives.
constexpr int64_t kFirstFreeTid = 100'000'000;

constexpr const char* kArrowNames[] = {"", "gradient", "event", "launch"};

}  // namespace

void ChromeWriter::WriteLine() {
  line_ += '}';
  file_.Write(first_ ? "\n" : ",\n");
  file_.Write(line_);
  first_ = false;
}

void ChromeWriter::Start(char kind, const Place& place, int64_t at_ns) {
  line_.clear();
  // Events from before the recording have times below 0.
  const int64_t since = at_ns - base_ns_;
  const int64_t distance = since < 0 ? -since : since;
  fmt::format_to(std::back_inserter(line_), R"({{"ph":"{}","pid":{},"tid":{},"ts":{}{}.{:03})",
                 kind, place.pid, place.tid, since < 0 ? "-" : "", distance / 1000,
                 distance % 1000);
}

void ChromeWriter::AddMeta(std::string_view what, const Place& place, std::string_view argument,
                           std::string_view value) {
  line_.clear();
  fmt::format_to(std::back_inserter(line_),
                 R"({{"ph":"M","pid":{},"tid":{},"name":"{}","args":{{"{}":{}}})", place.pid,
                 place.tid, what, argument, value);
  WriteLine();
}

void ChromeWriter::Begin(const TimelineFacts& facts) {
  base_ns_ = facts.base_ns;
  std::string head = R"({"displayTimeUnit":"ns","otherData":{"recorded by":)";
  AppendJson(head, "acltape " + facts.version);
  head += R"(,"command":)";
  AppendJson(head, facts.command);
  head += fmt::format(R"(,"begin_monotonic_ns":"{}","begin_realtime_ns":"{}"}},"traceEvents":[)",
                      facts.base_ns, facts.wall_ns);
  file_.Write(head);
}

void ChromeWriter::AddTrack(const Track& track) {
  Place place{track.pid, track.tid, track.name};
  if (track.kind != TrackKind::kThread) place.tid = kFirstFreeTid + track.id;
  std::string name;
  AppendJson(name, track.name);
  if (track.kind == TrackKind::kProcess) {
    AddMeta("process_name", place, "name", name);
  } else if (track.kind != TrackKind::kBytes) {
    AddMeta("thread_name", place, "name", name);
    AddMeta("thread_sort_index", place, "sort_index", std::to_string(track.rank));
  }
  places_[track.id] = std::move(place);
}

void ChromeWriter::BeginSlice(const Slice& slice) {
  const Place& place = places_.at(slice.track);
  Start('B', place, slice.begin_ns);
  line_ += R"(,"name":)";
  AppendJson(line_, slice.name);
  line_ += R"(,"cat":)";
  AppendJson(line_, slice.category);
  if (!slice.arguments.empty()) {
    line_ += R"(,"args":{)";
    for (size_t i = 0; i < slice.arguments.size(); ++i) {
      const SliceArgument& argument = slice.arguments[i];
      if (i != 0) line_ += ',';
      AppendJson(line_, argument.name);
      line_ += ':';
      if (argument.is_text) {
        AppendJson(line_, argument.text);
      } else {
        line_ += std::to_string(argument.integer);
      }
    }
    line_ += '}';
  }
  WriteLine();
  for (const Arrow& arrow : slice.ends) WriteArrow(arrow, 'f', place, slice.begin_ns);
  for (const Arrow& arrow : slice.begins) WriteArrow(arrow, 's', place, slice.begin_ns);
}

void ChromeWriter::WriteArrow(const Arrow& arrow, char kind, const Place& place, int64_t at_ns) {
  Start(kind, place, at_ns);
  const char* name = kArrowNames[static_cast<size_t>(arrow.kind)];
  fmt::format_to(std::back_inserter(line_), R"(,"id":"{:x}","name":"{}","cat":"{}")", arrow.id(),
                 name, name);
  // The end belongs to the slice around it, not to the next one.
  if (kind == 'f') line_ += R"(,"bp":"e")";
  WriteLine();
}

void ChromeWriter::EndSlice(int64_t track, int64_t end_ns) {
  Start('E', places_.at(track), end_ns);
  WriteLine();
}

void ChromeWriter::Count(int64_t track, int64_t at_ns, int64_t bytes) {
  const Place& place = places_.at(track);
  Start('C', place, at_ns);
  line_ += R"(,"name":)";
  AppendJson(line_, place.name);
  fmt::format_to(std::back_inserter(line_), R"(,"args":{{"bytes":{}}})", bytes);
  WriteLine();
}

void ChromeWriter::Finish() { file_.Write("\n]}\n"); }

}  // namespace acltape::timeline
