#include "tests/opapi/program_writer.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

namespace acltape::opapi {
namespace {

using acl::ArgKind;
using acl::Direction;
using Bytes = std::vector<char>;

constexpr size_t kMostBytes = 64 << 10;  // limit for all tensors of a call
constexpr size_t kMostCalls = 3;         // calls of an operator, each with other types of tensors
constexpr size_t kOperators = 60;        // operators in one program

// A storage that tensors of a call share.
struct Memory {
  at::Tensor model;  // keeps the storage alive
  bool written = false;
  Bytes before, after;
};

struct Sample {
  std::string types;
  std::vector<Memory> memory;
  std::string arguments;           // "a0, a1, 3"
  std::string objects;             // how a0 and a1 are made
  std::vector<std::string> names;  // one for each argument: "a0", "3"
  Shapes reported;
};

Bytes BytesOf(const at::Tensor& tensor) {
  const auto* data = static_cast<const char*>(StorageOf(tensor));
  return Bytes(data, data + tensor.storage().nbytes());
}

const std::map<at::ScalarType, const char*> kTypeNames = {
    {at::kFloat, "ACL_FLOAT"},
    {at::kDouble, "ACL_DOUBLE"},
    {at::kHalf, "ACL_FLOAT16"},
    {at::kBFloat16, "ACL_BF16"},
    {at::kLong, "ACL_INT64"},
    {at::kInt, "ACL_INT32"},
    {at::kShort, "ACL_INT16"},
    {at::kChar, "ACL_INT8"},
    {at::kByte, "ACL_UINT8"},
    {at::kBool, "ACL_BOOL"},
    {at::kComplexFloat, "ACL_COMPLEX64"},
    {at::kComplexDouble, "ACL_COMPLEX128"},
};

std::string Whole(int64_t value) {
  return value == INT64_MIN ? "(-INT64_MAX - 1)" : fmt::format("{}", value);
}

std::string Real(double value) {
  if (std::isnan(value)) return "NAN";
  if (std::isinf(value)) return value > 0 ? "INFINITY" : "-INFINITY";
  return fmt::format("{:a}", value);
}

// An array of `type`; C has none without an element.
template <typename Values, typename Text>
std::string Array(const char* type, const Values& values, Text text) {
  std::string list;
  for (const auto& value : values) list += (list.empty() ? "" : ", ") + text(value);
  return fmt::format("({}[]){{{}}}", type, list.empty() ? "0" : list);
}

bool IsReal(ArgKind kind) { return kind == ArgKind::kFloat || kind == ArgKind::kDouble; }

// Writes one call as C. Objects are made in statements of their own, so that lists can name them.
class CallText {
 public:
  CallText(const acl::OperatorInfo& op, const Args& args, Sample& sample) : sample_(sample) {
    for (uint32_t i = 0; i < op.arg_count; ++i) {
      kind_ = op.args[i].kind;
      written_ = op.args[i].direction != Direction::kIn;
      sample_.names.push_back(std::visit(*this, args[i]));
      sample_.arguments += (i == 0 ? "" : ", ") + sample_.names.back();
    }
  }

  std::string operator()(Null) { return kind_ <= ArgKind::kString ? "NULL" : "0"; }
  std::string operator()(const at::Tensor& tensor) { return Object("aclTensor*", View(tensor)); }
  std::string operator()(const std::vector<at::Tensor>& tensors) {
    std::vector<std::string> views;
    for (const at::Tensor& tensor : tensors) views.push_back(View(tensor));
    const auto same = [](const std::string& text) { return text; };
    return Object("aclTensorList*", fmt::format("TensorList({}, {})", views.size(),
                                                Array("aclTensor*", views, same)));
  }
  std::string operator()(const at::Scalar& number) {
    if (IsReal(kind_)) return Real(number.toDouble());
    return Object("aclScalar*", ScalarText(number));
  }
  std::string operator()(const std::vector<at::Scalar>& numbers) {
    return Object("aclScalarList*",
                  fmt::format("ScalarList({}, {})", numbers.size(),
                              Array("aclScalar*", numbers,
                                    [](const at::Scalar& number) { return ScalarText(number); })));
  }
  std::string operator()(const std::vector<int64_t>& values) {
    const char* kind = kind_ == ArgKind::kFloatArray  ? "Float"
                       : kind_ == ArgKind::kBoolArray ? "Bool"
                                                      : "Int";
    const char* type = kind_ == ArgKind::kFloatArray  ? "float"
                       : kind_ == ArgKind::kBoolArray ? "bool"
                                                      : "int64_t";
    return Object(fmt::format("acl{}Array*", kind),
                  fmt::format("{}Array({}, {})", kind, values.size(), Array(type, values, Whole)));
  }
  std::string operator()(bool value) { return Number(at::Scalar(value)); }
  std::string operator()(int value) { return Number(at::Scalar(int64_t{value})); }
  std::string operator()(int64_t value) { return Number(at::Scalar(value)); }
  std::string operator()(double value) { return Number(at::Scalar(value)); }
  std::string operator()(at::ScalarType type) { return kTypeNames.at(type); }
  std::string operator()(const char* text) { return fmt::format("(char*)\"{}\"", text); }

 private:
  std::string Object(std::string type, const std::string& made) {
    const std::string name = fmt::format("a{}", objects_++);
    sample_.objects += fmt::format("  {} {} = {};\n", type, name, made);
    return name;
  }

  static std::string ScalarText(const at::Scalar& number) {
    if (number.isBoolean()) return fmt::format("BoolScalar({})", number.toBool() ? 1 : 0);
    if (number.isIntegral(false)) return fmt::format("IntScalar({})", Whole(number.toLong()));
    return fmt::format("RealScalar({})", Real(number.toDouble()));
  }

  std::string Number(const at::Scalar& value) {
    if (kind_ == ArgKind::kScalar) return Object("aclScalar*", ScalarText(value));
    return value.isFloatingPoint() ? Real(value.toDouble())
           : IsReal(kind_)         ? Real(value.toDouble())
                                   : Whole(value.toLong());
  }

  std::string View(const at::Tensor& tensor) {
    size_t i = 0;
    while (i < sample_.memory.size() && StorageOf(sample_.memory[i].model) != StorageOf(tensor)) {
      ++i;
    }
    if (i == sample_.memory.size()) sample_.memory.push_back({tensor});
    sample_.memory[i].written = sample_.memory[i].written || written_;
    sample_.types += fmt::format(" {}", kTypeNames.at(tensor.scalar_type()));
    return fmt::format("View({}, {}, {}, {}, {}, block[{}], {})",
                       kTypeNames.at(tensor.scalar_type()), tensor.dim(),
                       Array("int64_t", tensor.sizes(), Whole),
                       Array("int64_t", tensor.strides(), Whole), tensor.storage_offset(), i,
                       tensor.storage().nbytes() / std::max<size_t>(tensor.element_size(), 1));
  }

  Sample& sample_;
  ArgKind kind_ = ArgKind::kTensor;
  bool written_ = false;
  int objects_ = 0;
};

class ProgramWriter : public CallWatcher, public testing::Environment {
 public:
  explicit ProgramWriter(std::filesystem::path folder) : folder_(std::move(folder)) {}

  void Before(const char* name, const Args& args) override {
    current_ = nullptr;
    const acl::OperatorInfo* op = acl::FindOperator(name);
    if (op == nullptr || op->arg_count != args.size() || op->launch_repeats_args) return;
    std::vector<Sample>& samples = samples_[name];
    if (samples.size() == kMostCalls) return;
    sample_ = Sample();
    CallText(*op, args, sample_);
    size_t bytes = 0;
    for (const Memory& memory : sample_.memory) bytes += memory.model.storage().nbytes();
    if (bytes > kMostBytes) return;
    for (const Sample& other : samples) {
      if (other.types == sample_.types) return;
    }
    for (Memory& memory : sample_.memory) memory.before = BytesOf(memory.model);
    current_ = &samples;
  }

  void After(int status, const Shapes& reported) override {
    if (current_ == nullptr || status != 0) return;
    for (Memory& memory : sample_.memory) {
      if (memory.written) memory.after = BytesOf(memory.model);
      memory.model = at::Tensor();
    }
    sample_.reported = reported;
    current_->push_back(std::move(sample_));
    current_ = nullptr;
  }

  // After all tests: writes the operators of each domain, some in each program.
  void TearDown() override {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    std::map<std::string, std::vector<std::string>> domains;
    for (const auto& [name, samples] : samples_) {
      if (!samples.empty()) domains[std::string(acl::FindOperator(name)->domain)].push_back(name);
    }
    for (const auto& [domain, names] : domains) {
      for (size_t first = 0; first < names.size(); first += kOperators) {
        const size_t end = std::min(first + kOperators, names.size());
        Write(fmt::format("{}_{:02}", domain, first / kOperators),
              {names.begin() + static_cast<int64_t>(first),
               names.begin() + static_cast<int64_t>(end)});
      }
    }
  }

 private:
  void Write(const std::string& program, const std::vector<std::string>& names) {
    std::ofstream data(folder_ / (program + ".data"), std::ios::binary);
    size_t offset = 0;
    const auto append = [&](const Bytes& bytes) {
      data.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
      offset += bytes.size();
      return offset - bytes.size();
    };
    std::set<std::string> headers;
    std::string calls, list;
    for (const std::string& name : names) {
      const acl::OperatorInfo& op = *acl::FindOperator(name);
      headers.insert(std::string(op.header));
      int number = 0;
      for (const Sample& sample : samples_[name]) {
        std::string blocks, checks;
        for (size_t i = 0; i < sample.memory.size(); ++i) {
          const Memory& memory = sample.memory[i];
          blocks += fmt::format("{}Block({}, {})", i == 0 ? "" : ", ", append(memory.before),
                                memory.before.size());
          if (!memory.written) continue;
          checks += fmt::format("  Expect(\"{}\", block[{}], {}, {});\n", name, i,
                                append(memory.after), memory.after.size());
        }
        for (const auto& [position, shape] : sample.reported) {
          checks +=
              fmt::format("  ExpectSizes(\"{}\", {}, {}, {});\n", name, sample.names[position],
                          shape.size(), Array("int64_t", shape, Whole));
        }
        calls += fmt::format(
            "/*{} */\nstatic void {}_{}(void) {{\n  void* block[] = {{{}}};\n{}"
            "  CALL({}, {})\n{}  (void)block;\n  EndCall();\n}}\n\n",
            sample.types, name, number, blocks.empty() ? "NULL" : blocks, sample.objects, name,
            sample.arguments, checks);
        list += fmt::format("  {}_{}();\n", name, number++);
      }
    }
    std::ofstream text(folder_ / (program + ".c"));
    text
        << "/* Written by tests/opapi/program_writer.cpp. */\n#include \"generated_program.h\"\n\n";
    for (const std::string& header : headers) text << "#include \"" << header << "\"\n";
    text << "\n"
         << calls << "int main(int argc, char** argv) {\n  Begin(argc, argv);\n"
         << list << "  return End();\n}\n";
  }

  std::filesystem::path folder_;
  std::map<std::string, std::vector<Sample>> samples_;
  Sample sample_;
  std::vector<Sample>* current_ = nullptr;
};

[[maybe_unused]] const bool g_writes_programs = [] {
  const char* folder = std::getenv("ACLTAPE_WRITE_PROGRAMS");
  if (folder == nullptr || *folder == '\0') return false;
  auto* writer = new ProgramWriter(folder);  // gtest owns it
  testing::AddGlobalTestEnvironment(writer);
  Watcher() = writer;
  return true;
}();

}  // namespace
}  // namespace acltape::opapi
