// Writes a timeline as Perfetto's native trace: protocol buffers that ui.perfetto.dev, traceconv
// and trace_processor read. Packets go out one by one. Texts are sent once and then named by
// number; when too many are kept they are forgotten and sent again, as the format provides for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "timeline/event_writer.h"
#include "timeline/output_file.h"

namespace acltape::timeline {

class PerfettoWriter final : public EventWriter {
 public:
  // `kept_text_bytes` bounds the texts that are known by number.
  explicit PerfettoWriter(OutputFile& file, int64_t kept_text_bytes = int64_t{32} << 20)
      : file_(file), kept_text_bytes_(kept_text_bytes) {}

  void Begin(const TimelineFacts& facts) override;
  void AddTrack(const Track& track) override;
  void BeginSlice(const Slice& slice) override;
  void EndSlice(int64_t track, int64_t end_ns) override;
  void Count(int64_t track, int64_t at_ns, int64_t bytes) override;
  void Finish() override {}

 private:
  // Numbers of texts of one kind. Numbers of different kinds have nothing to do with each other.
  using Numbers = std::unordered_map<std::string, uint64_t>;

  // The number of a text; a new one is added to `interned_`, in the field `field`.
  template <typename Message, typename Field>
  uint64_t NumberOf(Numbers& numbers, Field field, std::string_view text);
  void ClearState();
  void WritePacket();

  OutputFile& file_;
  int64_t kept_text_bytes_;
  int64_t text_bytes_ = 0;
  Numbers names_, categories_, argument_names_, argument_texts_;
  std::string packet_;    // the packet that is being written
  std::string interned_;  // content of its InternedData
  std::string frame_;
};

}  // namespace acltape::timeline
