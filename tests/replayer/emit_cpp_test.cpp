// Scripts printed as C++: they compile with the one line of their head comment and show what the
// script shows.
#include "replayer/reproducer/emit_cpp.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>

#include "acl/loader/library.h"
#include "replayer/reproducer/build_cpp.h"
#include "replayer/reproducer/cpp_arguments.h"
#include "replayer/reproducer/prune_script.h"
#include "storage/error.h"

namespace acltape::replayer {
namespace {

using analyzer::lowering::Invocation;
using analyzer::lowering::LoweredTensor;
using analyzer::lowering::LoweredValue;
using storage::DType;
using storage::Layout;
using storage::ValueKind;
using Floats = std::vector<float>;
namespace fs = std::filesystem;

Layout LayoutOf(std::vector<int64_t> shape, std::vector<int64_t> strides, int64_t offset = 0,
                DType dtype = DType::kFloat32) {
  Layout layout;
  layout.dtype = dtype;
  layout.shape = std::move(shape);
  layout.strides = std::move(strides);
  layout.byte_offset = offset;
  return layout;
}

LoweredTensor At(int block, const Layout& layout) {
  LoweredTensor tensor;
  tensor.present = true;
  tensor.memory = analyzer::lowering::OperandMemory::Block(block);
  tensor.layout = layout;
  return tensor;
}
LoweredValue TensorValue(const LoweredTensor& tensor) {
  LoweredValue value;
  value.kind = ValueKind::kTensor;
  value.tensors = {tensor};
  return value;
}
LoweredValue Tensors(std::vector<LoweredTensor> tensors) {
  LoweredValue value;
  value.kind = ValueKind::kTensorList;
  value.tensors = std::move(tensors);
  return value;
}
LoweredValue Vector(int block, int64_t offset = 0, int64_t count = 4) {
  return TensorValue(At(block, LayoutOf({count}, {1}, offset)));
}
LoweredValue Real(double real) {
  LoweredValue value;
  value.kind = ValueKind::kReal;
  value.real = real;
  return value;
}
LoweredValue Int(int64_t integer) {
  LoweredValue value;
  value.kind = ValueKind::kInt;
  value.integer = integer;
  return value;
}
LoweredValue BoolValue(bool flag) {
  LoweredValue value = Int(flag);
  value.kind = ValueKind::kBool;
  return value;
}
LoweredValue Ints(std::vector<int64_t> integers, ValueKind kind = ValueKind::kIntList) {
  LoweredValue value;
  value.kind = kind;
  value.integers = std::move(integers);
  return value;
}
LoweredValue Dtype(DType dtype) {
  LoweredValue value = Int(static_cast<int64_t>(dtype));
  value.kind = ValueKind::kDtype;
  return value;
}
LoweredValue Text(const std::string& text) {
  LoweredValue value;
  value.kind = ValueKind::kText;
  value.text = text;
  return value;
}
LoweredValue None() { return LoweredValue(); }

// A script in the making. Block 0 "home" and block 1 "graph" have 1 KiB each, block 2 is workspace.
struct Draft {
  Draft() {
    script.blocks = {{"home", 1024, 0}, {"graph", 1024, 255}, {"workspace 1", 65536, 0}};
    script.observations.push_back({0, 7, 0, 0});
  }
  Draft& Put(int block, int64_t offset, const Floats& values) {
    script.operations.push_back(
        UploadTo{{block, offset}, Add(values), 0, static_cast<int64_t>(values.size() * 4)});
    return *this;
  }
  Draft& Run(const std::string& op, std::vector<LoweredValue> arguments, int stream = 0) {
    script.operations.push_back(Launch{static_cast<int>(script.calls.size()), stream});
    script.calls.push_back({++calls, op, {op, std::move(arguments)}, 2, stream * 4096});
    return *this;
  }
  Draft& Do(Operation operation) {
    script.operations.push_back(std::move(operation));
    return *this;
  }
  Draft& See(int block, const Layout& layout) {
    const int first = static_cast<int>(script.outputs.size());
    script.outputs.push_back({calls, 0, 0, {block, layout.byte_offset}, layout});
    script.outputs.back().spot.offset = layout.byte_offset;
    script.observations[0].end = first + 1;
    script.operations.push_back(Observe{0, first, first + 1});
    return *this;
  }
  Draft& SeeVector(int block, int64_t offset = 0, int64_t count = 4) {
    return See(block, LayoutOf({count}, {1}, offset));
  }
  int Add(const Floats& values) {
    auto bytes = std::make_shared<std::vector<uint8_t>>(values.size() * 4);
    std::memcpy(bytes->data(), values.data(), bytes->size());
    const auto shared = Bytes(bytes);
    script.contents.push_back({"values " + std::to_string(script.contents.size()),
                               static_cast<int64_t>(bytes->size()), [shared] { return shared; }});
    return static_cast<int>(script.contents.size()) - 1;
  }
  Script script;
  int64_t calls = 0;
};

class EmitCppTest : public ::testing::Test {
 protected:
  EmitCppTest()
      : folder_(
            (fs::temp_directory_path() / ("acltape-emit-" + std::to_string(getpid()))).string()) {
    fs::remove_all(folder_);
  }
  ~EmitCppTest() override { fs::remove_all(folder_); }

  reproducer::BuiltReproducer Build(const reproducer::ReproducerScripts& scripts,
                                    reproducer::EmitOptions options = {}) {
    if (options.title.empty()) options.title = "a test";
    reproducer::EmitCpp(scripts, options, folder_);
    const reproducer::BuiltReproducer built = reproducer::BuildAndRun(
        folder_, acl::Library::SoftDeviceDirectory().parent_path().string());
    EXPECT_TRUE(built.compiled) << built.why_not << "\n" << Read("build.log");
    return built;
  }
  std::string Read(const std::string& name) const {
    std::ifstream file(folder_ + "/" + name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // Both scripts print a program that ends with `code`, and with 0 when it is clean.
  void ExpectExit(int code, const Draft& reference, const Draft& suspect) {
    const reproducer::BuiltReproducer built =
        Build({reference.script, suspect.script, std::nullopt});
    EXPECT_EQ(built.fault_exit, code) << Read("run.log") << Read("repro.cpp");
    EXPECT_EQ(built.clean_exit, 0) << Read("clean.log");
  }

  const std::string folder_;
};

Draft Eager() {
  Draft draft;
  draft.Put(0, 0, {1, 2, 3, 4}).Put(0, 64, {10, 20, 30, 40});
  draft.Run("aclnnAdd", {Vector(0, 0), Vector(0, 64), Int(1), Vector(0, 128)});
  draft.Run("aclnnMul", {Vector(0, 128), Vector(0, 0), Vector(0, 192)});
  return draft.SeeVector(0, 192);
}

Draft Captured(double wrong = 0) {
  Draft draft;
  draft.Put(0, 0, {1, 2, 3, 4}).Put(0, 64, {10, 20, 30, 40});
  draft.Do(BeginCapture{0, 0});
  draft.Run("aclnnAdd", {Vector(0, 0), Vector(0, 64), Int(1), Vector(1, 128)});
  if (wrong != 0) draft.Do(FillBytes{{1, 132}, 0x41, 4, 0});
  draft.Run("aclnnMul", {Vector(1, 128), Vector(0, 0), Vector(1, 192)});
  draft.Do(EndCapture{0}).Do(ExecuteGraph{0, 0});
  draft.Do(CopyBytes{{0, 192}, {1, 192}, 16, 0});
  draft.script.graphs = 1;
  return draft.SeeVector(0, 192);
}

TEST_F(EmitCppTest, ACapturedExecutionThatAgreesEndsWithZero) {
  ExpectExit(0, Eager(), Captured());
}

TEST_F(EmitCppTest, ResultsSaturateWhereThoseOfTheRecordedProgramDid) {
  Draft sum, greatest;
  sum.Put(0, 0, {3e38F, 1});
  sum.Run("aclnnAdd", {Vector(0, 0, 2), Vector(0, 0, 2), Int(1), Vector(0, 128, 2)});
  sum.SeeVector(0, 128, 2);
  greatest.Put(0, 128, {std::numeric_limits<float>::max(), 2}).SeeVector(0, 128, 2);
  reproducer::EmitOptions options;
  for (const bool saturates : {false, true}) {
    options.saturates = saturates;
    options.overwrite = true;
    const reproducer::BuiltReproducer built =
        Build({sum.script, greatest.script, std::nullopt}, options);
    EXPECT_EQ(built.fault_exit, saturates ? 0 : 1) << Read("run.log") << Read("repro.cpp");
  }
}

TEST_F(EmitCppTest, AProgramThatComparesNothingEndsWith125) {
  Draft blind;
  blind.Put(0, 0, {1, 2, 3, 4});
  blind.Run("aclnnAdd", {Vector(0, 0), Vector(0, 0), Int(1), Vector(0, 128)});
  const reproducer::BuiltReproducer built = Build({blind.script, blind.script, std::nullopt});
  EXPECT_EQ(built.fault_exit, 125) << built.output;
  EXPECT_EQ(built.clean_exit, 125) << Read("clean.log");
  EXPECT_NE(built.output.find("nothing was compared: "), std::string::npos) << built.output;
}

TEST_F(EmitCppTest, ADifferenceIsNamedAndEndsWithOne) {
  reproducer::EmitOptions options;
  options.title = "call 2 differs\nwhen captured";
  options.notes = {"class: numeric"};
  options.describe_call = [](int64_t call) { return "call " + std::to_string(call) + " aten::x"; };
  const reproducer::BuiltReproducer built =
      Build({Eager().script, Captured(1).script, Captured().script}, options);
  EXPECT_EQ(built.fault_exit, 1);
  EXPECT_EQ(built.clean_exit, 0);
  EXPECT_NE(built.output.find("step 7, call 2 aten::x, output 0: 1 of 4 elements differ, the first "
                              "is [1]: 24.1568623 (0x41c14141), expected 44 (0x42300000)"),
            std::string::npos)
      << built.output;
  const std::string source = Read("repro.cpp");
  EXPECT_EQ(source.rfind("// call 2 differs when captured\n//\n// class: numeric\n", 0), 0u);
  EXPECT_NE(source.find(reproducer::kBuildLine), std::string::npos);
  EXPECT_EQ(source.find("acltape"), std::string::npos);  // it stands alone
}

TEST_F(EmitCppTest, TwoStreamsForkAndJoinWithEvents) {
  Draft draft;
  draft.Put(0, 0, {1, 2, 3, 4}).Put(0, 64, {10, 20, 30, 40});
  draft.script.streams = 2;
  draft.script.events = 2;
  draft.script.graphs = 1;
  draft.Do(BeginCapture{0, 2}).Do(RecordEvent{0, 0}).Do(WaitEvent{0, 1});
  draft.Run("aclnnAdd", {Vector(0, 0), Vector(0, 64), Int(1), Vector(1, 128)}, 1);
  draft.Do(RecordEvent{1, 1}).Do(WaitEvent{1, 0});
  draft.Run("aclnnMul", {Vector(1, 128), Vector(0, 0), Vector(1, 192)}, 0);
  draft.Do(EndCapture{0}).Do(ChurnMemory{1 << 20, 5}).Do(SynchronizeAll{});
  draft.Do(ExecuteGraph{0, 1}).Do(SynchronizeAll{});
  draft.Do(CopyBytes{{0, 192}, {1, 192}, 16, 0}).SeeVector(0, 192);
  ExpectExit(0, Eager(), draft);
}

// The graph is captured with another factor; the update gives it the right one.
TEST_F(EmitCppTest, UpdatesOfTaskGroupsReplaceArguments) {
  const auto script = [](bool update) {
    Draft draft;
    draft.Put(0, 0, {1, 2, 3, 4});
    draft.script.streams = 2;
    draft.script.graphs = draft.script.groups = 1;
    draft.Do(BeginCapture{0, 2}).Do(BeginGroup{0, 0});
    draft.Run("aclnnMuls", {Vector(0, 0), Real(0.5), Vector(0, 64)});
    draft.Do(EndGroup{0, 0}).Do(EndCapture{0});
    if (update) {
      draft.Do(BeginUpdate{0, 1});
      draft.Run("aclnnMuls", {Vector(0, 0), Real(3.25), Vector(0, 64)}, 1);
      draft.Do(EndUpdate{0, 1}).Do(SynchronizeAll{});
    }
    draft.Do(ExecuteGraph{0, 0}).SeeVector(0, 64);
    return draft;
  };
  Draft eager;
  eager.Put(0, 0, {1, 2, 3, 4});
  eager.Run("aclnnMuls", {Vector(0, 0), Real(3.25), Vector(0, 64)}).SeeVector(0, 64);
  const reproducer::BuiltReproducer built =
      Build({eager.script, script(false).script, script(true).script});
  EXPECT_EQ(built.fault_exit, 1) << built.output;
  EXPECT_EQ(built.clean_exit, 0) << Read("clean.log");
}

// Column 1 of a 4 x 2 matrix, between elements that stay.
TEST_F(EmitCppTest, StridedUploadsAndOutputsKeepWhatLiesBetween) {
  const Layout column = LayoutOf({4}, {2}, 4);
  Draft strided;
  strided.Put(0, 0, {1, 0, 2, 0, 3, 0, 4, 0});
  strided.Do(UploadStrided{{0, 4}, &column, strided.Add({5, 6, 7, 8})});
  strided.See(0, LayoutOf({4, 2}, {2, 1})).See(0, column);
  Draft dense;
  dense.Put(0, 0, {1, 5, 2, 6, 3, 7, 4, 8}).Put(0, 256, {5, 6, 7, 8});
  dense.See(0, LayoutOf({4, 2}, {2, 1})).SeeVector(0, 256);
  ExpectExit(0, dense, strided);
}

TEST_F(EmitCppTest, UploadsThatAreMadeTogetherAreThoseOfTheirPieces) {
  Draft separate;
  separate.Put(0, 0, {1, 2, 3, 4}).Put(0, 16, {5, 6, 7, 8}).SeeVector(0, 0, 8);
  Draft together;
  for (const int64_t piece : {0, 1}) {
    const Floats values = piece == 0 ? Floats{1, 2, 3, 4} : Floats{5, 6, 7, 8};
    together.script.pieces.push_back({{0, 16 * piece}, together.Add(values), 0, 16});
  }
  together.Do(UploadTogether{{0, 0}, 32, 0, 2}).SeeVector(0, 0, 8);
  ExpectExit(0, separate, together);
}

TEST_F(EmitCppTest, EveryKindOfArgumentReachesItsOperator) {
  Draft draft;
  draft.Put(0, 0, {1, 2, 3, 4}).Put(0, 64, {-1, 2, -3, 4});
  const auto matrix = [](int64_t offset, int64_t rows, int64_t columns) {
    return TensorValue(At(0, LayoutOf({rows, columns}, {columns, 1}, offset)));
  };
  const LoweredTensor a = At(0, LayoutOf({4}, {1}, 0)), b = At(0, LayoutOf({4}, {1}, 64));
  const LoweredTensor empty = At(0, LayoutOf({0}, {1}, 0));
  draft.Run("aclnnCat", {Tensors({a, empty, b}), Int(0), Vector(0, 128, 8)}).SeeVector(0, 128, 8);
  draft.Run("aclnnMm", {matrix(0, 2, 2), matrix(64, 2, 2), matrix(192, 2, 2), Int(0)});
  draft.SeeVector(0, 192);
  draft.Run("aclnnReduceSum", {matrix(0, 2, 2), Ints({1}), BoolValue(false), Dtype(DType::kFloat32),
                               Vector(0, 256, 2)});
  draft.SeeVector(0, 256, 2);
  draft.Run("aclnnLayerNorm", {matrix(0, 2, 2), Ints({2}), None(), None(), Real(1e-5),
                               matrix(320, 2, 2), None(), None()});
  draft.SeeVector(0, 320);
  LoweredValue factors;
  factors.kind = ValueKind::kScalarList;
  factors.text = "float32,float32";
  for (const double factor : {2.5, -0.125}) {
    int64_t bits;
    std::memcpy(&bits, &factor, sizeof bits);
    factors.integers.push_back(bits);
  }
  draft.Run("aclnnForeachAddScalarList",
            {Tensors({a, b}), factors,
             Tensors({At(0, LayoutOf({4}, {1}, 384)), At(0, LayoutOf({4}, {1}, 448))})});
  draft.SeeVector(0, 384).SeeVector(0, 448);
  draft.Run("aclnnGeluBackwardV2", {Vector(0, 0), Vector(0, 64), Text("tanh"), Vector(0, 512)});
  draft.SeeVector(0, 512);
  Draft captured = draft;
  captured.script.operations.clear();
  captured.script.graphs = 1;
  bool begun = false;
  std::vector<Operation> seen;
  for (const Operation& operation : draft.script.operations) {
    if (std::holds_alternative<Observe>(operation)) {
      seen.push_back(operation);
      continue;
    }
    if (std::holds_alternative<Launch>(operation) && !begun) {
      captured.Do(BeginCapture{0, 1});
      begun = true;
    }
    captured.Do(operation);
  }
  captured.Do(EndCapture{0}).Do(ExecuteGraph{0, 0});
  for (const Operation& operation : seen) captured.Do(operation);
  ExpectExit(0, draft, captured);
}

TEST_F(EmitCppTest, AnOperatorThatTheDeviceRefusesEndsWithTwoAndItsName) {
  Draft draft;
  draft.Run("aclnnMm", {Vector(0, 0), Vector(0, 64), Vector(0, 128), Int(0)});
  reproducer::EmitOptions options;
  const reproducer::BuiltReproducer built =
      Build({draft.script, draft.script, std::nullopt}, options);
  EXPECT_EQ(built.fault_exit, 2);
  EXPECT_NE(built.output.find("aclnnMmGetWorkspaceSize"), std::string::npos) << built.output;
}

TEST_F(EmitCppTest, ContentsAreStoredOnce) {
  Draft twice = Eager();
  twice.Put(0, 256, {1, 2, 3, 4});
  reproducer::EmitOptions options;
  options.title = "a test";
  reproducer::EmitCpp({twice.script, twice.script, std::nullopt}, options, folder_);
  EXPECT_EQ(fs::file_size(folder_ + "/repro.bin"), 32u);
}

TEST_F(EmitCppTest, AFolderThatHoldsAReproducerIsKeptUnlessForced) {
  const reproducer::ReproducerScripts scripts{Eager().script, Captured().script, std::nullopt};
  reproducer::EmitOptions options;
  reproducer::EmitCpp(scripts, options, folder_);
  try {
    reproducer::EmitCpp(scripts, options, folder_);
    FAIL() << "overwritten";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    EXPECT_NE(std::string(error.what()).find("--force"), std::string::npos);
  }
  options.overwrite = true;
  reproducer::EmitCpp(scripts, options, folder_);
  try {
    reproducer::EmitCpp(scripts, options, folder_ + "/no/such/parent");
    FAIL() << "made";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kDevice);
  }
}

TEST_F(EmitCppTest, WithoutACompilerTheFilesAreKeptAndItIsSaid) {
  reproducer::EmitCpp({Eager().script, Captured().script, std::nullopt}, {}, folder_);
  const char* set = std::getenv("CXX");
  const std::string before = set == nullptr ? "" : set;
  setenv("CXX", "no-such-compiler", 1);
  const reproducer::BuiltReproducer built =
      reproducer::BuildAndRun(folder_, acl::Library::SoftDeviceDirectory().parent_path().string());
  if (set == nullptr) {
    unsetenv("CXX");
  } else {
    setenv("CXX", before.c_str(), 1);
  }
  EXPECT_FALSE(built.compiled);
  EXPECT_NE(built.why_not.find("no-such-compiler"), std::string::npos);
  EXPECT_TRUE(fs::exists(folder_ + "/repro.cpp"));
}

TEST_F(EmitCppTest, TheOtherCompilerTakesItToo) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the library's sanitizer is not the other compiler's";
#endif
  if (std::system("command -v clang++ >/dev/null 2>&1") != 0) GTEST_SKIP() << "no clang++ here";
  reproducer::EmitCpp({Eager().script, Captured().script, std::nullopt}, {}, folder_);
  const char* set = std::getenv("CXX");
  const std::string before = set == nullptr ? "" : set;
  setenv("CXX", "clang++", 1);
  const reproducer::BuiltReproducer built =
      reproducer::BuildAndRun(folder_, acl::Library::SoftDeviceDirectory().parent_path().string());
  if (set == nullptr) {
    unsetenv("CXX");
  } else {
    setenv("CXX", before.c_str(), 1);
  }
  EXPECT_TRUE(built.compiled) << Read("build.log");
  EXPECT_EQ(built.fault_exit, 0) << built.output;
}

TEST(PruneScript, DropsWhatNothingReadsAndKeepsTheRest) {
  Draft draft = Captured();
  const size_t needed = draft.script.operations.size();
  reproducer::PruneScript(draft.script);
  EXPECT_EQ(draft.script.operations.size(), needed);
  draft.Put(0, 512, {1, 2, 3, 4});  // copied on to where nobody looks
  draft.Do(CopyBytes{{1, 512}, {0, 512}, 16, 0});
  const Layout every_second = LayoutOf({2}, {2}, 0);
  draft.Do(UploadStrided{{0, 604}, &every_second, draft.Add({5, 6})});
  reproducer::PruneScript(draft.script);
  EXPECT_EQ(draft.script.operations.size(), needed);
}

TEST(CppText, NumbersReadBackAsTheyWere) {
  EXPECT_EQ(reproducer::RealText(1), "1.0");
  EXPECT_EQ(reproducer::RealText(0.1), "0.1");
  EXPECT_EQ(reproducer::RealText(1e300), "1e+300");
  EXPECT_EQ(reproducer::RealText(-0.0), "-0.0");
  EXPECT_EQ(reproducer::RealText(INFINITY), "INFINITY");
  EXPECT_EQ(reproducer::RealText(-INFINITY), "-INFINITY");
  EXPECT_EQ(reproducer::RealText(NAN), "NAN");
  EXPECT_EQ(reproducer::RealText(0.1f, "f"), "0.10000000149011612f");
  EXPECT_EQ(std::stof("0.10000000149011612"), 0.1f);
  EXPECT_EQ(reproducer::QuotedText("a\"b\\c\nd"), "\"a\\\"b\\\\c\\012d\"");
  EXPECT_EQ(reproducer::SizesText({2, std::numeric_limits<int64_t>::min()}), "{2, INT64_MIN}");
}

TEST(CppText, AnArgumentThatAnOperatorCannotTakeIsNamed) {
  const acl::OperatorInfo* info = acl::FindOperator("aclnnAdd");
  ASSERT_NE(info, nullptr);
  const reproducer::AddressText address = [](const LoweredTensor&) { return "home"; };
  Invocation invocation{"aclnnAdd", {Vector(0), Vector(0), Text("one"), Vector(0)}};
  try {
    reproducer::ArgumentTexts(*info, invocation, address);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()), "aclnnAdd: argument alpha cannot take a text");
  }
}

}  // namespace
}  // namespace acltape::replayer
