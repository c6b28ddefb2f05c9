// A recorded ACL program and its four replays: eager and captured, on the recorded streams and on
// one.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "replayer/acl_level/replay_level.h"
#include "replayer/replay.h"
#include "storage/results.h"
#include "tests/analyzer/acl_trace_builder.h"
#include "tests/replayer/small_programs.h"

namespace acltape::test {

class AclRecorded {
 public:
  explicit AclRecorded(const std::function<void(AclTraceBuilder&)>& write) : file_("acl-replay") {
    AclTraceBuilder trace(file_.path());
    write(trace);
    trace.Finish();
  }

  replayer::ReplayReport Replay(replayer::Mode mode, replayer::Streams streams) const {
    replayer::ReplayOptions options;
    options.mode = mode;
    options.streams = streams;
    storage::Reader reader(file_.path(), storage::Reader::Mode::kReadWrite);
    storage::Results results(reader);
    return replayer::acl_level::Replay(reader, options, &results);
  }
  replayer::ReplayReport Replay() const {
    return Replay(replayer::Mode::kEager, replayer::Streams::kRecorded);
  }

  // Replays in all four ways; `compared` outputs each, all equal.
  void ExpectEqual(int64_t compared) const {
    ForEachWay([&](const replayer::ReplayReport& report, replayer::Mode, replayer::Streams) {
      EXPECT_EQ(report.differing, 0) << Explain(report);
      EXPECT_EQ(report.compared, compared);
      EXPECT_EQ(report.not_comparable, 0);
      EXPECT_EQ(report.ExitCode(), 0);
    });
  }
  void ForEachWay(const std::function<void(const replayer::ReplayReport&, replayer::Mode,
                                           replayer::Streams)>& check) const {
    for (const auto mode : {replayer::Mode::kEager, replayer::Mode::kCaptured}) {
      for (const auto streams : {replayer::Streams::kRecorded, replayer::Streams::kFlat}) {
        SCOPED_TRACE(std::string(mode == replayer::Mode::kEager ? "eager" : "captured") +
                     (streams == replayer::Streams::kRecorded ? ", recorded" : ", flat"));
        check(Replay(mode, streams), mode, streams);
      }
    }
  }
  // The sentence of the error that a replay ends with.
  std::string ErrorOf(ErrorKind kind) const {
    try {
      Replay();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), kind) << error.what();
      return error.what();
    }
    ADD_FAILURE() << "no error";
    return "";
  }
  std::string path() const { return file_.path(); }

 private:
  TemporaryTrace file_;
};

}  // namespace acltape::test
