// Operators by name read their call with these functions: numbers that the host knows, attributes
// with their types, and tensors, which must lie inside of their buffers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/device/named_call.h"

namespace acltape::device {

// Refuses a call that has fewer inputs or outputs than the operator looks at.
aclError CheckCounts(const NamedCall& call, int inputs, int outputs);

// Refuses a tensor that is not given, that does not lie in device memory, or whose elements do not
// fit into its buffer. `name` is what the message calls it.
aclError CheckInput(const NamedCall& call, int i, const char* name);
aclError CheckOutput(const NamedCall& call, int i, const char* name);
// Inputs and outputs from the first on, by their positions in the message.
aclError CheckGiven(const NamedCall& call, int inputs, int outputs);

// Refuses an output that does not have this shape.
aclError CheckShape(const NamedCall& call, int output, const std::vector<int64_t>& shape);
// Refuses an input that is not given in device memory, or that does not have this shape.
aclError CheckInputShape(const NamedCall& call, int input, const std::vector<int64_t>& shape);
// Refuses a tensor that is not float32, float16 or bfloat16 in plain order.
aclError CheckFloats(const NamedCall& call, const NamedTensors& tensors, int i);
// Refuses tensors of two types.
aclError CheckSameType(const NamedCall& call, aclDataType a, aclDataType b);

// The program gave the numbers of this input with the call, in host memory: an adapter passes
// constants so, such as the sizes of a part.
bool OnHost(const NamedTensors& tensors, int i);
// The integers of such an input, of type int32 or int64.
aclError ReadIntegers(const NamedCall& call, int input, const char* name,
                      std::vector<int64_t>* values);
// The one number of such an input.
aclError ReadNumber(const NamedCall& call, int input, const char* name, double* value);
// The bytes of such an input, `bytes` of them at least.
aclError ReadBytes(const NamedCall& call, int input, const char* name, size_t bytes,
                   const char** data);

// Attributes. One that is not given has the value `otherwise`, or is an empty list.
int64_t IntegerOf(const NamedCall& call, const char* attribute, int64_t otherwise);
double RealOf(const NamedCall& call, const char* attribute, double otherwise);
bool FlagOf(const NamedCall& call, const char* attribute, bool otherwise);
std::vector<int64_t> IntegersOf(const NamedCall& call, const char* attribute);
std::vector<double> RealsOf(const NamedCall& call, const char* attribute);

// True when these numbers are the dims 0 to count - 1 in some order. Negative ones count from the
// end and are made positive.
bool IsPermutation(std::vector<int64_t>* dims, size_t count);

// "[2, 3]"
std::string ShapeText(const std::vector<int64_t>& shape);

// Fills what a format adds to the elements of each output, at its end, with zeros (Note [Formats
// of tensors]).
aclError ClearPadding(const NamedCall& call);

}  // namespace acltape::device
