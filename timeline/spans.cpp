#include "timeline/spans.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "meaning/engine_step.h"
#include "storage/database.h"
#include "timeline/calls.h"
#include "timeline/names.h"

namespace acltape::timeline {
namespace {

// Places of tracks within their process.
constexpr int kStepsRank = -3;
constexpr int kMemoryRank = -2;
constexpr int kStreamRank = -1;

// Rows in order of time, one ahead. SQLite sorts rows that do not fit in its memory in a file.
class RowSource : public Source {
 public:
  RowSource(Output& output, const std::string& sql)
      : output_(output), rows_(output.trace.database(), sql) {}

  std::optional<int64_t> NextTime() final {
    // A statement that is asked again after its last row would begin anew.
    while (!ahead_ && more_) {
      more_ = rows_.Next();
      if (more_) ahead_ = Read(rows_);
    }
    if (!ahead_) return std::nullopt;
    // A time that was computed from other rows may be a little earlier.
    last_ns_ = std::max(last_ns_, *ahead_);
    return last_ns_;
  }
  void Emit() final {
    Write(rows_, last_ns_);
    ahead_.reset();
  }

 protected:
  // The time of the row; nothing: it is not shown.
  virtual std::optional<int64_t> Read(const storage::Statement& row) = 0;
  virtual void Write(const storage::Statement& row, int64_t at_ns) = 0;
  bool Overlaps(int64_t begin_ns, int64_t end_ns) const {
    return end_ns >= output_.tracks.first_ns && begin_ns <= output_.tracks.last_ns;
  }
  Output& output_;

 private:
  storage::Statement rows_;
  bool more_ = true;
  std::optional<int64_t> ahead_;
  int64_t last_ns_ = INT64_MIN;
};

class StepSource final : public RowSource {
 public:
  explicit StepSource(Output& output)
      : RowSource(output,
                  // The calls of a step are a range of rows; rows come step by step.
                  "SELECT t.step, t.found_by, min(c.begin_ns), max(c.begin_ns + c.duration_ns), "
                  "min(c.thread_id), t.first_call, t.last_call FROM (SELECT * FROM step ORDER BY "
                  "first_call, step) t CROSS JOIN call_row c ON c.call_id BETWEEN t.first_call AND "
                  "t.last_call GROUP BY t.first_call, t.step") {}

 private:
  std::optional<int64_t> Read(const storage::Statement& row) override {
    if (output_.tracks.threads.count(row.Integer(4)) == 0) return std::nullopt;
    const int64_t begin = row.Integer(2) + output_.tracks.base_ns;
    if (!Overlaps(begin, row.Integer(3) + output_.tracks.base_ns)) return std::nullopt;
    return begin;
  }
  void Write(const storage::Statement& row, int64_t at_ns) override {
    Tracks& tracks = output_.tracks;
    Tracks::Process& process = tracks.processes[tracks.threads.at(row.Integer(4)).process];
    if (!process.steps) {
      Track track;
      track.parent = process.track;
      track.pid = process.pid;
      track.rank = kStepsRank;
      track.name = "steps";
      process.steps = output_.slices.AddGroup(track);
    }
    std::string name = fmt::format("step {}", row.Integer(0));
    if (const auto engine = meaning::EngineStepFoundBy(row.Text(1))) {
      name += ": " + meaning::EngineStepWords(*engine);
    }
    const SliceArgument arguments[] = {Named("found_by", row.Text(1)),
                                       Named("first_call", row.Integer(5)),
                                       Named("last_call", row.Integer(6))};
    Slice slice{0, at_ns, name, "step", arguments, {}, {}};
    output_.slices.Add(*process.steps, slice, std::max(at_ns, row.Integer(3) + tracks.base_ns));
  }
};

class RangeSource final : public RowSource {
 public:
  explicit RangeSource(Output& output)
      : RowSource(output,
                  "SELECT r.begin_ns, r.end_ns, r.thread_id, s.kind, s.name, s.path, r.first_call "
                  "FROM scope_range r JOIN scope s USING (scope_id) "
                  "ORDER BY r.begin_ns, r.end_ns DESC, r.rowid") {}

 private:
  std::optional<int64_t> Read(const storage::Statement& row) override {
    if (output_.tracks.threads.count(row.Integer(2)) == 0) return std::nullopt;
    if (!Overlaps(row.Integer(0), row.Integer(1))) return std::nullopt;
    return row.Integer(0);
  }
  void Write(const storage::Statement& row, int64_t at_ns) override {
    Tracks::Thread& thread = output_.tracks.threads.at(row.Integer(2));
    if (!thread.ranges) {
      const Track& calls = output_.slices.group(thread.calls);
      Track track;
      track.parent = calls.parent;
      track.pid = calls.pid;
      track.rank = calls.rank - 1;
      track.name = fmt::format("ranges of {}", calls.name);
      thread.ranges = output_.slices.AddGroup(track);
    }
    const SliceArgument arguments[] = {Named("path", row.Text(5)),
                                       Named("first_call", row.Integer(6))};
    Slice slice{0, at_ns, row.Text(4), row.Text(3), arguments, {}, {}};
    output_.slices.Add(*thread.ranges, slice, std::max(at_ns, row.Integer(1)));
  }
};

class DeviceSource final : public RowSource {
 public:
  explicit DeviceSource(Output& output)
      : RowSource(output,
                  "SELECT d.call_id, d.stream_id, d.begin_ns, d.end_ns, c.signature_id, d.first, "
                  "s.process_id, s.device FROM (SELECT *, row_number() OVER (PARTITION BY call_id "
                  "ORDER BY begin_ns) = 1 AS first FROM device_span) d JOIN call_row c "
                  "USING (call_id) LEFT JOIN stream s ON s.stream_id = d.stream_id "
                  "ORDER BY d.begin_ns, d.end_ns DESC, d.call_id") {}

 private:
  std::optional<int64_t> Read(const storage::Statement& row) override {
    if (!output_.calls.Shown(row.Integer(0))) return std::nullopt;
    return row.Integer(2);
  }
  void Write(const storage::Statement& row, int64_t at_ns) override {
    const CallForm& form = output_.calls.forms().Of(row.Integer(4));
    const SliceArgument arguments[] = {Named("call_id", row.Integer(0)),
                                       Named("stream", row.Integer(1))};
    const Arrow arrow{ArrowKind::kLaunch, row.Integer(0)};
    Slice slice{0, at_ns, form.full_name, "device", arguments, {}, {}};
    if (row.Integer(5) != 0) slice.ends = {&arrow, 1};
    output_.slices.Add(Group(row), slice, std::max(at_ns, row.Integer(3)));
    ++output_.counts.device_slices;
  }
  size_t Group(const storage::Statement& row) {
    Tracks& tracks = output_.tracks;
    const auto found = tracks.streams.find(row.Integer(1));
    if (found != tracks.streams.end()) return found->second;
    Track track;
    if (const auto process = tracks.processes.find(row.Integer(6));
        process != tracks.processes.end()) {
      track.parent = process->second.track;
      track.pid = process->second.pid;
    }
    track.rank = kStreamRank;
    track.name = fmt::format("stream {} of device {}", row.Integer(1), row.Integer(7));
    return tracks.streams[row.Integer(1)] = output_.slices.AddGroup(track);
  }
};

class MemorySource final : public RowSource {
 public:
  explicit MemorySource(Output& output)
      : RowSource(output,
                  "SELECT at, change, device FROM ("
                  "SELECT alloc_ns AS at, bytes AS change, ifnull(flags, 0) >> 8 AS device "
                  "FROM buffer_row WHERE alloc_ns IS NOT NULL AND bytes > 0 UNION ALL "
                  "SELECT alloc_ns + life_ns, -bytes, ifnull(flags, 0) >> 8 FROM buffer_row "
                  "WHERE alloc_ns IS NOT NULL AND life_ns IS NOT NULL AND bytes > 0) "
                  "ORDER BY at, change") {}

 private:
  std::optional<int64_t> Read(const storage::Statement& row) override {
    Device& device = devices_[row.Integer(2)];
    device.bytes += row.Integer(1);
    // Memory that is older than the recording was there when it began.
    const int64_t time_ns = std::max<int64_t>(row.Integer(0), 0) + output_.tracks.base_ns;
    if (time_ns < output_.tracks.first_ns || time_ns > output_.tracks.last_ns) return std::nullopt;
    return time_ns;
  }
  void Write(const storage::Statement& row, int64_t at_ns) override {
    Device& device = devices_[row.Integer(2)];
    if (device.track == 0) device.track = AddTrack(row.Integer(2));
    output_.slices.Count(device.track, at_ns, device.bytes);
    ++output_.counts.memory_values;
  }
  int64_t AddTrack(int64_t device) {
    Track track;
    track.kind = TrackKind::kBytes;
    track.rank = kMemoryRank;
    track.name =
        device == 0 ? "bytes in use, host" : fmt::format("bytes in use, device {}", device - 1);
    // Buffers do not say which process they are of; with several the sum belongs to none.
    const auto& processes = output_.tracks.processes;
    if (processes.size() == 1) track.parent = processes.begin()->second.track;
    if (!processes.empty()) track.pid = processes.begin()->second.pid;
    return output_.slices.AddHolder(track);
  }

  struct Device {
    int64_t track = 0;
    int64_t bytes = 0;
  };
  std::map<int64_t, Device> devices_;
};

}  // namespace

std::unique_ptr<Source> MakeStepSource(Output& output) {
  return std::make_unique<StepSource>(output);
}
std::unique_ptr<Source> MakeRangeSource(Output& output) {
  return std::make_unique<RangeSource>(output);
}
std::unique_ptr<Source> MakeDeviceSource(Output& output) {
  if (!HasTable(output.trace.database(), "device_span")) return nullptr;
  return std::make_unique<DeviceSource>(output);
}
std::unique_ptr<Source> MakeMemorySource(Output& output) {
  return std::make_unique<MemorySource>(output);
}

}  // namespace acltape::timeline
