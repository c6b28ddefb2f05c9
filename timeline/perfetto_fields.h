// The numbers of the fields of Perfetto's trace format that are written here, by the message that
// has them. They are those of protos/perfetto/trace/**/*.proto of the project, which never changes
// them; a test compares them with the published definition by name (kTrackEvent: track_event).
#pragma once

#include <protozero/types.hpp>

namespace acltape::timeline::perfetto {

enum class Trace : protozero::pbf_tag_type { kPacket = 1 };

enum class TracePacket : protozero::pbf_tag_type {
  kClockSnapshot = 6,
  kTimestamp = 8,
  kTrustedPacketSequenceId = 10,
  kTrackEvent = 11,
  kInternedData = 12,
  kSequenceFlags = 13,
  kTracePacketDefaults = 59,
  kTrackDescriptor = 60,
  kFirstPacketOnSequence = 87
};

enum class ClockSnapshot : protozero::pbf_tag_type { kClocks = 1, kPrimaryTraceClock = 2 };
enum class Clock : protozero::pbf_tag_type { kClockId = 1, kTimestamp = 2 };

enum class TracePacketDefaults : protozero::pbf_tag_type { kTimestampClockId = 58 };

enum class TrackDescriptor : protozero::pbf_tag_type {
  kUuid = 1,
  kName = 2,
  kProcess = 3,
  kThread = 4,
  kParentUuid = 5,
  kCounter = 8,
  kChildOrdering = 11,
  kSiblingOrderRank = 12
};
enum class ProcessDescriptor : protozero::pbf_tag_type { kPid = 1, kProcessName = 6 };
enum class ThreadDescriptor : protozero::pbf_tag_type { kPid = 1, kTid = 2, kThreadName = 5 };
enum class CounterDescriptor : protozero::pbf_tag_type { kUnit = 3 };

enum class TrackEvent : protozero::pbf_tag_type {
  kCategoryIids = 3,
  kDebugAnnotations = 4,
  kType = 9,
  kNameIid = 10,
  kTrackUuid = 11,
  kCounterValue = 30,
  kFlowIds = 47,
  kTerminatingFlowIds = 48
};
enum class DebugAnnotation : protozero::pbf_tag_type {
  kNameIid = 1,
  kIntValue = 4,
  kStringValueIid = 17
};

enum class InternedData : protozero::pbf_tag_type {
  kEventCategories = 1,
  kEventNames = 2,
  kDebugAnnotationNames = 3,
  kDebugAnnotationStringValues = 29
};
enum class EventCategory : protozero::pbf_tag_type { kIid = 1, kName = 2 };
enum class EventName : protozero::pbf_tag_type { kIid = 1, kName = 2 };
enum class DebugAnnotationName : protozero::pbf_tag_type { kIid = 1, kName = 2 };
enum class InternedString : protozero::pbf_tag_type { kIid = 1, kStr = 2 };

// Values of enumerations of the format.
inline constexpr int kClockRealtime = 1;
inline constexpr int kClockMonotonic = 3;
inline constexpr int kStateCleared = 1;  // TracePacket.SequenceFlags
inline constexpr int kNeedsState = 2;
inline constexpr int kSliceBegin = 1;  // TrackEvent.Type
inline constexpr int kSliceEnd = 2;
inline constexpr int kCounter = 4;
inline constexpr int kSizeBytes = 3;  // CounterDescriptor.Unit
inline constexpr int kExplicit = 3;   // TrackDescriptor.ChildTracksOrdering

}  // namespace acltape::timeline::perfetto
