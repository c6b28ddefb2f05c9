// A small trace with one of everything, written through storage::Writer.
//
//   step 0: calls 1 .. 4     step 1: calls 5 .. 8
//     1 aten::linear           encloses 2
//     2 aten::addmm            buffer 1 (bias), 2 (input), 3 (weight) -> buffer 4 or 7
//     3 aten::view             buffer 4 or 7, another shape
//     4 aten::_local_scalar_dense   a host read
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "storage/payload.h"
#include "storage/reader.h"
#include "storage/writer.h"

namespace acltape::storage {

class TraceTest : public ::testing::Test {
 protected:
  static constexpr int64_t kBase = 1000000000000;

  void SetUp() override {
    char name[] = "/tmp/acltape-storage-XXXXXX";
    folder_ = mkdtemp(name);
  }
  void TearDown() override {
    if (HasFailure()) {
      std::printf("traces kept in %s\n", folder_.c_str());
    } else {
      std::filesystem::remove_all(folder_);
    }
  }
  std::string Path(const std::string& name = "t.db") const { return folder_ + "/" + name; }

  static Writer::Options WriterOptions() {
    Writer::Options options;
    options.base_ns = kBase;
    return options;
  }

  static SignatureArgument Tensor(int position, const char* name, Direction direction, int32_t slot,
                                  int64_t layout) {
    SignatureArgument argument;
    argument.position = position;
    argument.name = name;
    argument.direction = direction;
    argument.kind = ValueKind::kTensor;
    argument.tensors = {{slot, layout}};
    return argument;
  }

  // Writes everything but does not finish.
  static void Fill(Writer& writer) {
    writer.SetMeta("command", R"(["python3","model.py"])");
    writer.AddProcess(1, 4242, "python3");
    writer.AddThread(1, 1, 4242, "main");
    const int64_t linear = writer.InternOp(
        {0, "aten", "aten::linear", "", "aten::linear(Tensor a, Tensor b) -> Tensor"});
    const int64_t addmm = writer.InternOp(
        {0, "aten", "aten::addmm", "",
         "aten::addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1) -> Tensor"});
    const int64_t view = writer.InternOp(
        {0, "aten", "aten::view", "", "aten::view(Tensor(a) self, int[] size) -> Tensor(a)"});
    const int64_t item = writer.InternOp({0, "aten", "aten::_local_scalar_dense", "",
                                          "aten::_local_scalar_dense(Tensor self) -> Scalar"});
    const int64_t vector = writer.InternLayout({0, DType::kFloat32, 0, {4}, {1}, /*flags=*/1});
    const int64_t matrix = writer.InternLayout({0, DType::kFloat32, 0, {2, 4}, {4, 1}, 0});
    const int64_t flat = writer.InternLayout({0, DType::kFloat32, 0, {8}, {1}, 0});
    const int64_t linear_signature = writer.AddSignature(linear, {});
    SignatureArgument beta;
    beta.position = 3;
    beta.name = "beta";
    beta.kind = ValueKind::kReal;
    beta.real = 0.5;
    const int64_t addmm_signature =
        writer.AddSignature(addmm, {Tensor(0, "self", Direction::kIn, 0, vector),
                                    Tensor(1, "mat1", Direction::kIn, 1, matrix),
                                    Tensor(2, "mat2", Direction::kIn, 2, matrix), beta,
                                    Tensor(4, "out", Direction::kOut, 3, matrix)});
    SignatureArgument size;
    size.position = 1;
    size.name = "size";
    size.kind = ValueKind::kIntList;
    size.integers = {8};
    const int64_t view_signature =
        writer.AddSignature(view, {Tensor(0, "self", Direction::kIn, 0, matrix), size,
                                   Tensor(2, "out", Direction::kOut, 1, flat)});
    const int64_t item_signature =
        writer.AddSignature(item, {Tensor(0, "self", Direction::kIn, 0, flat)});
    const int64_t scope = writer.InternScope(0, "user", "step");

    for (int64_t step = 0; step < 2; ++step) {
      const int64_t first = 4 * step + 1;
      const int64_t begin = kBase + 10000 * step;
      const int64_t result = step == 0 ? 4 : 7;
      const auto call = [&](int64_t offset, int64_t parent, int64_t signature, int64_t begin_ns,
                            int64_t ns, bool leaf, std::vector<int64_t> buffers) {
        Call row;
        row.call_id = first + offset;
        row.parent_id = parent;
        row.signature_id = signature;
        row.thread_id = 1;
        row.begin_ns = begin + begin_ns;
        row.end_ns = begin + begin_ns + ns;
        row.leaf = leaf;
        row.phase = step == 1 && offset == 1 ? Phase::kBackward : Phase::kForward;
        row.buffers = std::move(buffers);
        writer.AddCall(row, scope);
      };
      call(0, 0, linear_signature, 0, 1000, false, {});
      call(1, first, addmm_signature, 100, 800, true, {1, 2, 3, result});
      call(2, 0, view_signature, 1500, 50, true, {result, result});
      call(3, 0, item_signature, 2000, 500, true, {result});
      writer.AddBuffer({result, 0x7000, 32, first + 1, 0, false, 0, begin + 100, begin + 5000});
      writer.AddScopeRange(scope, 1, first, first + 3, begin, begin + 3000);
      writer.AddStep({step, first, first + 3, "range:step"});
    }
    writer.AddBuffer({1, 0x1000, 16, 0, 0, false, 0, kBase - 500, 0});
    writer.AddBuffer({2, 0x2000, 32, 0, 0, true, 0, kBase - 400, 0});
    writer.AddBuffer({3, 0x3000, 32, 0, 0, false, 0, kBase - 300, 0});
    const std::string content(16, '\x01');
    const std::string digest = DigestOf(content.data(), content.size());
    writer.AddPayload(digest, content.data(), content.size());
    Snapshot before;
    before.call_id = 2;
    before.tensor = {1, vector};
    before.digest = digest;
    before.bytes = 16;
    writer.AddSnapshot(before, std::nullopt);
    Snapshot after = before;
    after.after = true;
    after.position = 4;
    after.tensor = {4, matrix};
    after.bytes = 32;
    after.digest = std::string(32, 'a');
    writer.AddSnapshot(after, Statistics{-1, 2, 0.5, 3.25, 0, 1});
    writer.AddLedger({"recorder_stall", Severity::kNotice, 3, "process 4242", "cause", "remedy"});
  }

  std::string Make(const std::string& name = "t.db") const {
    Writer writer(Path(name), WriterOptions());
    Fill(writer);
    writer.Finish("complete");
    return Path(name);
  }

  std::string folder_;
};

// Kind and sentence of the Error that `action` throws; kind 0 when it throws none.
template <typename Action>
std::pair<int, std::string> ErrorOf(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return {static_cast<int>(error.kind()), error.what()};
  }
  return {0, "no error"};
}

}  // namespace acltape::storage
