// Dense tensors with their device memory, for the programs of operators in this folder.
#ifndef TENSORS_H_
#define TENSORS_H_

#include <cmath>
#include <vector>

#include "session.h"

class Tensor {
 public:
  // Content that the program has not written yet.
  Tensor(aclDataType type, const std::vector<int64_t>& sizes) : count_(1) {
    for (int64_t size : sizes) count_ *= size;
    bytes_ = static_cast<size_t>(count_) * aclDataTypeSize(type);
    block_ = MallocDevice(bytes_);
    tensor_ = MakeTensor(type, static_cast<int>(sizes.size()), sizes.data(), block_);
  }
  template <typename Number>
  Tensor(aclDataType type, const std::vector<int64_t>& sizes, const std::vector<Number>& content)
      : Tensor(type, sizes) {
    CHECK(content.size() * sizeof(Number) == bytes_);
    CHECK_ACL(aclrtMemcpy(block_, bytes_, content.data(), bytes_, ACL_MEMCPY_HOST_TO_DEVICE));
  }
  explicit Tensor(const std::vector<int64_t>& sizes) : Tensor(ACL_FLOAT, sizes) {}
  Tensor(const std::vector<int64_t>& sizes, const std::vector<float>& content)
      : Tensor(ACL_FLOAT, sizes, content) {}
  ~Tensor() {
    CHECK_ACL(aclDestroyTensor(tensor_));
    CHECK_ACL(aclrtFree(block_));
  }
  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;

  operator aclTensor*() const { return tensor_; }
  void* block() const { return block_; }

  // The content after all work of the stream.
  template <typename Number = float>
  std::vector<Number> Read(aclrtStream stream) const {
    std::vector<Number> content(bytes_ / sizeof(Number));
    Download(content.data(), block_, bytes_, stream);
    return content;
  }

 private:
  int64_t count_;
  size_t bytes_;
  void* block_;
  aclTensor* tensor_;
};

// An array of integers for the time of a call.
class Ints {
 public:
  Ints(std::vector<int64_t> values) : array_(aclCreateIntArray(values.data(), values.size())) {}
  ~Ints() { CHECK_ACL(aclDestroyIntArray(array_)); }
  Ints(const Ints&) = delete;
  Ints& operator=(const Ints&) = delete;
  operator aclIntArray*() const { return array_; }

 private:
  aclIntArray* array_;
};

// `count` numbers in [-1, 1], the same on every machine.
inline std::vector<float> Numbers(int count, int seed = 1) {
  std::vector<float> made;
  for (int i = 0; i < count; ++i) {
    made.push_back(static_cast<float>((i * 37 + seed * 101 + i * i % 13) % 211 - 105) / 105);
  }
  return made;
}

inline void CheckNear(const std::vector<float>& found, const std::vector<double>& expected,
                      double distance) {
  CHECK(found.size() == expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    if (!Near(found[i], expected[i], distance)) {
      fprintf(stderr, "element %zu is %.9g, expected %.9g\n", i, static_cast<double>(found[i]),
              expected[i]);
      exit(1);
    }
  }
}

#endif  // TENSORS_H_
