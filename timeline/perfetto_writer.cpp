#include "timeline/perfetto_writer.h"

#include <protozero/pbf_builder.hpp>

#include "timeline/perfetto_fields.h"
#include "timeline/valid_text.h"

namespace acltape::timeline {
namespace {

namespace pb = perfetto;
using protozero::pbf_builder;

// All packets are of one sequence, within which numbers of texts hold.
constexpr uint32_t kSequence = 1;

void AddClock(pbf_builder<pb::ClockSnapshot>& snapshot, int clock, int64_t ns) {
  pbf_builder<pb::Clock> row(snapshot, pb::ClockSnapshot::kClocks);
  row.add_uint32(pb::Clock::kClockId, static_cast<uint32_t>(clock));
  row.add_uint64(pb::Clock::kTimestamp, static_cast<uint64_t>(ns));
}

void StartEvent(pbf_builder<pb::TracePacket>& packet, int64_t ns) {
  packet.add_uint64(pb::TracePacket::kTimestamp, static_cast<uint64_t>(ns));
  packet.add_uint32(pb::TracePacket::kTrustedPacketSequenceId, kSequence);
  packet.add_uint32(pb::TracePacket::kSequenceFlags, pb::kNeedsState);
}

}  // namespace

void PerfettoWriter::WritePacket() {
  frame_.clear();
  protozero::pbf_writer(frame_).add_message(static_cast<uint32_t>(pb::Trace::kPacket), packet_);
  file_.Write(frame_);
  packet_.clear();
}

void PerfettoWriter::ClearState() {
  for (Numbers* numbers : {&names_, &categories_, &argument_names_, &argument_texts_}) {
    numbers->clear();
  }
  text_bytes_ = 0;
  pbf_builder<pb::TracePacket> packet(packet_);
  packet.add_uint32(pb::TracePacket::kTrustedPacketSequenceId, kSequence);
  packet.add_uint32(pb::TracePacket::kSequenceFlags, pb::kStateCleared);
  {
    pbf_builder<pb::TracePacketDefaults> defaults(packet, pb::TracePacket::kTracePacketDefaults);
    defaults.add_uint32(pb::TracePacketDefaults::kTimestampClockId, pb::kClockMonotonic);
  }
  WritePacket();
}

void PerfettoWriter::Begin(const TimelineFacts& facts) {
  {
    pbf_builder<pb::TracePacket> packet(packet_);
    packet.add_uint32(pb::TracePacket::kTrustedPacketSequenceId, kSequence);
    packet.add_bool(pb::TracePacket::kFirstPacketOnSequence, true);
    pbf_builder<pb::ClockSnapshot> clocks(packet, pb::TracePacket::kClockSnapshot);
    AddClock(clocks, pb::kClockMonotonic, facts.base_ns);
    if (facts.wall_ns != 0) AddClock(clocks, pb::kClockRealtime, facts.wall_ns);
    clocks.add_enum(pb::ClockSnapshot::kPrimaryTraceClock, pb::kClockMonotonic);
  }
  WritePacket();
  ClearState();
}

void PerfettoWriter::AddTrack(const Track& track) {
  const std::string name = ValidUtf8(track.name);
  {
    pbf_builder<pb::TracePacket> packet(packet_);
    packet.add_uint32(pb::TracePacket::kTrustedPacketSequenceId, kSequence);
    pbf_builder<pb::TrackDescriptor> row(packet, pb::TracePacket::kTrackDescriptor);
    row.add_uint64(pb::TrackDescriptor::kUuid, static_cast<uint64_t>(track.id));
    if (track.parent != 0) {
      row.add_uint64(pb::TrackDescriptor::kParentUuid, static_cast<uint64_t>(track.parent));
    }
    switch (track.kind) {
      case TrackKind::kProcess: {
        pbf_builder<pb::ProcessDescriptor> process(row, pb::TrackDescriptor::kProcess);
        process.add_int32(pb::ProcessDescriptor::kPid, static_cast<int32_t>(track.pid));
        process.add_string(pb::ProcessDescriptor::kProcessName, name);
        break;
      }
      case TrackKind::kThread: {
        pbf_builder<pb::ThreadDescriptor> thread(row, pb::TrackDescriptor::kThread);
        thread.add_int32(pb::ThreadDescriptor::kPid, static_cast<int32_t>(track.pid));
        thread.add_int32(pb::ThreadDescriptor::kTid, static_cast<int32_t>(track.tid));
        thread.add_string(pb::ThreadDescriptor::kThreadName, name);
        break;
      }
      case TrackKind::kBytes: {
        row.add_string(pb::TrackDescriptor::kName, name);
        pbf_builder<pb::CounterDescriptor> counter(row, pb::TrackDescriptor::kCounter);
        counter.add_enum(pb::CounterDescriptor::kUnit, pb::kSizeBytes);
        break;
      }
      case TrackKind::kSlices:
        row.add_string(pb::TrackDescriptor::kName, name);
        break;
    }
    if (track.kind == TrackKind::kProcess) {
      row.add_enum(pb::TrackDescriptor::kChildOrdering, pb::kExplicit);
    } else {
      row.add_int32(pb::TrackDescriptor::kSiblingOrderRank, track.rank);
    }
  }
  WritePacket();
}

template <typename Message, typename Field>
uint64_t PerfettoWriter::NumberOf(Numbers& numbers, Field field, std::string_view text) {
  const auto [place, added] = numbers.try_emplace(std::string(text), numbers.size() + 1);
  if (added) {
    text_bytes_ += static_cast<int64_t>(text.size()) + 64;
    pbf_builder<pb::InternedData> interned(interned_);
    pbf_builder<Message> row(interned, field);
    row.add_uint64(static_cast<Message>(1), place->second);
    row.add_string(static_cast<Message>(2), ValidUtf8(text));
  }
  return place->second;
}

void PerfettoWriter::BeginSlice(const Slice& slice) {
  if (text_bytes_ > kept_text_bytes_) ClearState();
  interned_.clear();
  {
    pbf_builder<pb::TracePacket> packet(packet_);
    StartEvent(packet, slice.begin_ns);
    {
      pbf_builder<pb::TrackEvent> event(packet, pb::TracePacket::kTrackEvent);
      event.add_enum(pb::TrackEvent::kType, pb::kSliceBegin);
      event.add_uint64(pb::TrackEvent::kTrackUuid, static_cast<uint64_t>(slice.track));
      event.add_uint64(pb::TrackEvent::kNameIid,
                       NumberOf<pb::EventName>(names_, pb::InternedData::kEventNames, slice.name));
      event.add_uint64(pb::TrackEvent::kCategoryIids,
                       NumberOf<pb::EventCategory>(categories_, pb::InternedData::kEventCategories,
                                                   slice.category));
      for (const SliceArgument& argument : slice.arguments) {
        const uint64_t name = NumberOf<pb::DebugAnnotationName>(
            argument_names_, pb::InternedData::kDebugAnnotationNames, argument.name);
        const uint64_t text =
            argument.is_text ? NumberOf<pb::InternedString>(
                                   argument_texts_, pb::InternedData::kDebugAnnotationStringValues,
                                   argument.text)
                             : 0;
        pbf_builder<pb::DebugAnnotation> row(event, pb::TrackEvent::kDebugAnnotations);
        row.add_uint64(pb::DebugAnnotation::kNameIid, name);
        if (argument.is_text) {
          row.add_uint64(pb::DebugAnnotation::kStringValueIid, text);
        } else {
          row.add_int64(pb::DebugAnnotation::kIntValue, argument.integer);
        }
      }
      for (const Arrow& arrow : slice.begins) {
        event.add_fixed64(pb::TrackEvent::kFlowIds, arrow.id());
      }
      for (const Arrow& arrow : slice.ends) {
        event.add_fixed64(pb::TrackEvent::kTerminatingFlowIds, arrow.id());
      }
    }
    if (!interned_.empty()) packet.add_message(pb::TracePacket::kInternedData, interned_);
  }
  WritePacket();
}

void PerfettoWriter::EndSlice(int64_t track, int64_t end_ns) {
  {
    pbf_builder<pb::TracePacket> packet(packet_);
    StartEvent(packet, end_ns);
    pbf_builder<pb::TrackEvent> event(packet, pb::TracePacket::kTrackEvent);
    event.add_enum(pb::TrackEvent::kType, pb::kSliceEnd);
    event.add_uint64(pb::TrackEvent::kTrackUuid, static_cast<uint64_t>(track));
  }
  WritePacket();
}

void PerfettoWriter::Count(int64_t track, int64_t at_ns, int64_t bytes) {
  {
    pbf_builder<pb::TracePacket> packet(packet_);
    StartEvent(packet, at_ns);
    pbf_builder<pb::TrackEvent> event(packet, pb::TracePacket::kTrackEvent);
    event.add_enum(pb::TrackEvent::kType, pb::kCounter);
    event.add_uint64(pb::TrackEvent::kTrackUuid, static_cast<uint64_t>(track));
    event.add_int64(pb::TrackEvent::kCounterValue, bytes);
  }
  WritePacket();
}

}  // namespace acltape::timeline
