// A small decoder: eight steps of attention over a fixed memory, a running state and a choice of
// the next token. One input goes to the device per step and one result comes back. Temporaries come
// from the program's own allocator, which cuts one large device block into pieces and reuses them
// with other shapes.
//
//   workload             submits every operator of every step
//   workload --capture   captures the first step's work as a graph and executes that per step
//
// Both print the same.
#include <iterator>
#include <map>
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_add.h"
#include "aclnnop/aclnn_cast.h"
#include "aclnnop/aclnn_matmul.h"
#include "aclnnop/aclnn_mul.h"
#include "aclnnop/aclnn_softmax.h"
#include "sample.h"

namespace {

constexpr int64_t kRows = 4;  // sequences that are decoded side by side
constexpr int64_t kHidden = 64;
constexpr int64_t kMemory = 16;  // places that attention looks at
constexpr int64_t kTokens = 32;
constexpr int kSteps = 8;

// Pieces of one device block, in units of 512 bytes: the first that is large enough, split; freed
// pieces join their free neighbours.
class CachingAllocator {
 public:
  explicit CachingAllocator(size_t bytes) : base_(static_cast<char*>(MallocDevice(bytes))) {
    free_[0] = bytes;
  }
  ~CachingAllocator() { CHECK_ACL(aclrtFree(base_)); }

  void* Take(size_t bytes) {
    bytes = (bytes + 511) / 512 * 512;
    for (auto piece = free_.begin(); piece != free_.end(); ++piece) {
      if (piece->second < bytes) continue;
      size_t begin = piece->first;
      size_t rest = piece->second - bytes;
      free_.erase(piece);
      if (rest > 0) free_[begin + bytes] = rest;
      taken_[begin] = bytes;
      return base_ + begin;
    }
    CHECK(!"the block of the allocator is full");
    return nullptr;
  }

  void Give(void* address) {
    auto taken = taken_.find(static_cast<size_t>(static_cast<char*>(address) - base_));
    CHECK(taken != taken_.end());
    auto piece = free_.emplace(taken->first, taken->second).first;
    taken_.erase(taken);
    auto next = std::next(piece);
    if (next != free_.end() && piece->first + piece->second == next->first) {
      piece->second += next->second;
      free_.erase(next);
    }
    if (piece == free_.begin()) return;
    auto before = std::prev(piece);
    if (before->first + before->second == piece->first) {
      before->second += piece->second;
      free_.erase(piece);
    }
  }

 private:
  char* base_;
  std::map<size_t, size_t> free_;  // begin -> bytes
  std::map<size_t, size_t> taken_;
};

// A matrix in a piece of the allocator's block; the piece goes back with the object, as in an eager
// framework: the stream keeps the next user of the piece after this one.
class Matrix {
 public:
  Matrix(CachingAllocator& allocator, int64_t rows, int64_t columns, aclDataType type = ACL_FLOAT)
      : allocator_(allocator),
        type_(type),
        count_(static_cast<size_t>(rows * columns)),
        address_(allocator.Take(bytes())) {
    const int64_t sizes[] = {rows, columns};
    tensor_ = MakeTensor(type, 2, sizes, address_);
  }
  ~Matrix() {
    CHECK_ACL(aclDestroyTensor(tensor_));
    allocator_.Give(address_);
  }
  Matrix(const Matrix&) = delete;
  Matrix& operator=(const Matrix&) = delete;

  aclTensor* tensor() const { return tensor_; }
  void* address() const { return address_; }
  size_t bytes() const { return count_ * aclDataTypeSize(type_); }

  // Small numbers that repeat with a period that is no power of two.
  void Fill(int seed) {
    std::vector<float> values(count_);
    for (size_t i = 0; i < count_; ++i) {
      values[i] = static_cast<float>((static_cast<int>(i) * 37 + seed * 101) % 211 - 105) / 256;
    }
    std::vector<aclFloat16> halves;
    for (float value : values) halves.push_back(aclFloatToFloat16(value));
    const void* host = type_ == ACL_FLOAT16 ? static_cast<const void*>(halves.data())
                                            : static_cast<const void*>(values.data());
    CHECK_ACL(aclrtMemcpy(address_, bytes(), host, bytes(), ACL_MEMCPY_HOST_TO_DEVICE));
  }

 private:
  CachingAllocator& allocator_;
  aclDataType type_;
  size_t count_;
  void* address_;
  aclTensor* tensor_;
};

// Both phases of an operator, with a workspace that goes back to the allocator at once.
#define SUBMIT(op, ...)                                                                  \
  do {                                                                                   \
    uint64_t submit_bytes = 0;                                                           \
    aclOpExecutor* submit_executor = nullptr;                                            \
    CHECK_ACL(op##GetWorkspaceSize(__VA_ARGS__, &submit_bytes, &submit_executor));       \
    void* submit_workspace = submit_bytes > 0 ? allocator_.Take(submit_bytes) : nullptr; \
    CHECK_ACL(op(submit_workspace, submit_bytes, submit_executor, stream_));             \
    if (submit_workspace != nullptr) allocator_.Give(submit_workspace);                  \
  } while (0)

class Decoder {
 public:
  explicit Decoder(aclrtStream stream) : stream_(stream) {
    int seed = 1;
    for (Matrix* weight : {&query_, &keys_, &values_, &project_, &widen_, &narrow_, &vocabulary_}) {
      weight->Fill(seed++);
    }
    CHECK_ACL(aclrtMemset(state_.address(), state_.bytes(), 0, state_.bytes()));
    CHECK_ACL(aclrtSynchronizeStream(stream_));
  }
  ~Decoder() {
    CHECK_ACL(aclDestroyScalar(one_));
    CHECK_ACL(aclDestroyScalar(half_));
  }

  // Submits one step: input -> logits, and the state moves on.
  void Submit() {
    Matrix attended(allocator_, kRows, kHidden);
    {
      Matrix weights(allocator_, kRows, kMemory);
      {
        Matrix query(allocator_, kRows, kHidden);
        Matmul(input_, query_, query);
        Matrix scores(allocator_, kRows, kMemory);
        Matmul(query, keys_, scores);
        SUBMIT(aclnnSoftmax, scores.tensor(), 1, weights.tensor());
      }
      Matmul(weights, values_, attended);
    }
    Matrix hidden(allocator_, kRows, kHidden);
    {
      Matrix projected(allocator_, kRows, kHidden);
      Matmul(attended, project_, projected);
      SUBMIT(aclnnAdd, input_.tensor(), projected.tensor(), one_, hidden.tensor());
    }
    {
      // In half precision.
      Matrix narrow(allocator_, kRows, kHidden, ACL_FLOAT16);
      SUBMIT(aclnnCast, hidden.tensor(), ACL_FLOAT16, narrow.tensor());
      {
        Matrix wide(allocator_, kRows, 2 * kHidden, ACL_FLOAT16);
        Matmul(narrow, widen_, wide);
        SUBMIT(aclnnMul, wide.tensor(), wide.tensor(), wide.tensor());
        Matmul(wide, narrow_, narrow);
      }
      Matrix full(allocator_, kRows, kHidden);
      SUBMIT(aclnnCast, narrow.tensor(), ACL_FLOAT, full.tensor());
      SUBMIT(aclnnInplaceAdd, hidden.tensor(), full.tensor(), half_);
    }
    SUBMIT(aclnnInplaceMuls, state_.tensor(), half_);
    SUBMIT(aclnnInplaceAdd, state_.tensor(), hidden.tensor(), one_);
    Matmul(state_, vocabulary_, logits_);
  }

  const Matrix& input() const { return input_; }
  const Matrix& logits() const { return logits_; }

 private:
  void Matmul(const Matrix& a, const Matrix& b, const Matrix& out) {
    const int8_t keep_dtype = 0;
    SUBMIT(aclnnMatmul, a.tensor(), b.tensor(), out.tensor(), keep_dtype);
  }

  aclrtStream stream_;
  CachingAllocator allocator_{1 << 20};
  Matrix query_{allocator_, kHidden, kHidden};
  Matrix keys_{allocator_, kHidden, kMemory};
  Matrix values_{allocator_, kMemory, kHidden};
  Matrix project_{allocator_, kHidden, kHidden};
  Matrix widen_{allocator_, kHidden, 2 * kHidden, ACL_FLOAT16};
  Matrix narrow_{allocator_, 2 * kHidden, kHidden, ACL_FLOAT16};
  Matrix vocabulary_{allocator_, kHidden, kTokens};
  Matrix input_{allocator_, kRows, kHidden};
  Matrix state_{allocator_, kRows, kHidden};
  Matrix logits_{allocator_, kRows, kTokens};
  aclScalar* one_ = MakeScalar(1);
  aclScalar* half_ = MakeScalar(0.5f);
};

// The embedding of a token.
void Embed(const std::vector<int>& tokens, float* to) {
  for (int64_t row = 0; row < kRows; ++row) {
    for (int64_t i = 0; i < kHidden; ++i) {
      to[row * kHidden + i] =
          static_cast<float>((tokens[static_cast<size_t>(row)] * 53 + i * 29) % 97 - 48) / 64;
    }
  }
}

int Largest(const float* logits) {
  int best = 0;
  for (int token = 1; token < kTokens; ++token) {
    if (logits[token] > logits[best]) best = token;
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  bool capture = argc == 2 && strcmp(argv[1], "--capture") == 0;
  CHECK(argc == 1 || capture);
  aclrtStream stream = nullptr;
  CHECK_ACL(aclInit(nullptr));
  CHECK_ACL(aclrtSetDevice(0));
  CHECK_ACL(aclrtCreateStream(&stream));
  uint64_t digest = 14695981039346656037u;  // FNV-1a over the bits of all logits
  {
    Decoder decoder(stream);
    const Matrix& input = decoder.input();
    const Matrix& logits = decoder.logits();
    auto* embedded = static_cast<float*>(MallocPinned(input.bytes()));
    auto* result = static_cast<float*>(MallocPinned(logits.bytes()));
    std::vector<int> tokens = {3, 11, 19, 27};

    aclmdlRI model = nullptr;
    if (capture) {
      CHECK_ACL(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL));
      decoder.Submit();
      CHECK_ACL(aclmdlRICaptureEnd(stream, &model));
    }
    for (int step = 0; step < kSteps; ++step) {
      Embed(tokens, embedded);
      CHECK_ACL(aclrtMemcpyAsync(input.address(), input.bytes(), embedded, input.bytes(),
                                 ACL_MEMCPY_HOST_TO_DEVICE, stream));
      if (capture) {
        CHECK_ACL(aclmdlRIExecuteAsync(model, stream));
      } else {
        decoder.Submit();
      }
      CHECK_ACL(aclrtMemcpyAsync(result, logits.bytes(), logits.address(), logits.bytes(),
                                 ACL_MEMCPY_DEVICE_TO_HOST, stream));
      CHECK_ACL(aclrtSynchronizeStream(stream));

      printf("step %d:", step);
      for (size_t row = 0; row < tokens.size(); ++row) {
        const float* own = result + row * kTokens;
        tokens[row] = Largest(own);
        CHECK(own[tokens[row]] == own[tokens[row]]);  // no NaN
        printf(" %d (%.3f)", tokens[row], own[tokens[row]]);
      }
      printf("\n");
      const auto* bytes = reinterpret_cast<const unsigned char*>(result);
      for (size_t i = 0; i < logits.bytes(); ++i) digest = (digest ^ bytes[i]) * 1099511628211u;
    }
    if (model != nullptr) CHECK_ACL(aclmdlRIDestroy(model));
    CHECK_ACL(aclrtFreeHost(embedded));
    CHECK_ACL(aclrtFreeHost(result));
  }
  CHECK_ACL(aclrtDestroyStream(stream));
  CHECK_ACL(aclrtResetDevice(0));
  CHECK_ACL(aclFinalize());
  printf("digest: %016" PRIx64 "\n", digest);
  return 0;
}
