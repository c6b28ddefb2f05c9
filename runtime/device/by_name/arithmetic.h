// Formulas over float32 tensors, as operators of libopapi.so: for operators by name that no
// operator of the library computes. Results in between lie in device memory that the formula takes
// and gives back in the order of the stream.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "runtime/device/named_call.h"

namespace acltape::device {

// Device memory that is taken for one call. It is given back when the tasks that the stream has
// until then have run. A graph uses what a capturing stream took at each launch, so that memory is
// given back when the graph is destroyed.
class NamedScratch {
 public:
  explicit NamedScratch(aclrtStream stream) : stream_(stream) {}
  NamedScratch(const NamedScratch&) = delete;
  NamedScratch& operator=(const NamedScratch&) = delete;
  ~NamedScratch();

  aclError Take(size_t bytes, void** memory);

 private:
  aclrtStream stream_;
  std::vector<void*> taken_;
};

// The tensor of an input of one element or more. One element that the host gave is put into device
// memory first.
aclError InputOnDevice(const NamedCall& call, int input, const char* name, NamedScratch* scratch,
                       OperatorArguments* own, aclTensor** tensor);

// After a step that fails, all further steps do nothing; status() says why.
class NamedArithmetic {
 public:
  // A tensor of the formula. Its memory serves other results when nobody refers to it any more.
  struct Value {
    std::vector<int64_t> shape;
    aclTensor* tensor = nullptr;
    std::shared_ptr<void> memory = nullptr;  // null: that of a tensor of the call
  };

  explicit NamedArithmetic(const NamedCall& call) : call_(call), scratch_(call.stream) {}
  NamedArithmetic(const NamedArithmetic&) = delete;
  NamedArithmetic& operator=(const NamedArithmetic&) = delete;

  aclError status() const { return status_; }

  // Part of an input, which is converted to float32 unless it has that type.
  Value Read(int input, const std::vector<int64_t>& shape, const std::vector<int64_t>& strides,
             int64_t offset = 0);
  // Writes a value to part of an output, in its type.
  void Write(const Value& value, int output, const std::vector<int64_t>& strides,
             int64_t offset = 0);

  // Two tensors, whose shapes are broadcast.
  Value Add(const Value& a, const Value& b);
  Value Subtract(const Value& a, const Value& b);
  Value Multiply(const Value& a, const Value& b);
  Value Divide(const Value& a, const Value& b);
  // The greater or less of each two elements.
  Value Greater(const Value& a, const Value& b);
  Value Less(const Value& a, const Value& b);

  // 1 where the element of `a` is below that of `b`, 0.5 where both are equal, else 0.
  Value Below(const Value& a, const Value& b);
  // 1 where the element is positive, else 0.
  Value Positive(const Value& a);
  // The element of `a` where that of `truth` is positive, else that of `b`.
  Value Where(const Value& truth, const Value& a, const Value& b);

  Value Plus(const Value& a, double number);
  Value Times(const Value& a, double number);
  Value Over(const Value& a, double number);
  Value Power(const Value& a, double exponent);
  Value AtLeast(const Value& a, double number);
  Value AtMost(const Value& a, double number);

  Value Sqrt(const Value& a) { return Function("aclnnSqrt", a); }
  Value Exp(const Value& a) { return Function("aclnnExp", a); }
  Value Log(const Value& a) { return Function("aclnnLog", a); }
  Value Abs(const Value& a) { return Function("aclnnAbs", a); }
  Value Atan(const Value& a) { return Function("aclnnAtan", a); }
  Value Floor(const Value& a) { return Function("aclnnFloor", a); }
  Value Ceil(const Value& a) { return Function("aclnnCeil", a); }
  // To the nearest integer, and to the even one of two.
  Value Round(const Value& a) { return Function("aclnnRound", a); }
  Value Sin(const Value& a) { return Function("aclnnSin", a); }
  Value Cos(const Value& a) { return Function("aclnnCos", a); }
  Value Tan(const Value& a) { return Function("aclnnTan", a); }
  Value Sigmoid(const Value& a) { return Function("aclnnSigmoid", a); }
  Value Tanh(const Value& a) { return Function("aclnnTanh", a); }
  // The finite elements, and these numbers in place of the others.
  Value Finite(const Value& a, float nan, float infinity, float minus_infinity);

  // Along a dim, of the values and of a gradient.
  Value Softmax(const Value& a, int64_t dim);
  Value LogSoftmax(const Value& a, int64_t dim);
  Value SoftmaxGradient(const Value& gradient, const Value& result, int64_t dim);

  // 1 where the element is 0, and 0 where it is 1.
  Value Not(const Value& truth) { return Plus(Times(truth, -1), 1); }
  // The greatest element along a dim, which stays with the size 1.
  Value Greatest(const Value& a, int64_t dim);

  // One number everywhere.
  Value Filled(const std::vector<int64_t>& shape, double number);
  // The numbers 0, 1, 2, ...
  Value Counting(const std::vector<int64_t>& shape);
  // Numbers from 0 on, below 1, that a seed and an offset give.
  Value Random(const std::vector<int64_t>& shape, int64_t seed, int64_t offset);
  // A value of any numbers, in memory of its own, to set part after part.
  Value Space(const std::vector<int64_t>& shape) { return New(shape); }
  // Part of an input in memory of its own, in plain order.
  Value Copied(int input, const std::vector<int64_t>& shape, const std::vector<int64_t>& strides,
               int64_t offset = 0);
  // The same elements in another shape, of a value in memory of its own.
  Value As(const Value& a, const std::vector<int64_t>& shape);
  // Some of these elements, of a value in memory of its own, which both share.
  Value Part(const Value& a, const std::vector<int64_t>& shape, const std::vector<int64_t>& strides,
             int64_t offset = 0);
  // Gives the elements of a part these values.
  void Set(const Value& part, const Value& values);
  // The product of two matrices, or of each two of two batches.
  Value Product(const Value& a, const Value& b);
  // Rows of a table, by their int64 indices.
  Value Rows(const Value& table, const Value& indices);
  // The same table with more added to its rows at int64 indices, also to one row several times.
  Value AddToRows(const Value& table, const Value& indices, const Value& more);
  // Elements of each row of a matrix at the int64 positions of the same row of another.
  Value FromEach(const Value& rows, const Value& positions);
  // Sums over these dims, which go.
  Value Sum(const Value& a, const std::vector<int64_t>& dims);

  // The same numbers as int64.
  Value Indices(const Value& a);
  // The reverse: int64 numbers as float32.
  Value Numbers(const Value& indices);
  // Positions of the elements of a row, or of each row of a matrix, from the greatest to the least,
  // as int64. Of equal ones the first comes first.
  Value Descending(const Value& rows);
  // Positions of the elements of a row that are not 0, as int64. Waits for the stream, so that
  // their number is known.
  Value NotZero(const Value& row);
  // The first positions of a row of them.
  Value First(const Value& positions, int64_t count);
  // Elements of a row of int64 at these positions.
  Value At(const Value& row, const Value& positions);

 private:
  Value New(const std::vector<int64_t>& shape, aclDataType type = ACL_FLOAT);
  Value Function(const char* name, const Value& a);
  Value OfTwo(const char* name, const Value& a, const Value& b);
  Value Truth(const char* name, const Value& a, const Value& b);
  void Copy(aclTensor* to, const aclTensor* from);
  template <typename Prepare, typename... Arguments>
  void Step(const char* name, const Value& out, Arguments... arguments);

  const NamedCall& call_;
  aclError status_ = ACL_SUCCESS;
  NamedScratch scratch_;
  OperatorArguments own_;
  std::shared_ptr<std::multimap<size_t, void*>> idle_ =
      std::make_shared<std::multimap<size_t, void*>>();  // memory by its size
};

}  // namespace acltape::device
