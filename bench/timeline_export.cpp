// Measures how long a trace takes to become a timeline, how large it gets and how much memory the
// export takes.
//
//   timeline_export [--calls 100000,1000000,10000000] [--folder /tmp]
//
// Writes a synthetic trace of training of each length, with times of buffers and steps, and exports
// it in both formats, each in a process of its own. Prints the seconds, the bytes of the file per
// call and the greatest memory of that process. As a baseline it prints the seconds that a bare
// walk over the rows of the calls takes.
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <sstream>
#include <string>

#include "bench/synthetic_trace.h"
#include "storage/database.h"
#include "storage/reader.h"
#include "timeline/chrome_writer.h"
#include "timeline/output_file.h"
#include "timeline/perfetto_writer.h"
#include "timeline/timeline.h"

namespace {

using namespace acltape;  // NOLINT(google-build-using-namespace): one small program

// The synthetic trace has no times of buffers, which a recording has, and no steps.
void AddTimes(const std::string& path) {
  storage::Database trace(path, SQLITE_OPEN_READWRITE);
  trace.Execute(
      "UPDATE buffer_row SET alloc_ns = buffer_id * 1500, life_ns = 40000;"
      "INSERT INTO step SELECT call_id / 400, call_id, call_id + 399, 'period' FROM call_row "
      "WHERE call_id % 400 = 1");
}

// Runs the work in a process of its own and prints its figures.
void Measure(const char* name, int64_t calls, const std::string& output,
             const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  const pid_t child = fork();
  if (child == 0) {
    work();
    _exit(0);
  }
  int status = 0;
  rusage usage{};
  wait4(child, &status, 0, &usage);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  std::error_code none;
  const auto bytes = std::filesystem::file_size(output, none);
  fmt::print("{:>10} calls  {:<14} {:8.2f} s  {:6.1f} bytes a call  {:6.1f} MiB\n", calls, name,
             seconds.count(), none ? 0.0 : static_cast<double>(bytes) / static_cast<double>(calls),
             static_cast<double>(usage.ru_maxrss) / 1024);
  std::fflush(stdout);
  std::filesystem::remove(output, none);
  if (status != 0) std::exit(1);
}

template <typename Writer>
void Export(const std::string& trace, const std::string& path) {
  const storage::Reader reader(trace);
  timeline::OutputFile output(path, {.overwrite = true});
  Writer writer(output);
  timeline::WriteTimeline(reader, {}, writer);
  output.Finish();
}

void MeasureLength(const std::string& folder, int64_t wanted) {
  const std::string trace = folder + "/timeline_export.db";
  int64_t calls = 0;
  // In a process of its own as well: the measured ones would inherit its memory.
  const pid_t child = fork();
  if (child == 0) {
    bench::SyntheticTraining training;
    training.calls = wanted;
    bench::WriteSyntheticTraining(trace, training);
    AddTimes(trace);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  {
    storage::Database database(trace, SQLITE_OPEN_READONLY);
    calls = database.Integer("SELECT count(*) FROM call_row");
  }
  Measure("rows alone", calls, "", [&] {
    const storage::Reader reader(trace);
    int64_t sum = 0;
    reader.VisitCalls(false, [&](const storage::Call& call) { sum += call.end_ns; });
    if (sum == 0) _exit(1);
  });
  const std::string output = folder + "/timeline_export.out";
  Measure("perfetto", calls, output, [&] { Export<timeline::PerfettoWriter>(trace, output); });
  Measure("chrome", calls, output, [&] { Export<timeline::ChromeWriter>(trace, output); });
  Measure("chrome, .gz", calls, output + ".gz",
          [&] { Export<timeline::ChromeWriter>(trace, output + ".gz"); });
  std::filesystem::remove(trace);
}

}  // namespace

int main(int argc, char** argv) {
  std::string lengths = "100000,1000000,10000000";
  std::string folder = std::filesystem::temp_directory_path();
  for (int i = 1; i + 1 < argc; i += 2) {
    (std::string(argv[i]) == "--calls" ? lengths : folder) = argv[i + 1];
  }
  std::istringstream list(lengths);
  for (std::string length; std::getline(list, length, ',');) {
    MeasureLength(folder, std::stoll(length));
  }
}
