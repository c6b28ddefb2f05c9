// LSTM layers by name: the positions of their arguments, and layers whose sequences have several
// lengths or are read from their end.
#pragma once

#include "runtime/device/named_call.h"

namespace acltape::device {

// Gates, and their columns in the weights: input, forget, candidate, output.
inline constexpr int64_t kLstmColumns = 4;

// The positions of an operator's arguments. The weights of the input and of the hidden state are
// one matrix, or two. Gates are in the order of the columns.
struct LstmArguments {
  int x, input_weight, hidden_weight, bias, sequence_length, h, c;
  int y, all_h, all_c, gates[kLstmColumns], tanh_c;  // outputs
};

struct LstmGradientArguments {
  int x, input_weight, hidden_weight, h, c, all_h, all_c, dy, dh, dc, gates[kLstmColumns], tanh_c,
      sequence_length;
  int input_weight_out, hidden_weight_out, bias_out, x_out, h_out, c_out;  // outputs
};

struct LstmSizes {
  int64_t steps, batch, width, hidden;
  int64_t rows() const { return steps * batch; }
  int64_t columns() const { return kLstmColumns * hidden; }
  int64_t state() const { return batch * hidden; }
  // The first element of the weights of the hidden state, which may share the input's matrix.
  int64_t HiddenOffset(bool shared) const { return shared ? width * columns() : 0; }
};

// Note [Lengths of sequences]
// A call says which steps a sequence has by a mask of floats [steps, batch, hidden] of zeros and
// ones, as torch_npu does, or by int32 lengths [batch]. At a step that a sequence lacks, its result
// y is 0 and its states stay as they were, so that its last states stand at the end of all steps. A
// layer with the direction REDIRECTIONAL begins at the last step; its results stand at the places
// of their steps.
struct LstmOrder {
  enum Lengths { kOne, kMask, kOfEach };
  Lengths lengths = kOne;
  int input = 0;  // the position of the mask or of the lengths
  bool reversed = false;

  bool plain() const { return lengths == kOne && !reversed; }
};

// Refuses other lengths and directions than these.
aclError ReadLstmOrder(const NamedCall& call, int sequence_length, const LstmSizes& sizes,
                       LstmOrder* order);
aclError RunLstmInOrder(const NamedCall& call, const LstmArguments& at, const LstmSizes& sizes,
                        const LstmOrder& order);
aclError RunLstmGradientInOrder(const NamedCall& call, const LstmGradientArguments& at,
                                const LstmSizes& sizes, const LstmOrder& order);

}  // namespace acltape::device
