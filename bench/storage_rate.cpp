// Measures how fast calls go into a trace, next to bare SQLite rows of the same columns. A recorded
// program must not be faster than that for long. Counters: calls per second and bytes per call.
#include <benchmark/benchmark.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "storage/writer.h"

namespace {

using namespace acltape::storage;  // NOLINT(google-build-using-namespace): one small program

constexpr int64_t kCalls = 200000;

std::filesystem::path Scratch() {
  return std::filesystem::temp_directory_path() /
         ("acltape_storage_rate_" + std::to_string(getpid()) + ".db");
}

void Report(benchmark::State& state, const std::filesystem::path& path) {
  state.counters["calls"] = benchmark::Counter(static_cast<double>(kCalls * state.iterations()),
                                               benchmark::Counter::kIsRate);
  state.counters["bytes_per_call"] =
      static_cast<double>(std::filesystem::file_size(path)) / static_cast<double>(kCalls);
  std::filesystem::remove(path);
}

// c = a + b, again and again, with a new buffer each time.
void Trace(benchmark::State& state) {
  const auto path = Scratch();
  for (auto _ : state) {
    Writer::Options options;
    options.overwrite = true;
    Writer writer(path, options);
    const int64_t op = writer.InternOp({0, "aten", "aten::add", "Tensor", "aten::add.Tensor(...)"});
    Layout layout;
    layout.dtype = DType::kFloat32;
    layout.shape = {4};
    layout.strides = {1};
    const int64_t layout_id = writer.InternLayout(layout);
    std::vector<SignatureArgument> arguments(3);
    for (int i = 0; i < 3; ++i) {
      arguments[i].position = i;
      arguments[i].name = i == 0 ? "self" : i == 1 ? "other" : "out";
      arguments[i].direction = i == 2 ? Direction::kOut : Direction::kIn;
      arguments[i].kind = ValueKind::kTensor;
      arguments[i].tensors = {SlotRef{i, layout_id}};
    }
    const int64_t signature = writer.AddSignature(op, arguments);
    Call call;
    call.op_id = op;
    call.signature_id = signature;
    call.thread_id = 1;
    call.leaf = true;
    for (int64_t id = 1; id <= kCalls; ++id) {
      call.call_id = id;
      call.begin_ns = id * 1000;
      call.end_ns = call.begin_ns + 700;
      call.buffers = {1, 2, id + 2};
      writer.AddBuffer({id + 2, 0x7f0000000000 + (id % 4) * 64, 16, id, id, false});
      writer.AddCall(call, 0);
    }
    writer.Finish("complete");
  }
  Report(state, path);
}
BENCHMARK(Trace)->Unit(benchmark::kMillisecond);

// The baseline: the same integers in two tables, one prepared statement each, one transaction.
void BareRows(benchmark::State& state) {
  const auto path = Scratch();
  for (auto _ : state) {
    std::filesystem::remove(path);
    sqlite3* database = nullptr;
    sqlite3_open(path.c_str(), &database);
    sqlite3_exec(database,
                 "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;"
                 "CREATE TABLE call(call_id INTEGER PRIMARY KEY, signature_id, thread_id, bits,"
                 " begin_ns, duration_ns, buffers);"
                 "CREATE TABLE buffer(buffer_id INTEGER PRIMARY KEY, address, bytes, alloc_call,"
                 " free_call); BEGIN",
                 nullptr, nullptr, nullptr);
    sqlite3_stmt* add_call = nullptr;
    sqlite3_stmt* add_buffer = nullptr;
    sqlite3_prepare_v2(database, "INSERT INTO call VALUES(?,?,?,?,?,?,?)", -1, &add_call, nullptr);
    sqlite3_prepare_v2(database, "INSERT INTO buffer VALUES(?,?,?,?,?)", -1, &add_buffer, nullptr);
    for (int64_t id = 1; id <= kCalls; ++id) {
      const std::string buffers = "[1,2," + std::to_string(id + 2) + "]";
      const int64_t call[] = {id, 1, 1, 4, id * 1000, 700};
      for (int i = 0; i < 6; ++i) sqlite3_bind_int64(add_call, i + 1, call[i]);
      sqlite3_bind_text(add_call, 7, buffers.data(), static_cast<int>(buffers.size()),
                        SQLITE_STATIC);
      sqlite3_step(add_call);
      sqlite3_reset(add_call);
      const int64_t buffer[] = {id + 2, 0x7f0000000000 + (id % 4) * 64, 16, id, id};
      for (int i = 0; i < 5; ++i) sqlite3_bind_int64(add_buffer, i + 1, buffer[i]);
      sqlite3_step(add_buffer);
      sqlite3_reset(add_buffer);
    }
    sqlite3_finalize(add_call);
    sqlite3_finalize(add_buffer);
    sqlite3_exec(database, "COMMIT", nullptr, nullptr, nullptr);
    sqlite3_close(database);
  }
  Report(state, path);
}
BENCHMARK(BareRows)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
