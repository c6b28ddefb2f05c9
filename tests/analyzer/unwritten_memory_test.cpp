// Memory of programs on the ACL interface that nothing wrote: who reads it, and what makes it
// defined.
#include <gtest/gtest.h>

#include "analyzer/executions/acl_flow.h"
#include "analyzer/lint/lint.h"
#include "tests/analyzer/acl_trace_builder.h"

namespace acltape::analyzer {
namespace {

using test::AclTraceBuilder;
using test::In;
using test::Int;
using test::Ints;
using test::Out;
using test::Scalar;
using test::TemporaryTrace;
using test::Tensor;
using test::Written;
using UnwrittenFloats = std::vector<float>;

class UnwrittenMemoryTest : public testing::Test {
 protected:
  UnwrittenMemoryTest() : file_("unwritten"), trace(file_.path()) {
    main = trace.NewStream();
    side = trace.NewStream();
    one = trace.Device({4, 4});
    Fill(one);
  }

  static UnwrittenFloats Content(const Tensor& tensor) {
    return UnwrittenFloats(static_cast<size_t>(tensor.layout.ElementCount()), 1.0f);
  }
  void Fill(const Tensor& tensor) { trace.Upload(tensor, Content(tensor)); }
  void Read(const Tensor& tensor) { trace.Download(tensor, Content(tensor)); }
  void Add(const Tensor& a, const Tensor& b, const Tensor& to) {
    trace.Op("aclnnAdd", main, {In("self", a), In("other", b), Scalar("alpha", 1), Out("out", to)});
  }
  void Memset(const Tensor& tensor) {
    const Tensor bytes = trace.Bytes(tensor);
    const int64_t size = bytes.layout.shape[0];
    trace.Interface("aclrtMemset", {Out("devPtr", bytes), Int("maxCount", size), Int("value", 0),
                                    Int("count", size)});
  }
  // Rows [first, end) of a matrix.
  static Tensor Rows(const Tensor& matrix, int64_t first, int64_t end) {
    Tensor rows = matrix;
    rows.layout.byte_offset += first * matrix.layout.strides[0] * 4;
    rows.layout.shape[0] = end - first;
    return rows;
  }
  static Tensor Column(const Tensor& matrix, int64_t column) {
    Tensor one = matrix;
    one.layout.byte_offset += column * 4;
    one.layout.shape[1] = 1;
    return one;
  }

  std::vector<lint::Finding> Findings() {
    trace.Finish();
    reader_ = std::make_unique<storage::Reader>(file_.path());
    work_ = LoadWork(*reader_);
    std::vector<lint::Finding> findings = lint::Lint(work_, {}).findings;
    std::erase_if(findings, [](const lint::Finding& one) { return one.rule->id != "LINT-47"; });
    return findings;
  }
  // The text of the finding without its evidence; "" if there is none, "several" if there are more.
  std::string Message() {
    const std::vector<lint::Finding> findings = Findings();
    if (findings.size() > 1) return "several";
    if (findings.empty()) return "";
    const std::string& text = findings[0].message;
    return text.substr(0, text.find(" (call"));
  }

  TemporaryTrace file_;
  AclTraceBuilder trace;
  int64_t main, side;
  Tensor one;
  std::unique_ptr<storage::Reader> reader_;
  Work work_;
};

TEST_F(UnwrittenMemoryTest, AnOperatorThatReadsMemoryBeforeItsFillIsNamed) {
  const Tensor half = trace.Device({4, 4}), sum = trace.Device({4, 4});
  Fill(Rows(half, 0, 2));
  Add(half, one, sum);
  trace.Synchronize(main);
  Read(sum);
  EXPECT_EQ(Message(),
            "aclnnAdd reads 8 of 16 elements that nothing has written, in the memory of "
            "aclrtMalloc; a value made of them comes to the host in aclrtMemcpy");
}

TEST_F(UnwrittenMemoryTest, MemoryThatIsClearedFirstIsRight) {
  const Tensor half = trace.Device({4, 4}), sum = trace.Device({4, 4});
  Memset(half);
  Fill(Rows(half, 0, 2));
  Add(half, one, sum);
  Read(sum);
  EXPECT_EQ(Message(), "");
}

TEST_F(UnwrittenMemoryTest, OnlyTheFilledPartIsRead) {
  const Tensor half = trace.Device({4, 4}), sum = trace.Device({4, 4});
  Fill(Rows(half, 0, 2));
  Add(half, one, sum);  // the rows of padding are computed too
  Read(Rows(sum, 0, 2));
  EXPECT_EQ(Message(), "");
}

TEST_F(UnwrittenMemoryTest, AnOperatorInPlaceReadsItsTensor) {
  const Tensor sum = trace.Device({4, 4});
  trace.Op("aclnnInplaceAdd", main,
           {Written("selfRef", sum), In("other", one), Scalar("alpha", 1)});
  Read(sum);
  EXPECT_EQ(Findings().size(), 1u);
}

TEST_F(UnwrittenMemoryTest, AnOperatorThatOverwritesItsTensorDoesNot) {
  const Tensor sum = trace.Device({4, 4}), copied = trace.Device({4, 4});
  trace.Op("aclnnInplaceZero", main, {Written("selfRef", sum)});
  trace.Op("aclnnInplaceAdd", main,
           {Written("selfRef", sum), In("other", one), Scalar("alpha", 1)});
  trace.Op("aclnnInplaceCopy", main, {Written("selfRef", copied), In("src", sum)});
  Read(copied);
  EXPECT_EQ(Message(), "");
}

TEST_F(UnwrittenMemoryTest, ColumnsAreFollowedAsColumns) {
  const Tensor wide = trace.Device({4, 4}), all = trace.Device({4, 4});
  const Tensor narrow = trace.Device({4, 1});
  trace.Op("aclnnInplaceCopy", main,
           {Written("selfRef", Column(wide, 1)), In("src", Column(one, 0))});
  trace.Op("aclnnNeg", main, {In("self", Column(wide, 1)), Out("out", narrow)});
  Read(narrow);
  EXPECT_EQ(Message(), "");
}

TEST_F(UnwrittenMemoryTest, TheColumnBesideTheWrittenOneIsNot) {
  const Tensor wide = trace.Device({4, 4}), narrow = trace.Device({4, 1});
  trace.Op("aclnnInplaceCopy", main,
           {Written("selfRef", Column(wide, 1)), In("src", Column(one, 0))});
  trace.Op("aclnnNeg", main, {In("self", Column(wide, 2)), Out("out", narrow)});
  Read(narrow);
  EXPECT_EQ(
      Message(),
      "aclnnNeg reads 4 of 4 elements that nothing has written, in the memory of aclrtMalloc; "
      "a value made of them comes to the host in aclrtMemcpy");
}

TEST_F(UnwrittenMemoryTest, MemoryThatWasFreedAndAllocatedAgainIsUndefinedAgain) {
  const Tensor first = trace.Device({4, 4}, storage::DType::kFloat32, 0x77000);
  Fill(first);
  Read(first);
  trace.Free(first);
  const Tensor second = trace.Device({4, 4}, storage::DType::kFloat32, 0x77000);
  const Tensor sum = trace.Device({4, 4});
  Add(second, one, sum);
  Read(sum);
  EXPECT_EQ(Findings().size(), 1u);
}

TEST_F(UnwrittenMemoryTest, ACopyOnTheDeviceTakesTheStateAlong) {
  const Tensor from = trace.Device({4, 4}), to = trace.Device({4, 4}), sum = trace.Device({4, 4});
  Fill(Rows(from, 1, 4));
  trace.Copy(Out("dst", trace.Bytes(to)), In("src", trace.Bytes(from)), 64, 3, main);
  Add(Rows(to, 1, 4), Rows(one, 1, 4), Rows(sum, 1, 4));
  Read(Rows(sum, 1, 4));
  Add(Rows(to, 0, 1), Rows(one, 0, 1), Rows(sum, 0, 1));
  Read(Rows(sum, 0, 1));
  const std::vector<lint::Finding> findings = Findings();
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].message.find("aclnnAdd reads 4 of 4 elements"), 0u);
}

TEST_F(UnwrittenMemoryTest, AResultThatNoOperatorWroteComesToTheHost) {
  const Tensor wrong = trace.Device({4, 4}), sum = trace.Device({4, 4});
  Add(one, one, sum);
  Read(wrong);
  EXPECT_EQ(Message(),
            "aclrtMemcpy brings 64 bytes to the host that nothing has written, in the memory of "
            "aclrtMalloc");
}

TEST_F(UnwrittenMemoryTest, AFrameworkMayCopyATensorWhoseContentNobodyUses) {
  trace.writer().SetMeta("torch_library", "libtorch_cpu.so");
  const Tensor empty = trace.Device({4, 4}), sum = trace.Device({4, 4});
  Add(one, one, sum);
  Read(empty);
  EXPECT_EQ(Message(), "");
}

TEST_F(UnwrittenMemoryTest, ABufferThatIsCopiedWholeMayHaveAPartThatNobodyUses) {
  const Tensor rows = trace.Device({8, 4});
  Add(one, one, Rows(rows, 0, 4));
  Read(rows);
  EXPECT_EQ(Message(), "");
}

TEST_F(UnwrittenMemoryTest, ATransferWithoutOperatorsMeasuresTheTransfer) {
  const Tensor any = trace.Device({4, 4});
  Read(any);
  EXPECT_EQ(Message(), "");
}

TEST_F(UnwrittenMemoryTest, AnOperatorThatReadsByMaskOrIndexNeedNotReadAll) {
  const Tensor half = trace.Device({4, 4}), picked = trace.Device({2, 4});
  const Tensor index = trace.Device({2}, storage::DType::kInt64);
  trace.Upload(index, std::vector<int64_t>{0, 1});
  Fill(Rows(half, 0, 2));
  trace.Op("aclnnIndexSelect", main,
           {In("self", half), Int("dim", 0), In("index", index), Out("out", picked)});
  Read(picked);
  EXPECT_EQ(Message(), "");
}

TEST_F(UnwrittenMemoryTest, PaddingThatIsMaskedByAnOperatorIsDefined) {
  const Tensor half = trace.Device({4, 4}), all = trace.Device({4});
  const Tensor mask = trace.Device({4, 1}, storage::DType::kBool);
  trace.Upload(mask, std::vector<uint8_t>{0, 0, 1, 1});
  Fill(Rows(half, 0, 2));
  trace.Op("aclnnInplaceMaskedFillScalar", main,
           {Written("selfRef", half), In("mask", mask), Scalar("value", 0)});
  trace.Op("aclnnReduceSum", main,
           {In("self", half), Ints("dims", {0}), test::Bool("keepDims", false), Out("out", all)});
  Read(all);
  EXPECT_EQ(Message(), "");
}

TEST_F(UnwrittenMemoryTest, ARowOfAReductionIsMadeOfItsOwnElements) {
  const Tensor half = trace.Device({4, 4}), sums = trace.Device({4});
  Fill(Rows(half, 0, 2));
  trace.Op("aclnnReduceSum", main,
           {In("self", half), Ints("dims", {1}), test::Bool("keepDims", false), Out("out", sums)});
  Tensor two = sums;
  two.layout.shape = {2};
  Read(two);
  EXPECT_EQ(Message(), "");
}

TEST_F(UnwrittenMemoryTest, AColumnOfAReductionIsMadeOfAllRows) {
  const Tensor half = trace.Device({4, 4}), sums = trace.Device({4});
  Fill(Rows(half, 0, 2));
  trace.Op("aclnnReduceSum", main,
           {In("self", half), Ints("dims", {0}), test::Bool("keepDims", false), Out("out", sums)});
  Read(sums);
  EXPECT_EQ(Findings().size(), 1u);
}

TEST_F(UnwrittenMemoryTest, ATermWithTheFactorZeroIsNotRead) {
  const Tensor term = trace.Device({4, 4}), product = trace.Device({4, 4});
  trace.Op("aclnnAddmm", main,
           {In("self", term), In("mat1", one), In("mat2", one), Scalar("beta", 0),
            Scalar("alpha", 1), Out("out", product), Int("cubeMathType", 0)});
  Read(product);
  EXPECT_EQ(Message(), "");
}

TEST_F(UnwrittenMemoryTest, AWorkspaceHasNoContentOfWhichToTell) {
  const Tensor workspace = trace.Device({4, 4}), sum = trace.Device({4, 4});
  trace.OpWithWorkspace("aclnnAdd", main,
                        {In("self", one), In("other", one), Scalar("alpha", 1), Out("out", sum)},
                        workspace);
  Read(sum);
  Read(workspace);  // it serves as scratch memory of the host's too
  EXPECT_EQ(Message(), "");
}

TEST_F(UnwrittenMemoryTest, AGraphReadsWhatNothingWroteBeforeItsExecution) {
  const Tensor input = trace.Device({4, 4}), sum = trace.Device({4, 4});
  trace.BeginCapture(main);
  Add(input, one, sum);
  const int64_t model = trace.EndCapture(main);
  trace.Execute(model, main);
  trace.Synchronize(main);
  Read(sum);
  EXPECT_EQ(Findings().size(), 1u);
}

TEST_F(UnwrittenMemoryTest, ACaptureReadsNothing) {
  const Tensor input = trace.Device({4, 4}), sum = trace.Device({4, 4});
  trace.BeginCapture(main);
  Add(input, one, sum);
  const int64_t model = trace.EndCapture(main);
  Fill(input);
  trace.Execute(model, main);
  trace.Synchronize(main);
  Read(sum);
  EXPECT_EQ(Message(), "");
}

class UnwrittenByValueTest : public UnwrittenMemoryTest {
 protected:
  UnwrittenByValueTest() { word = trace.Device({8}, storage::DType::kUint8); }
  // The operator waits for a value that is written after its input, both by another stream.
  void ReadAfterWait() {
    const Tensor input = trace.Device({4, 4}), sum = trace.Device({4, 4});
    trace.Interface("aclrtValueWait",
                    {In("devAddr", word), Int("value", 1), Int("flag", 1), Int("stream", main)},
                    main);
    Add(input, one, sum);
    trace.Upload(input, Content(input), side);
    trace.Interface("aclrtValueWrite",
                    {Out("devAddr", word), Int("value", 1), Int("flag", 0), Int("stream", side)},
                    side);
    trace.Synchronize(main);
    Read(sum);
  }
  Tensor word;
};

TEST_F(UnwrittenByValueTest, AWaitForAValuePutsTheReadAfterTheWrite) {
  Memset(word);
  ReadAfterWait();
  EXPECT_EQ(Message(), "");
}

TEST_F(UnwrittenByValueTest, WhereAValueIsNotKnownTheOrderIsNot) {
  trace.Upload(word, std::vector<uint8_t>(8, 0));
  ReadAfterWait();
  EXPECT_EQ(Message(), "");
}

TEST_F(UnwrittenMemoryTest, AGraphThatWaitsForAnEventFromOutsideMayRunAfterALaterCopy) {
  const Tensor input = trace.Device({4, 4}), sum = trace.Device({4, 4});
  const int64_t ready = trace.NewEvent(0x20);
  trace.BeginCapture(main);
  trace.Wait(main, ready);
  Add(input, one, sum);
  const int64_t model = trace.EndCapture(main);
  trace.Execute(model, main);
  trace.Upload(input, Content(input), side);
  trace.Record(ready, side);
  trace.Synchronize(main);
  Read(sum);
  EXPECT_EQ(Message(), "");
}

TEST_F(UnwrittenMemoryTest, KernelsOfTheProgramMayHaveWrittenAllMemory) {
  const Tensor input = trace.Device({4, 4}), sum = trace.Device({4, 4});
  trace.Interface("aclrtLaunchKernelWithConfig", {Int("funcHandle", 1), Int("numBlocks", 1)}, main);
  Add(input, one, sum);
  Read(sum);
  EXPECT_EQ(Message(), "");
}

TEST_F(UnwrittenMemoryTest, MemoryThatAnotherCallNamesMayBeWrittenByOthers) {
  const Tensor input = trace.Device({4, 4}), sum = trace.Device({4, 4});
  trace.Interface("aclCreateDataBuffer", {In("data", trace.Bytes(input)), Int("size", 64)});
  Add(input, one, sum);
  Read(sum);
  EXPECT_EQ(Message(), "");
}

class AclFlowTest : public testing::Test {
 protected:
  static storage::Layout Of(const std::vector<int64_t>& shape) {
    storage::Layout layout;
    layout.dtype = storage::DType::kFloat32;
    layout.shape = shape;
    layout.strides = test::RowMajor(shape);
    return layout;
  }
  static storage::SignatureArgument Number(const char* name, int64_t integer) {
    storage::SignatureArgument argument;
    argument.name = name;
    argument.kind = storage::ValueKind::kInt;
    argument.integer = integer;
    return argument;
  }
  static storage::SignatureArgument List(const char* name, const std::vector<int64_t>& integers) {
    storage::SignatureArgument argument = Number(name, 0);
    argument.kind = storage::ValueKind::kIntList;
    argument.integers = integers;
    return argument;
  }
  static std::string Flow(const char* name,
                          const std::vector<storage::SignatureArgument>& arguments,
                          const std::vector<executions::FlowTensor>& inputs,
                          const storage::Layout& result) {
    std::string text;
    for (const char one : executions::FlowOfAcl(name, arguments, inputs, result)) {
      text += one != 0 ? '1' : '0';
    }
    return text;
  }
};

TEST_F(AclFlowTest, EachMatrixOfABatchIsAProductOfItsOwn) {
  const storage::Layout left = Of({2, 1, 2}), right = Of({2, 2, 2}), product = Of({2, 1, 2});
  EXPECT_EQ(Flow("aclnnBatchMatMul", {}, {{0, &left, {0, 0, 0, 1}}, {1, &right, {}}}, product),
            "0011");
  EXPECT_EQ(Flow("aclnnBatchMatMul", {}, {{0, &left, {}}, {1, &right, {0, 1, 0, 0, 0, 0, 0, 0}}},
                 product),
            "0100");
}

TEST_F(AclFlowTest, AConcatenationPutsItsPartsBesideEachOther) {
  const storage::Layout part = Of({2, 1}), whole = Of({2, 2});
  EXPECT_EQ(Flow("aclnnCat", {Number("dim", 1)}, {{0, &part, {}}, {0, &part, {1, 0}}}, whole),
            "0100");
}

TEST_F(AclFlowTest, APermutationMovesElements) {
  const storage::Layout wide = Of({2, 3}), tall = Of({3, 2});
  EXPECT_EQ(Flow("aclnnPermute", {List("dims", {1, 0})}, {{0, &wide, {0, 1, 0, 0, 0, 0}}}, tall),
            "001000");
}

TEST_F(AclFlowTest, ASliceHasTheElementsThatItNames) {
  const storage::Layout all = Of({6}), some = Of({2});
  EXPECT_EQ(Flow("aclnnSlice",
                 {Number("dim", 0), Number("start", 1), Number("end", 5), Number("step", 2)},
                 {{0, &all, {0, 0, 0, 1, 0, 0}}}, some),
            "01");
}

TEST_F(AclFlowTest, NormalisationMixesEachRow) {
  const storage::Layout rows = Of({2, 2}), weight = Of({2}), of_rows = Of({2, 1});
  const std::vector<executions::FlowTensor> inputs = {{0, &rows, {0, 0, 1, 0}}, {1, &weight, {}}};
  EXPECT_EQ(Flow("aclnnRmsNorm", {}, inputs, rows), "0011");
  EXPECT_EQ(Flow("aclnnRmsNorm", {}, inputs, of_rows), "01");
}

TEST_F(AclFlowTest, OfAttentionNothingIsKnown) {
  EXPECT_FALSE(executions::IsAclFlowKnown("aclnnFusedInferAttentionScoreV3"));
  EXPECT_TRUE(executions::IsAclFlowKnown("aclnnInplaceMuls"));
}

}  // namespace
}  // namespace acltape::analyzer
