// Writes a timeline in Chrome's trace event format: one JSON object that chrome://tracing,
// ui.perfetto.dev and many viewers of profiles read. Its times are microseconds since the start of
// the recording, which `otherData` gives in nanoseconds. An event has one line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "timeline/event_writer.h"
#include "timeline/output_file.h"

namespace acltape::timeline {

class ChromeWriter final : public EventWriter {
 public:
  explicit ChromeWriter(OutputFile& file) : file_(file) {}

  void Begin(const TimelineFacts& facts) override;
  void AddTrack(const Track& track) override;
  void BeginSlice(const Slice& slice) override;
  void EndSlice(int64_t track, int64_t end_ns) override;
  void Count(int64_t track, int64_t at_ns, int64_t bytes) override;
  void Finish() override;

 private:
  struct Place {
    int64_t pid = 0;
    int64_t tid = 0;
    std::string name;
  };
  // Begins an event with its kind, time and place.
  void Start(char kind, const Place& place, int64_t at_ns);
  void AddMeta(std::string_view what, const Place& place, std::string_view argument,
               std::string_view value);
  void WriteArrow(const Arrow& arrow, char kind, const Place& place, int64_t at_ns);
  void WriteLine();

  OutputFile& file_;
  int64_t base_ns_ = 0;
  bool first_ = true;
  std::string line_;
  std::unordered_map<int64_t, Place> places_;  // by track
};

}  // namespace acltape::timeline
