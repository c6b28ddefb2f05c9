// The parts of a timeline, and the interface that writes it in one format. The two formats are
// perfetto_writer.h and chrome_writer.h.
//
// Times are nanoseconds of CLOCK_MONOTONIC of the recording machine and come in ascending order.
// The begins and ends of a track nest. Texts may hold any bytes; a writer makes them valid for its
// format. Views are valid during the call.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace acltape::timeline {

enum class TrackKind {
  kProcess,  // holds other tracks
  kThread,   // slices of a thread of the operating system
  kSlices,   // other slices
  kBytes     // a counter
};

struct Track {
  int64_t id = 0;      // from 1; a track is given before anything lies on it
  int64_t parent = 0;  // 0: none
  TrackKind kind = TrackKind::kSlices;
  int64_t pid = 0;  // process that it belongs to
  int64_t tid = 0;  // thread, for tracks of a thread
  int rank = 0;     // place among the tracks of its parent
  std::string name;
};

struct SliceArgument {
  std::string_view name;
  std::string_view text;
  int64_t integer = 0;
  bool is_text = false;
};
inline SliceArgument Named(std::string_view name, int64_t integer) {
  return {name, {}, integer, false};
}
inline SliceArgument Named(std::string_view name, std::string_view text) {
  return {name, text, 0, true};
}

// The meaning of an arrow between two slices.
enum class ArrowKind : uint8_t {
  kGradient = 1,  // from a leaf to the backward node that computes its gradient
  kEvent = 2,     // from the record of an event to a wait for it
  kLaunch = 3     // from a call on the host to its work on the device
};
struct Arrow {
  ArrowKind kind = ArrowKind::kGradient;
  int64_t target_call = 0;  // no two arrows of a kind have the same
  uint64_t id() const {
    return static_cast<uint64_t>(target_call) << 2 | static_cast<uint64_t>(kind);
  }
};

struct Slice {
  int64_t track = 0;
  int64_t begin_ns = 0;
  std::string_view name;
  std::string_view category;
  std::span<const SliceArgument> arguments;
  std::span<const Arrow> begins;  // arrows that begin at this slice
  std::span<const Arrow> ends;    // ... and that end here
};

// About the recording as a whole.
struct TimelineFacts {
  int64_t base_ns = 0;  // the start of the recording ...
  int64_t wall_ns = 0;  // ... and that moment on CLOCK_REALTIME; 0: not known
  std::string command;
  std::string version;  // version of the acltape that recorded
};

class EventWriter {
 public:
  virtual ~EventWriter() = default;
  virtual void Begin(const TimelineFacts& facts) = 0;  // once, before all else
  virtual void AddTrack(const Track& track) = 0;
  virtual void BeginSlice(const Slice& slice) = 0;
  // Ends the slice of the track that began last and has not ended.
  virtual void EndSlice(int64_t track, int64_t end_ns) = 0;
  virtual void Count(int64_t track, int64_t at_ns, int64_t bytes) = 0;
  virtual void Finish() = 0;
};

}  // namespace acltape::timeline
