#include "replayer/reproducer/cpp_preamble.h"

namespace acltape::replayer::reproducer {

const char kCppPreamble[] = R"cpp(
  // ---- Checking

  [[noreturn]] static void Fail(const char* what, int code) {
    const char* message = aclGetRecentErrMsg();
    std::fprintf(stderr, "%s returned %d: %s\n", what, code, message ? message : "no message");
    std::exit(2);
  }

#define CHECK(call)                   \
    do {                                \
      const int code = (int)(call);     \
      if (code != 0) Fail(#call, code); \
    } while (0)

  // ---- Arguments of operators, destroyed with this object

  using Sizes = std::vector<int64_t>;

  static int64_t Elements(const Sizes& shape) {
    int64_t count = 1;
    for (const int64_t size : shape) count *= size;
    return count;
  }

  // The number of elements from the first one to the end of the last one.
  static int64_t Span(const Sizes& shape, const Sizes& strides) {
    if (Elements(shape) == 0) return 0;
    int64_t span = 1;
    for (size_t i = 0; i < shape.size(); ++i) span += (shape[i] - 1) * strides[i];
    return span;
  }

  class Arguments {
   public:
    ~Arguments() {
      for (const auto& destroy : destroy_) destroy();
    }
    aclTensor* Tensor(aclDataType type, const Sizes& shape, const Sizes& strides, void* address,
                      aclFormat format = ACL_FORMAT_ND, const Sizes& storage = {}) {
      aclTensor* tensor = Element(type, shape, strides, address, format, storage);
      destroy_.push_back([tensor] { aclDestroyTensor(tensor); });
      return tensor;
    }
    // Makes a tensor that belongs to a list. The list destroys it.
    aclTensor* Element(aclDataType type, const Sizes& shape, const Sizes& strides, void* address,
                       aclFormat format = ACL_FORMAT_ND, Sizes storage = {}) {
      if (storage.empty()) storage = {Span(shape, strides)};
      return aclCreateTensor(shape.data(), shape.size(), type, strides.data(), 0, format,
                             storage.data(), storage.size(), address);
    }
    aclTensorList* Tensors(const std::vector<const aclTensor*>& tensors) {
      aclTensorList* list = aclCreateTensorList(tensors.data(), tensors.size());
      destroy_.push_back([list] { aclDestroyTensorList(list); });
      return list;
    }
    template <typename T>
    aclScalar* Scalar(aclDataType type, T value) {
      aclScalar* scalar = aclCreateScalar(&value, type);
      destroy_.push_back([scalar] { aclDestroyScalar(scalar); });
      return scalar;
    }
    // Makes a scalar that belongs to a list. The list destroys it.
    template <typename T>
    aclScalar* ScalarElement(aclDataType type, T value) {
      return aclCreateScalar(&value, type);
    }
    aclScalarList* Scalars(const std::vector<const aclScalar*>& scalars) {
      aclScalarList* list = aclCreateScalarList(scalars.data(), scalars.size());
      destroy_.push_back([list] { aclDestroyScalarList(list); });
      return list;
    }
    aclIntArray* Integers(const std::vector<int64_t>& values) {
      aclIntArray* array = aclCreateIntArray(values.data(), values.size());
      destroy_.push_back([array] { aclDestroyIntArray(array); });
      return array;
    }
    aclFloatArray* Floats(const std::vector<float>& values) {
      aclFloatArray* array = aclCreateFloatArray(values.data(), values.size());
      destroy_.push_back([array] { aclDestroyFloatArray(array); });
      return array;
    }
    aclBoolArray* Booleans(const std::vector<uint8_t>& values) {
      std::unique_ptr<bool[]> flags(new bool[values.size() + 1]);
      for (size_t i = 0; i < values.size(); ++i) flags[i] = values[i] != 0;
      aclBoolArray* array = aclCreateBoolArray(flags.get(), values.size());
      destroy_.push_back([array] { aclDestroyBoolArray(array); });
      return array;
    }
    char* Text(const char* text) {
      char* copy = ::strdup(text);
      destroy_.push_back([copy] { std::free(copy); });
      return copy;
    }

   private:
    std::vector<std::function<void()>> destroy_;
  };

  // Both phases of an operator.
#define RUN(op, stream, workspace, room, ...)                                      \
    do {                                                                             \
      uint64_t bytes = 0;                                                            \
      aclOpExecutor* executor = nullptr;                                             \
      CHECK(op##GetWorkspaceSize(__VA_ARGS__, &bytes, &executor));                   \
      if (bytes > (uint64_t)(room)) Fail(#op ": too little workspace", 0);           \
      CHECK(op(bytes == 0 ? nullptr : (void*)(workspace), bytes, executor, stream)); \
    } while (0)

  // ---- Results

  struct Result {
    std::string name;
    aclDataType type;
    std::vector<uint8_t> bytes;  // packed, row-major
  };
  using Results = std::vector<Result>;

  static float FromHalf(uint16_t bits) {
    const int exponent = (bits >> 10) & 31;
    const float fraction = (float)(bits & 1023);
    float value = exponent == 0    ? std::ldexp(fraction, -24)
                  : exponent == 31 ? (fraction == 0 ? INFINITY : NAN)
                                   : std::ldexp(fraction + 1024, exponent - 25);
    return bits & 0x8000 ? -value : value;
  }

  template <typename T>
  static T Read(const uint8_t* bytes) {
    T value;
    std::memcpy(&value, bytes, sizeof value);
    return value;
  }

  // One element as text, and its bits.
  static std::string Shown(aclDataType type, const uint8_t* element) {
    char text[64];
    const size_t size = aclDataTypeSize(type);
    switch (type) {
      case ACL_FLOAT:
        std::snprintf(text, sizeof text, "%.9g", Read<float>(element));
        break;
      case ACL_DOUBLE:
        std::snprintf(text, sizeof text, "%.17g", Read<double>(element));
        break;
      case ACL_FLOAT16:
        std::snprintf(text, sizeof text, "%.5g", FromHalf(Read<uint16_t>(element)));
        break;
      case ACL_BF16: {
        const uint32_t wide = (uint32_t)Read<uint16_t>(element) << 16;
        std::snprintf(text, sizeof text, "%.4g", Read<float>((const uint8_t*)&wide));
        break;
      }
      case ACL_INT64:
        std::snprintf(text, sizeof text, "%lld", (long long)Read<int64_t>(element));
        break;
      case ACL_INT32:
        std::snprintf(text, sizeof text, "%d", Read<int32_t>(element));
        break;
      case ACL_BOOL:
        std::snprintf(text, sizeof text, "%s", *element ? "true" : "false");
        break;
      default:
        std::snprintf(text, sizeof text, "?");
        break;
    }
    std::string shown = std::string(text) + " (0x";
    for (size_t i = size; i-- > 0;) {
      std::snprintf(text, sizeof text, "%02x", element[i]);
      shown += text;
    }
    return shown + ")";
  }

  // Prints the first difference; the number of results that differ.
  static int Compare(const Results& expected, const Results& actual) {
    int differing = 0;
    if (expected.size() != actual.size()) {
      std::printf("%zu results, expected %zu\n", actual.size(), expected.size());
      return 1;
    }
    for (size_t r = 0; r < expected.size(); ++r) {
      if (expected[r].bytes == actual[r].bytes) continue;
      if (differing++ > 0) continue;
      const aclDataType type = expected[r].type;
      const size_t size = aclDataTypeSize(type);
      const size_t count = expected[r].bytes.size() / size;
      size_t first = count;
      size_t elements = 0;
      for (size_t i = 0; i < count; ++i) {
        const uint8_t* wanted = expected[r].bytes.data() + i * size;
        if (std::memcmp(wanted, actual[r].bytes.data() + i * size, size) == 0) continue;
        if (elements++ == 0) first = i;
      }
      std::printf("%s: %zu of %zu elements differ, the first is [%zu]: %s, expected %s\n",
                  expected[r].name.c_str(), elements, count, first,
                  Shown(type, actual[r].bytes.data() + first * size).c_str(),
                  Shown(type, expected[r].bytes.data() + first * size).c_str());
    }
    std::printf("%d of %zu results differ\n", differing, expected.size());
    return differing;
  }

  // ---- The device

  static std::string contents_file;

  static std::vector<uint8_t> Load(int content, int64_t offset, int64_t bytes) {
    std::vector<uint8_t> loaded(bytes);
    FILE* file = std::fopen(contents_file.c_str(), "rb");
    if (file == nullptr || std::fseek(file, (long)(kContents[content].offset + offset), SEEK_SET) ||
        std::fread(loaded.data(), 1, bytes, file) != (size_t)bytes) {
      std::fprintf(stderr, "cannot read %s: it belongs beside this program\n", contents_file.c_str());
      std::exit(2);
    }
    std::fclose(file);
    return loaded;
  }

  // Calls visit(offset in the strided tensor, offset in the packed one) for each element; in bytes.
  template <typename Visit>
  static void ForEachElement(const Sizes& shape, const Sizes& strides, size_t size,
                             const Visit& visit) {
    const int64_t count = Elements(shape);
    Sizes index(shape.size(), 0);
    for (int64_t i = 0; i < count; ++i) {
      int64_t offset = 0;
      for (size_t d = 0; d < shape.size(); ++d) offset += index[d] * strides[d];
      visit(offset * (int64_t)size, i * (int64_t)size);
      for (size_t d = shape.size(); d-- > 0;) {
        if (++index[d] < shape[d]) break;
        index[d] = 0;
      }
    }
  }

  class Device {
   public:
    Device(int stream_count, int event_count, int graph_count, int group_count)
        : streams(stream_count), events(event_count), graphs(graph_count), groups(group_count) {
      for (aclrtStream& stream : streams) CHECK(aclrtCreateStream(&stream));
      // Streams can wait for such an event.
      for (aclrtEvent& event : events) CHECK(aclrtCreateEventExWithFlag(&event, 0x1 | 0x8));
      nothing = Memory(64, 0);
    }
    ~Device() {
      Synchronize();
      for (aclmdlRI graph : graphs) {
        if (graph != nullptr) aclmdlRIDestroy(graph);
      }
      for (aclrtEvent event : events) aclrtDestroyEvent(event);
      for (aclrtStream stream : streams) aclrtDestroyStream(stream);
      for (void* block : blocks_) aclrtFree(block);
    }

    uint8_t* Memory(int64_t bytes, int fill) {
      void* block = nullptr;
      CHECK(aclrtMalloc(&block, (size_t)bytes, ACL_MEM_MALLOC_HUGE_FIRST));
      CHECK(aclrtMemset(block, (size_t)bytes, fill, (size_t)bytes));
      blocks_.push_back(block);
      return (uint8_t*)block;
    }
    // In the order of stream 0.
    void Upload(uint8_t* to, int content, int64_t offset, int64_t bytes) {
      const std::vector<uint8_t> loaded = Load(content, offset, bytes);
      CHECK(aclrtSynchronizeStream(streams[0]));
      CHECK(aclrtMemcpy(to, (size_t)bytes, loaded.data(), (size_t)bytes, ACL_MEMCPY_HOST_TO_DEVICE));
    }
    // Packed elements to their places; the bytes between them stay.
    void UploadStrided(uint8_t* to, int content, aclDataType type, const Sizes& shape,
                       const Sizes& strides) {
      const size_t size = aclDataTypeSize(type);
      const std::vector<uint8_t> packed = Load(content, 0, Elements(shape) * (int64_t)size);
      std::vector<uint8_t> span((size_t)Span(shape, strides) * size);
      CHECK(aclrtSynchronizeStream(streams[0]));
      CHECK(aclrtMemcpy(span.data(), span.size(), to, span.size(), ACL_MEMCPY_DEVICE_TO_HOST));
      ForEachElement(shape, strides, size, [&](int64_t offset, int64_t from) {
        std::memcpy(span.data() + offset, packed.data() + from, size);
      });
      CHECK(aclrtMemcpy(to, span.size(), span.data(), span.size(), ACL_MEMCPY_HOST_TO_DEVICE));
    }
    void Copy(uint8_t* to, const uint8_t* from, int64_t bytes, int stream) {
      CHECK(aclrtMemcpyAsync(to, (size_t)bytes, from, (size_t)bytes, ACL_MEMCPY_DEVICE_TO_DEVICE,
                             streams[stream]));
    }
    void Fill(uint8_t* to, int value, int64_t bytes, int stream) {
      CHECK(aclrtMemsetAsync(to, (size_t)bytes, value, (size_t)bytes, streams[stream]));
    }
    // An allocator at work: blocks of many sizes that come and go.
    void Churn(int64_t bytes, uint64_t seed) {
      std::vector<void*> pieces;
      for (int64_t done = 0; done < bytes;) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        const int64_t piece = std::min<int64_t>(bytes - done, (int64_t)512 << (seed >> 33) % 12);
        void* block = nullptr;
        CHECK(aclrtMalloc(&block, (size_t)piece, ACL_MEM_MALLOC_HUGE_FIRST));
        CHECK(aclrtMemset(block, (size_t)piece, 0xCB, (size_t)piece));
        pieces.push_back(block);
        done += piece;
      }
      for (void* piece : pieces) CHECK(aclrtFree(piece));
    }
    void Synchronize() {
      for (aclrtStream stream : streams) CHECK(aclrtSynchronizeStream(stream));
    }
    void Observe(Results& results, const char* name, uint8_t* element, aclDataType type,
                 const Sizes& shape, const Sizes& strides) {
      const size_t size = aclDataTypeSize(type);
      std::vector<uint8_t> span((size_t)Span(shape, strides) * size);
      Result result{name, type, std::vector<uint8_t>((size_t)Elements(shape) * size)};
      if (!span.empty()) {
        CHECK(aclrtMemcpy(span.data(), span.size(), element, span.size(), ACL_MEMCPY_DEVICE_TO_HOST));
      }
      ForEachElement(shape, strides, size, [&](int64_t from, int64_t to) {
        std::memcpy(result.bytes.data() + to, span.data() + from, size);
      });
      results.push_back(std::move(result));
    }

    std::vector<aclrtStream> streams;
    std::vector<aclrtEvent> events;
    std::vector<aclmdlRI> graphs;
    std::vector<aclrtTaskGrp> groups;
    uint8_t* nothing = nullptr;  // address of tensors without elements

   private:
    std::vector<void*> blocks_;
  };
)cpp";

const char kCppMain[] = R"cpp(
  int main(int argc, char** argv) {
    bool clean = false;
    int runs = kRuns;
    for (int i = 1; i < argc; ++i) {
      const std::string word = argv[i];
      if (word == "--clean") {
        clean = true;
      } else if (word == "--runs" && i + 1 < argc) {
        runs = std::atoi(argv[++i]);
      } else {
        std::fprintf(stderr, "usage: %s [--clean] [--runs N]\n", argv[0]);
        return 2;
      }
    }
    const std::string program = argv[0];
    const size_t slash = program.rfind('/');
    contents_file = (slash == std::string::npos ? "" : program.substr(0, slash + 1)) + "repro.bin";

    CHECK(aclInit(nullptr));
    CHECK(aclrtSetDevice(0));
    if (kSaturates) CHECK(aclrtSetDeviceSatMode(ACL_RT_OVERFLOW_MODE_SATURATION));
    const Results expected = Reference();
    int differing = 0;
    int run = 0;
    size_t compared = 0;
    while (run < runs && differing == 0) {
      differing = Compare(expected, clean ? Clean() : Suspect());
      compared += expected.size();
      ++run;
    }
    if (runs > 1) std::printf("%s in run %d of %d\n", differing ? "differs" : "equal", run, runs);
    CHECK(aclrtResetDevice(0));
    CHECK(aclFinalize());
    if (differing == 0 && compared == 0) {
      std::fprintf(
          stderr,
          "nothing was compared: no call of this program leaves a result that is looked at; "
          "export more calls, or export with --watch every\n");
      return 125;
    }
    return differing != 0 ? 1 : 0;
  }
)cpp";

}  // namespace acltape::replayer::reproducer
