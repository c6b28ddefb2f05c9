// Dumps of what operators read and write (section 34 of the rules).
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "acl/acl.h"
#include "acl/acl_dump.h"
#include "aclnn/aclnn_base.h"
#include "aclnnop/aclnn_add.h"
#include "aclnnop/aclnn_neg.h"

namespace acltape::opapi {
namespace {

namespace fs = std::filesystem;

// A dump file taken apart by what the page says of the format.
struct DumpTensor {
  bool is_output = false;
  uint64_t type = 0, format = 0, bytes = 0;
  std::vector<uint64_t> shape;
  std::vector<float> values;
};

struct DumpFile {
  std::string op;
  uint64_t time = 0;
  std::string attribute;  // its message
  std::vector<DumpTensor> tensors;
};

class Reader {
 public:
  Reader(const char* first, const char* last) : at_(first), last_(last) {}
  bool Done() const { return at_ == last_; }
  uint64_t Varint() {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(*at_++);
      value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
  }
  Reader Inner() {
    const uint64_t length = Varint();
    const char* first = at_;
    at_ += length;
    return {first, at_};
  }
  std::string Text() const { return {at_, last_}; }

 private:
  const char* at_;
  const char* last_;
};

std::vector<uint64_t> ReadShape(Reader message) {
  std::vector<uint64_t> sizes;
  while (!message.Done()) {
    EXPECT_EQ(message.Varint(), 1u << 3 | 2);
    for (Reader packed = message.Inner(); !packed.Done();) sizes.push_back(packed.Varint());
  }
  return sizes;
}

DumpTensor ReadTensor(Reader message, bool is_output) {
  DumpTensor tensor;
  tensor.is_output = is_output;
  const uint64_t size_field = is_output ? 6 : 5;
  while (!message.Done()) {
    const uint64_t key = message.Varint();
    if (key == 1 << 3) tensor.type = message.Varint();
    if (key == 2 << 3) tensor.format = message.Varint();
    if (key == (3 << 3 | 2)) tensor.shape = ReadShape(message.Inner());
    if (key == size_field << 3) tensor.bytes = message.Varint();
    if (key == ((size_field + 1) << 3 | 2)) {
      EXPECT_EQ(ReadShape(message.Inner()), tensor.shape);
    }
  }
  return tensor;
}

DumpFile ReadDump(const std::string& content) {
  DumpFile file;
  uint64_t length = 0;
  std::memcpy(&length, content.data(), 8);
  for (Reader message(content.data() + 8, content.data() + 8 + length); !message.Done();) {
    const uint64_t key = message.Varint();
    if (key == 2 << 3) file.time = message.Varint();
    if (key == (3 << 3 | 2)) file.tensors.push_back(ReadTensor(message.Inner(), true));
    if (key == (4 << 3 | 2)) file.tensors.push_back(ReadTensor(message.Inner(), false));
    if (key == (6 << 3 | 2)) file.op = message.Inner().Text();
    if (key == (7 << 3 | 2)) file.attribute = message.Inner().Text();
    if (key == (1 << 3 | 2)) message.Inner();
  }
  size_t offset = 8 + length;
  for (DumpTensor& tensor : file.tensors) {
    tensor.values.resize(tensor.bytes / sizeof(float));
    std::memcpy(tensor.values.data(), content.data() + offset, tensor.bytes);
    offset += tensor.bytes;
  }
  EXPECT_EQ(offset, content.size());
  return file;
}

// The bytes of a file that the callback was given.
struct Received {
  std::string content;
  int chunks = 0;
  bool ended = false;
};
std::map<std::string, Received>* received = nullptr;
bool length_is_right = true;
int32_t answer = 0;

int32_t TakeChunk(const acldumpChunk* chunk, int32_t length) {
  Received& file = (*received)[chunk->fileName];
  length_is_right =
      length_is_right && static_cast<size_t>(length) == sizeof(*chunk) + chunk->bufLen;
  EXPECT_EQ(chunk->offset, static_cast<int64_t>(file.content.size()));
  EXPECT_FALSE(file.ended);
  file.content.append(reinterpret_cast<const char*>(chunk->dataBuf), chunk->bufLen);
  ++file.chunks;
  file.ended = chunk->isLastChunk == 1;
  return answer;
}

class Dump : public testing::Test {
 protected:
  void SetUp() override {
    std::string folder = "/tmp/acltape_dump_XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    fs::create_directory(folder_ / "out");
    received_.clear();
    received = &received_;
    answer = 0;
  }
  void TearDown() override {
    acldumpUnregCallback();
    aclrtResetDeviceForce(0);
    aclFinalize();
    fs::remove_all(folder_);
  }

  // Writes the configuration: `members` of the object "dump" besides the path.
  std::string Configuration(const std::string& members) {
    const std::string path = folder_ / "acl.json";
    std::ofstream(path) << "{\"dump\": {\"dump_path\": \"" << (folder_ / "out").string() << "\", "
                        << members << "}}";
    return path;
  }
  void Begin(const std::string& members) {
    ASSERT_EQ(aclInit(Configuration(members).c_str()), ACL_SUCCESS) << aclGetRecentErrMsg();
    Open();
  }
  void Open() {
    ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    ASSERT_EQ(aclrtCreateStream(&stream_), ACL_SUCCESS);
  }

  aclTensor* Tensor(const std::vector<float>& values, std::vector<int64_t> sizes,
                    std::vector<int64_t> strides) {
    void* memory = nullptr;
    const size_t bytes = values.size() * sizeof(float);
    EXPECT_EQ(aclrtMalloc(&memory, bytes, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
    EXPECT_EQ(aclrtMemcpy(memory, bytes, values.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE), 0);
    return aclCreateTensor(sizes.data(), sizes.size(), ACL_FLOAT, strides.data(), 0, ACL_FORMAT_ND,
                           sizes.data(), sizes.size(), memory);
  }
  // out = self + 2 * other, of six elements each; `other` lies transposed in memory.
  void Add() {
    const aclTensor* self = Tensor({1, 2, 3, 4, 5, 6}, {2, 3}, {3, 1});
    const aclTensor* other = Tensor({10, 40, 20, 50, 30, 60}, {2, 3}, {1, 2});
    aclTensor* out = Tensor({0, 0, 0, 0, 0, 0}, {2, 3}, {3, 1});
    float two = 2;
    const aclScalar* alpha = aclCreateScalar(&two, ACL_FLOAT);
    uint64_t bytes = 0;
    aclOpExecutor* executor = nullptr;
    ASSERT_EQ(aclnnAddGetWorkspaceSize(self, other, alpha, out, &bytes, &executor), OK);
    // The dump keeps what it needs.
    for (const aclTensor* tensor : {self, other, static_cast<const aclTensor*>(out)}) {
      aclDestroyTensor(tensor);
    }
    ASSERT_EQ(aclnnAdd(nullptr, 0, executor, stream_), OK);
    ASSERT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  }
  void Neg(int64_t count) {
    aclTensor* self = Tensor(std::vector<float>(static_cast<size_t>(count), 1.0f), {count}, {1});
    uint64_t bytes = 0;
    aclOpExecutor* executor = nullptr;
    ASSERT_EQ(aclnnNegGetWorkspaceSize(self, self, &bytes, &executor), OK);
    ASSERT_EQ(aclnnNeg(nullptr, 0, executor, stream_), OK);
    ASSERT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  }

  // Files below the dump's folder, by name.
  std::map<std::string, std::string> Files() {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(folder_ / "out")) {
      if (!entry.is_regular_file()) continue;
      std::stringstream content;
      content << std::ifstream(entry.path(), std::ios::binary).rdbuf();
      files[fs::relative(entry.path(), folder_ / "out")] = content.str();
    }
    return files;
  }
  static std::vector<float> Expected() { return {21, 42, 63, 84, 105, 126}; }

  fs::path folder_;
  aclrtStream stream_ = nullptr;
  std::map<std::string, Received> received_;
};

TEST_F(Dump, DMP_01_DMP_04_OutputsGoIntoAFileThatSaysWhatTheyAre) {
  Begin(R"("dump_list": [{}], "dump_op_switch": "on")");
  Add();
  const auto files = Files();
  ASSERT_EQ(files.size(), 1u);
  const auto& [name, content] = *files.begin();
  // time / device / type.name.task.stream.time
  const std::string last = name.substr(name.rfind('/') + 1);
  EXPECT_EQ(last.substr(0, 13), "Add.aclnnAdd.") << name;
  EXPECT_EQ(name.substr(14, 3), "/0/") << name;
  const DumpFile file = ReadDump(content);
  EXPECT_EQ(file.op, "aclnnAdd");
  EXPECT_EQ(std::to_string(file.time), last.substr(last.rfind('.') + 1));
  ASSERT_EQ(file.tensors.size(), 1u);
  EXPECT_TRUE(file.tensors[0].is_output);
  EXPECT_EQ(file.tensors[0].type, 1u);    // float32
  EXPECT_EQ(file.tensors[0].format, 2u);  // ND
  EXPECT_EQ(file.tensors[0].shape, (std::vector<uint64_t>{2, 3}));
  EXPECT_EQ(file.tensors[0].values, Expected());
}

TEST_F(Dump, DMP_01_DMP_04_InputsAreThoseFromBeforeTheRunWithoutGapsInTheirOrder) {
  Begin(R"("dump_list": [], "dump_op_switch": "on", "dump_mode": "all", "dump_level": "op")");
  Add();
  Neg(3);  // in place
  std::map<std::string, DumpFile> by_time;
  for (const auto& [name, content] : Files()) {
    by_time[name.substr(name.rfind('.') + 1)] = ReadDump(content);
  }
  ASSERT_EQ(by_time.size(), 4u);
  auto file = by_time.begin();
  ASSERT_EQ(file->second.tensors.size(), 2u);
  EXPECT_FALSE(file->second.tensors[0].is_output);
  EXPECT_EQ(file->second.tensors[0].values, (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(file->second.tensors[1].values, (std::vector<float>{10, 20, 30, 40, 50, 60}));
  EXPECT_EQ((++file)->second.tensors[0].values, Expected());
  EXPECT_EQ((++file)->second.tensors[0].values, (std::vector<float>{1, 1, 1}));
  EXPECT_EQ((++file)->second.tensors[0].values, (std::vector<float>{-1, -1, -1}));
}

TEST_F(Dump, DMP_01_OnlyTheNamedOperatorsAndOnlyWhenSwitchedOn) {
  Begin(R"("dump_list": [{"layer": ["Neg"]}], "dump_op_switch": "on")");
  Add();
  Neg(3);
  ASSERT_EQ(Files().size(), 1u);
  EXPECT_EQ(ReadDump(Files().begin()->second).op, "aclnnNeg");
  EXPECT_EQ(aclFinalize(), ACL_SUCCESS);
  Begin(R"("dump_list": [{}])");  // off, as it is usually
  Add();
  EXPECT_EQ(Files().size(), 1u);
  EXPECT_EQ(aclFinalize(), ACL_SUCCESS);
  Begin(R"("dump_op_switch": "on")");  // a list of models means nothing to operators
  Add();
  EXPECT_EQ(Files().size(), 2u);
}

TEST_F(Dump, DMP_01_WrongSettingsAreRefused) {
  for (const char* wrong :
       {R"("dump_list": 1)", R"("dump_list": [], "dump_mode": "some")",
        R"("dump_list": [], "dump_op_switch": "maybe")",
        R"("dump_list": [], "dump_path": "/no/such")", R"("dump_scene": "unheard")",
        R"("dump_scene": "lite_exception", "dump_list": [])",
        R"("dump_debug": "on", "dump_list": [])"}) {
    EXPECT_EQ(aclInit(Configuration(wrong).c_str()), 100009) << wrong;
  }
  EXPECT_EQ(aclInit(nullptr), ACL_SUCCESS);  // none of those took effect
}

TEST_F(Dump, DMP_02_BetweenInitDumpAndFinalizeDump) {
  ASSERT_EQ(aclInit(nullptr), ACL_SUCCESS);
  Open();
  const std::string path = Configuration(R"("dump_list": [], "dump_op_switch": "on")");
  EXPECT_EQ(aclmdlSetDump(path.c_str()), 100045);
  EXPECT_EQ(aclmdlFinalizeDump(), 100045);
  EXPECT_EQ(aclmdlInitDump(), ACL_SUCCESS);
  EXPECT_EQ(aclmdlSetDump("/no/such/file"), 100003);
  Add();
  EXPECT_EQ(Files().size(), 0u);
  EXPECT_EQ(aclmdlSetDump(path.c_str()), ACL_SUCCESS);
  Add();
  EXPECT_EQ(Files().size(), 1u);
  EXPECT_EQ(aclmdlFinalizeDump(), ACL_SUCCESS);
  Add();
  EXPECT_EQ(Files().size(), 1u);
}

TEST_F(Dump, DMP_02_SettingsOfAclInitStandAlone) {
  Begin(R"("dump_list": [])");
  EXPECT_EQ(aclmdlInitDump(), 100044);
}

TEST_F(Dump, DMP_03_ThePathOfEachKind) {
  Begin(R"("dump_list": [])");
  EXPECT_EQ(std::string(acldumpGetPath(DATA_DUMP)), (folder_ / "out").string());
  EXPECT_EQ(acldumpGetPath(OVERFLOW_DUMP), nullptr);
  EXPECT_EQ(acldumpGetPath(AIC_ERR_BRIEF_DUMP), nullptr);
  EXPECT_EQ(aclFinalize(), ACL_SUCCESS);
  EXPECT_EQ(acldumpGetPath(DATA_DUMP), nullptr);
  Begin(R"("dump_scene": "lite_exception")");
  EXPECT_EQ(std::string(acldumpGetPath(AIC_ERR_BRIEF_DUMP)), (folder_ / "out").string());
  EXPECT_EQ(aclmdlInitDump(), ACL_SUCCESS);  // such a dump stands beside others
  EXPECT_EQ(aclFinalize(), ACL_SUCCESS);
  Begin(R"("dump_debug": "on")");
  EXPECT_EQ(std::string(acldumpGetPath(OVERFLOW_DUMP)), (folder_ / "out").string());
}

// Makes what a program says of floats in device memory.
acldumpTensorInfo InfoOf(acldumpTensorType type, const std::vector<float>& values) {
  void* memory = nullptr;
  const size_t bytes = values.size() * sizeof(float);
  EXPECT_EQ(aclrtMalloc(&memory, bytes, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemcpy(memory, bytes, values.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE), 0);
  acldumpTensorInfo info{};
  info.type = type;
  info.tensorSize = bytes;
  info.format = ACL_FORMAT_ND;
  info.dataType = ACL_FLOAT;
  info.tensorAddr = static_cast<int64_t*>(memory);
  info.addrType = ACL_DUMP_ADDR_RAW;
  info.placement = ACL_DUMP_PLACEMENT_DEVICE;
  info.shapeNum = info.originShapeNum = 1;
  info.shape[0] = info.originShape[0] = values.size();
  return info;
}

TEST_F(Dump, DMP_08_AProgramSavesItsTensorsWithATag) {
  Begin(R"("dump_scene": "aic_err_brief_dump")");
  char path[ACL_DUMP_MAX_FILE_PATH_LENGTH];
  ASSERT_EQ(acldumpGetExceptionInfoPath(path, sizeof(path)), ACL_SUCCESS);
  EXPECT_EQ(std::string(path), (folder_ / "out").string() + "/extra-info/data-dump/0/");
  const acldumpTensorInfo tensors[] = {InfoOf(ACL_DUMP_TENSOR_OUTPUT, {4, 5}),
                                       InfoOf(ACL_DUMP_TENSOR_WORKSPACE, {6, 7, 8}),
                                       InfoOf(ACL_DUMP_TENSOR_INPUT, {1, 2, 3})};
  ASSERT_EQ(acldumpSaveExceptionInfo("of/mine", "stage=forward", tensors, 2), ACL_SUCCESS);
  ASSERT_EQ(acldumpSaveExceptionInfo("of/mine", nullptr, tensors + 2, 1), ACL_SUCCESS);
  const auto files = Files();
  ASSERT_EQ(files.size(), 2u);
  for (const auto& [name, content] : files) {
    EXPECT_EQ(name.substr(0, 40), "extra-info/data-dump/0/of/mine.custom.20") << name;
    EXPECT_EQ(name.size(), 38u + 17) << "it ends with the time in milliseconds: " << name;
    uint64_t length = 0;
    std::memcpy(&length, content.data(), 8);
    const bool tagged = content.find("userTag") != std::string::npos;
    // The elements follow the message: inputs, then outputs, then workspaces.
    std::vector<float> values((content.size() - 8 - length) / sizeof(float));
    std::memcpy(values.data(), content.data() + 8 + length, values.size() * sizeof(float));
    EXPECT_EQ(values, tagged ? (std::vector<float>{4, 5, 6, 7, 8}) : (std::vector<float>{1, 2, 3}));
    if (tagged) {
      EXPECT_NE(content.find("\x0a\x07userTag\x12\x0dstage=forward"), std::string::npos);
      continue;
    }
    const DumpFile file = ReadDump(content);
    EXPECT_EQ(file.op, "mine");
    EXPECT_EQ(file.attribute, "");
    ASSERT_EQ(file.tensors.size(), 1u);
    EXPECT_FALSE(file.tensors[0].is_output);
    EXPECT_EQ(file.tensors[0].shape, (std::vector<uint64_t>{3}));
  }
}

TEST_F(Dump, DMP_08_RefusalsOfSaving) {
  char path[ACL_DUMP_MAX_FILE_PATH_LENGTH];
  Begin(R"("dump_list": [])");
  const acldumpTensorInfo good = InfoOf(ACL_DUMP_TENSOR_INPUT, {1, 2});
  EXPECT_EQ(acldumpGetExceptionInfoPath(path, sizeof(path)), 500001);
  EXPECT_EQ(acldumpSaveExceptionInfo("mine", "", &good, 1), 500001);
  ASSERT_EQ(aclFinalize(), ACL_SUCCESS);

  Begin(R"("dump_scene": "lite_exception")");
  EXPECT_EQ(acldumpGetExceptionInfoPath(nullptr, 9), 100000);
  EXPECT_EQ(acldumpGetExceptionInfoPath(path, 1), 100000);
  EXPECT_EQ(acldumpGetExceptionInfoPath(path, 9), 100000);
  const acldumpTensorInfo own = InfoOf(ACL_DUMP_TENSOR_INPUT, {1, 2});
  EXPECT_EQ(acldumpSaveExceptionInfo(nullptr, "", &own, 1), 100000);
  EXPECT_EQ(acldumpSaveExceptionInfo("", "", &own, 1), 100000);
  EXPECT_EQ(acldumpSaveExceptionInfo("mine", "", nullptr, 1), 100000);
  EXPECT_EQ(acldumpSaveExceptionInfo("mine", "", &own, 0), 100000);
  for (const char* name : {"..", "../mine", "of/../../mine", "of/.."}) {
    EXPECT_EQ(acldumpSaveExceptionInfo(name, "", &own, 1), 100000) << name;
  }
  const auto with = [&own](auto member, auto value) {
    acldumpTensorInfo changed = own;
    changed.*member = value;
    return acldumpSaveExceptionInfo("mine", "", &changed, 1);
  };
  EXPECT_EQ(with(&acldumpTensorInfo::shapeNum, 26u), 100000);
  EXPECT_EQ(with(&acldumpTensorInfo::originShapeNum, 26u), 100000);
  EXPECT_EQ(with(&acldumpTensorInfo::type, static_cast<acldumpTensorType>(3)), 100000);
  EXPECT_EQ(with(&acldumpTensorInfo::addrType, ACL_DUMP_ADDR_PTR), 100000);
  EXPECT_EQ(with(&acldumpTensorInfo::placement, ACL_DUMP_PLACEMENT_HOST), 100000);
  EXPECT_EQ(with(&acldumpTensorInfo::tensorAddr, nullptr), 100000);
  EXPECT_EQ(with(&acldumpTensorInfo::tensorSize, size_t{0}), 100000);
  EXPECT_EQ(with(&acldumpTensorInfo::tensorSize, size_t{1} << 30), 107000);
  EXPECT_EQ(Files().size(), 0u);
}

TEST_F(Dump, DMP_05_ACallbackGetsTheFilesInChunksAndNoneIsWritten) {
  Begin(R"("dump_list": [], "dump_op_switch": "on")");
  EXPECT_EQ(acldumpRegCallback(nullptr, 0), 100000);
  EXPECT_EQ(acldumpRegCallback(TakeChunk, 1), 500001);
  ASSERT_EQ(acldumpRegCallback(TakeChunk, 0), ACL_SUCCESS);
  Add();
  Neg(600000);  // 2.4 MB
  ASSERT_EQ(received_.size(), 2u);
  EXPECT_TRUE(length_is_right);
  int chunks = 0;
  for (const auto& [name, file] : received_) {
    EXPECT_EQ(name.substr(0, folder_.string().size()), folder_.string());
    EXPECT_TRUE(file.ended);
    chunks += file.chunks;
    const DumpFile dump = ReadDump(file.content);
    if (dump.op == "aclnnAdd") {
      EXPECT_EQ(dump.tensors[0].values, Expected());
    } else {
      EXPECT_EQ(dump.tensors[0].values.size(), 600000u);
    }
  }
  EXPECT_EQ(chunks, 4);
  EXPECT_EQ(Files().size(), 0u);
  acldumpUnregCallback();
  Add();
  EXPECT_EQ(received_.size(), 2u);
  EXPECT_EQ(Files().size(), 1u);
}

TEST_F(Dump, DMP_05_ACallbackWithoutAConfigurationGetsOutputs) {
  ASSERT_EQ(aclInit(nullptr), ACL_SUCCESS);
  Open();
  ASSERT_EQ(acldumpRegCallback(TakeChunk, 0), ACL_SUCCESS);
  Add();
  EXPECT_EQ(received_.size(), 0u);
  ASSERT_EQ(aclmdlInitDump(), ACL_SUCCESS);
  Add();
  ASSERT_EQ(received_.size(), 1u);
  EXPECT_EQ(ReadDump(received_.begin()->second.content).tensors[0].values, Expected());
  EXPECT_EQ(aclmdlFinalizeDump(), ACL_SUCCESS);
  Add();
  EXPECT_EQ(received_.size(), 1u);
}

TEST_F(Dump, DMP_05_ACallbackThatRefusesGetsNoMoreOfTheFile) {
  Begin(R"("dump_list": [], "dump_op_switch": "on")");
  ASSERT_EQ(acldumpRegCallback(TakeChunk, 0), ACL_SUCCESS);
  answer = -1;
  Neg(600000);
  ASSERT_EQ(received_.size(), 1u);
  EXPECT_EQ(received_.begin()->second.chunks, 1);
}

TEST_F(Dump, DMP_05_EachReplayOfAGraphDumps) {
  Begin(R"("dump_list": [], "dump_op_switch": "on")");
  ASSERT_EQ(acldumpRegCallback(TakeChunk, 0), ACL_SUCCESS);
  aclTensor* self = Tensor({1, 2}, {2}, {1});
  uint64_t bytes = 0;
  aclOpExecutor* executor = nullptr;
  ASSERT_EQ(aclmdlRICaptureBegin(stream_, ACL_MODEL_RI_CAPTURE_MODE_RELAXED), ACL_SUCCESS);
  ASSERT_EQ(aclnnNegGetWorkspaceSize(self, self, &bytes, &executor), OK);
  ASSERT_EQ(aclnnNeg(nullptr, 0, executor, stream_), OK);
  aclmdlRI model = nullptr;
  ASSERT_EQ(aclmdlRICaptureEnd(stream_, &model), ACL_SUCCESS);
  EXPECT_EQ(received_.size(), 0u);
  for (int i = 0; i < 2; ++i) ASSERT_EQ(aclmdlRIExecuteAsync(model, stream_), ACL_SUCCESS);
  ASSERT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  std::map<uint64_t, std::vector<float>> by_time;
  for (const auto& [name, file] : received_) {
    const DumpFile dump = ReadDump(file.content);
    by_time[dump.time] = dump.tensors[0].values;
  }
  ASSERT_EQ(by_time.size(), 2u);
  EXPECT_EQ(by_time.begin()->second, (std::vector<float>{-1, -2}));
  EXPECT_EQ(by_time.rbegin()->second, (std::vector<float>{1, 2}));
}

TEST_F(Dump, DMP_06_StatisticsInPlaceOfElements) {
  Begin(R"("dump_list": [], "dump_op_switch": "on", "dump_data": "stats",
           "dump_stats": ["Max", "Min", "Avg", "Nan", "L2norm"])");
  Neg(4);
  const auto files = Files();
  ASSERT_EQ(files.size(), 1u);
  EXPECT_EQ(files.begin()->first.substr(files.begin()->first.size() - 4), ".csv");
  EXPECT_EQ(files.begin()->second,
            "Op Name,Input/Output,Index,Data Size,Data Type,Format,Shape,Max,Min,Avg,Nan,L2norm\n"
            "aclnnNeg,Output,0,16,float32,2,4,-1,-1,-1,0,2\n");
}

TEST_F(Dump, DMP_07_AFileForEachFormOfACall) {
  ASSERT_EQ(aclInit(nullptr), ACL_SUCCESS);
  Open();
  const std::string path = folder_ / "out" / "made" / "args";
  EXPECT_EQ(aclopStartDumpArgs(2, path.c_str()), 100000);
  EXPECT_EQ(aclopStartDumpArgs(1, ""), 100000);
  EXPECT_EQ(aclopStopDumpArgs(1), 100045);
  ASSERT_EQ(aclopStartDumpArgs(1, path.c_str()), ACL_SUCCESS);
  EXPECT_EQ(aclopStartDumpArgs(1, path.c_str()), 100044);
  Add();
  Add();  // the same form
  Neg(3);
  Neg(4);
  EXPECT_EQ(aclopStopDumpArgs(1), ACL_SUCCESS);
  Neg(5);
  const auto files = Files();
  ASSERT_EQ(files.size(), 3u);
  const std::string add = files.at("made/args/aclnnAdd_0.json");
  for (const char* part :
       {R"("op_name": "aclnnAdd")", R"("name": "alpha", "value": 2)", R"("shape": [2, 3])",
        R"("strides": [1, 2])", R"("outputs": [{"name": "out")"}) {
    EXPECT_NE(add.find(part), std::string::npos) << part << " is not in " << add;
  }
  EXPECT_EQ(files.count("made/args/aclnnNeg_1.json"), 1u);
}

}  // namespace
}  // namespace acltape::opapi
