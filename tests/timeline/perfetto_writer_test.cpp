// Behaviour that only a small writer shows: texts that are forgotten and sent again, and tracks for
// slices that overlap. The files as a whole are tested by tests/cli/timeline_test.py.
#include "timeline/perfetto_writer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <protozero/pbf_reader.hpp>
#include <vector>

#include "timeline/open_slices.h"

namespace acltape::timeline {
namespace {

// A file that is removed with the object.
struct TemporaryFile {
  std::string path =
      (std::filesystem::temp_directory_path() / ("acltape-timeline-" + std::to_string(getpid())))
          .string();
  ~TemporaryFile() { std::filesystem::remove(path); }
  std::string Read() const {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
};

// The names of slices in order, looked up as a reader does; counts how often the state is cleared.
struct Names {
  std::vector<std::string> names;
  int clears = 0;

  explicit Names(const std::string& bytes) {
    std::map<uint64_t, std::string> known;
    for (protozero::pbf_reader trace(bytes); trace.next(1);) {
      protozero::pbf_reader packet = trace.get_message();
      uint64_t name = 0;
      while (packet.next()) {
        if (packet.tag() == 13) {
          if ((packet.get_uint32() & 1) == 0) continue;
          known.clear();
          ++clears;
        } else if (packet.tag() == 12) {
          for (protozero::pbf_reader interned = packet.get_message(); interned.next();) {
            if (interned.tag() != 2) {
              interned.skip();
              continue;
            }
            protozero::pbf_reader row = interned.get_message();
            EXPECT_TRUE(row.next(1));
            const uint64_t number = row.get_uint64();
            EXPECT_TRUE(row.next(2));
            EXPECT_TRUE(known.emplace(number, row.get_string()).second);
          }
        } else if (packet.tag() == 11) {
          for (protozero::pbf_reader event = packet.get_message(); event.next();) {
            event.tag() == 10 ? void(name = event.get_uint64()) : event.skip();
          }
        } else {
          packet.skip();
        }
      }
      if (name != 0) names.push_back(known.at(name));
    }
  }
};

TEST(PerfettoWriter, TextsThatAreTooManyAreForgottenAndSentAgain) {
  TemporaryFile file;
  std::vector<std::string> expected;
  {
    OutputFile output(file.path, {.overwrite = true});
    PerfettoWriter writer(output, /*kept_text_bytes=*/1000);
    writer.Begin({});
    OpenSlices slices(writer);
    const size_t group = slices.AddGroup({});
    for (int i = 0; i < 500; ++i) {
      expected.push_back("operator " + std::to_string(i % 100));
      Slice slice;
      slice.begin_ns = 10 * i;
      slice.name = expected.back();
      slice.category = "leaf";
      slices.Add(group, slice, 10 * i + 5);
    }
    slices.CloseAll();
    output.Finish();
  }
  const Names read(file.Read());
  EXPECT_EQ(read.names, expected);
  EXPECT_GT(read.clears, 20);
}

// Writes down what it is told.
class Log final : public EventWriter {
 public:
  std::vector<std::string> lines;
  void Begin(const TimelineFacts&) override {}
  void AddTrack(const Track& track) override {
    lines.push_back("track " + std::to_string(track.id) + " " + track.name);
  }
  void BeginSlice(const Slice& slice) override {
    lines.push_back(std::to_string(slice.begin_ns) + " begin " + std::string(slice.name) + " on " +
                    std::to_string(slice.track));
  }
  void EndSlice(int64_t track, int64_t end_ns) override {
    lines.push_back(std::to_string(end_ns) + " end on " + std::to_string(track));
  }
  void Count(int64_t, int64_t, int64_t) override {}
  void Finish() override {}
};

TEST(OpenSlices, ASliceThatEndsAfterTheOneAroundItGetsATrackOfItsOwn) {
  Log log;
  OpenSlices slices(log);
  Track track;
  track.name = "t";
  const size_t group = slices.AddGroup(track);
  const auto add = [&](const char* name, int64_t begin, int64_t end) {
    Slice slice;
    slice.begin_ns = begin;
    slice.name = name;
    slices.Add(group, slice, end);
  };
  add("a", 0, 10);
  add("inside", 2, 10);
  add("across", 4, 12);
  add("empty", 10, 10);
  add("next", 10, 11);
  slices.CloseAll();
  EXPECT_EQ(log.lines,
            (std::vector<std::string>{
                "track 1 t", "0 begin a on 1", "2 begin inside on 1", "track 2 t (overlapping 1)",
                "4 begin across on 2", "10 end on 1", "10 end on 1", "10 begin empty on 1",
                "10 end on 1", "10 begin next on 1", "11 end on 1", "12 end on 2"}));
}

}  // namespace
}  // namespace acltape::timeline
