// A layer of attention with its four projections (MultiHeadAttention), and its gradient. The
// product makes it of matrix products, a softmax and a dropout with a mask of bits; this makes it
// of the same steps in float32, and rounds each result once.
#include <cmath>

#include "aclnnop/aclnn_copy.h"
#include "aclnnop/aclnn_dropout_do_mask.h"
#include "aclnnop/aclnn_dropout_gen_mask.h"
#include "aclnnop/aclnn_fill_scalar.h"
#include "runtime/device/by_name/arguments.h"
#include "runtime/device/by_name/attention_heads.h"
#include "runtime/device/by_name/seeds.h"
#include "runtime/device/by_name/table.h"

namespace acltape::device {
namespace {

using Value = NamedArithmetic::Value;

// Positions of inputs and outputs.
enum LayerInput {
  kLayerQuery,
  kLayerKey,
  kLayerValue,
  kLayerQueryWeight,
  kLayerKeyWeight,
  kLayerValueWeight,
  kLayerMask,
  kLayerOutWeight,
  kLayerQueryBias,
  kLayerKeyBias,
  kLayerValueBias,
  kLayerOutBias,
  kLayerDropout
};
enum LayerOutput {
  kLayerY,
  kLayerUsedDropout,
  kLayerQueryHeads,
  kLayerKeyHeads,
  kLayerValueHeads,
  kLayerSoftmax,
  kLayerDropped,
  kLayerContext
};
// Those of the gradient.
enum LayerGradientInput {
  kOfLayerQuery,
  kOfLayerKey,
  kOfLayerValue,
  kOfLayerQueryWeight,
  kOfLayerKeyWeight,
  kOfLayerValueWeight,
  kOfLayerOutWeight,
  kOfLayerQueryHeads,
  kOfLayerKeyHeads,
  kOfLayerValueHeads,
  kOfLayerSoftmax,
  kOfLayerDropped,
  kOfLayerContext,
  kOfLayerY,
  kOfLayerDropout
};
enum LayerGradientOutput {
  kToLayerQueryWeight,
  kToLayerKeyWeight,
  kToLayerValueWeight,
  kToLayerOutWeight,
  kToLayerQuery,
  kToLayerKey,
  kToLayerValue,
  kToLayerQueryBias,
  kToLayerKeyBias,
  kToLayerValueBias,
  kToLayerOutBias
};

struct LayerForm {
  int64_t batch, heads, width, sources, targets;
  double keep;
  aclDataType softmax;  // the type of the softmax

  int64_t columns() const { return heads * width; }
  double scale() const { return 1 / std::sqrt(static_cast<double>(width)); }
  std::vector<int64_t> target_rows() const { return {batch * targets, columns()}; }
  std::vector<int64_t> source_rows() const { return {batch * sources, columns()}; }
  std::vector<int64_t> target_heads() const { return {batch, heads, targets, width}; }
  std::vector<int64_t> source_heads() const { return {batch, heads, sources, width}; }
  std::vector<int64_t> scores() const { return {batch, heads, targets, sources}; }
  std::vector<int64_t> weight() const { return {columns(), columns()}; }
  // The mask of the dropout: a bit for each score.
  std::vector<int64_t> mask() const { return {batch * heads * targets * sources / 8}; }
};

// The product takes numbers of heads and lengths that are multiples of 16.
aclError ReadLayerForm(const NamedCall& call, LayerForm* form) {
  constexpr int64_t kAlignment = 16, kMost = int64_t{1} << 30;
  ACLTAPE_RETURN_IF_FAILED(CheckInput(call, 0, "query"));
  const struct {
    const char* name;
    int64_t LayerForm::*to;
  } kSizes[] = {{"attn_head_num", &LayerForm::heads},
                {"attn_dim_per_head", &LayerForm::width},
                {"src_len", &LayerForm::sources},
                {"tgt_len", &LayerForm::targets}};
  for (const auto& size : kSizes) {
    const int64_t given = IntegerOf(call, size.name, 0);
    form->*size.to = given;
    if (given > 0 && given <= kMost && given % kAlignment == 0) continue;
    return Fail(ACL_ERROR_INVALID_PARAM, "aclop %s: %s is %lld, expected a positive multiple of 16",
                call.name, size.name, static_cast<long long>(given));
  }
  const std::vector<int64_t>& query = call.inputs.Shape(0);
  const int64_t rows = query.empty() ? 0 : query[0];
  form->batch = rows / form->targets;
  form->keep = RealOf(call, "keep_prob", 1);
  form->softmax = FlagOf(call, "softmax_use_float", false) ? ACL_FLOAT : ACL_FLOAT16;
  if (form->keep >= 0 && form->keep <= 1) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM, "aclop %s: keep_prob is %g, expected a number from 0 to 1",
              call.name, form->keep);
}

// A mask of the dropout in device memory, a bit for each score.
aclError CheckLayerMask(const NamedCall& call, const LayerForm& form, int i) {
  ACLTAPE_RETURN_IF_FAILED(CheckInput(call, i, "the dropout's mask"));
  const aclDataType type = call.inputs.descs[i]->type;
  if (type == ACL_UINT8 && ElementsOf(call.inputs.Shape(i)) >= ElementsOf(form.mask())) {
    return ACL_SUCCESS;
  }
  return Fail(
      ACL_ERROR_INVALID_PARAM,
      "aclop %s: the dropout's mask has the shape %s and the type %d; expected uint8 bytes, "
      "%lld at least",
      call.name, ShapeText(call.inputs.Shape(i)).c_str(), static_cast<int>(type),
      static_cast<long long>(form.mask()[0]));
}

// The inputs after the eighth are optional, and an adapter leaves them out without a trace. So the
// biases are all given or none; 5 inputs stand for the biases and a mask, 4 for the biases, and 1
// for the mask.
struct LayerOptions {
  bool biased = false;
  int mask = -1;  // the input of the dropout's mask; -1: none
};

aclError ReadLayerOptions(const NamedCall& call, LayerOptions* options) {
  const int more = call.inputs.count - kLayerQueryBias;
  const int last = call.inputs.count - 1;
  const auto bytes = [&](int i) { return call.inputs.descs[i]->type == ACL_UINT8; };
  int biases = 0;
  for (int i = kLayerQueryBias; i < std::min<int>(last + 1, kLayerDropout); ++i) {
    biases += call.inputs.Has(i) && !bytes(i) ? 1 : 0;
  }
  if (more == 0 || (more == 1 && bytes(last)) || (more == 4 && biases == 4) ||
      (more == 5 && (biases == 4 || biases == 0))) {
    options->biased = biases == 4;
    options->mask = (more == 1 || more == 5) && call.inputs.Has(last) ? last : -1;
    return ACL_SUCCESS;
  }
  return Fail(ACL_ERROR_INVALID_PARAM,
              "aclop %s: %d optional inputs are there, of which %d are biases; the soft device "
              "takes all four biases or none, so that it knows which are given",
              call.name, more, biases);
}

// Puts the mask that the dropout uses into the output: the mask that is given, or one that is
// drawn. The operator has no seed: the product leaves it to its generator of numbers, and the soft
// device counts such calls. Without a dropout all bits are set.
aclError GiveLayerMask(const NamedCall& call, const LayerForm& form, int given) {
  OperatorArguments own;
  aclTensor* mask = own.Dense(call.outputs, kLayerUsedDropout, form.mask());
  if (form.keep == 1) {
    const uint8_t all = 0xFF;
    return RunOperator<decltype(&aclnnInplaceFillScalarGetWorkspaceSize)>(
        call, "aclnnInplaceFillScalar", mask, own.Scalar(ACL_UINT8, &all));
  }
  if (given < 0) {
    return RunOperator<decltype(&aclnnDropoutGenMaskGetWorkspaceSize)>(
        call, "aclnnDropoutGenMask", own.Integers(form.scores()), 1 - form.keep, SeedOfThisCall(),
        int64_t{0}, mask);
  }
  return RunOperator<decltype(&aclnnInplaceCopyGetWorkspaceSize)>(
      call, "aclnnInplaceCopy", mask, own.Dense(call.inputs, given, form.mask()));
}

// The scores that the dropout keeps, scaled.
aclError DropLayerScores(const NamedCall& call, const LayerForm& form, const NamedTensors& tensors,
                         int mask, NamedArithmetic& in, Value* scores) {
  if (form.keep == 1) return in.status();
  const Value kept = in.Space(form.scores());
  ACLTAPE_RETURN_IF_FAILED(in.status());
  OperatorArguments own;
  ACLTAPE_RETURN_IF_FAILED(RunOperator<decltype(&aclnnDropoutDoMaskGetWorkspaceSize)>(
      call, "aclnnDropoutDoMask", scores->tensor, own.Dense(tensors, mask, form.mask()),
      1 - form.keep, kept.tensor));
  *scores = kept;
  return ACL_SUCCESS;
}

aclError CheckLayer(const NamedCall& call, const LayerForm& form, const LayerOptions& options) {
  std::vector<int64_t> mask = call.inputs.Shape(kLayerMask);
  for (size_t dim = 0; dim < mask.size() && mask.size() == 4; ++dim) {
    if (mask[dim] != 1) mask[dim] = form.scores()[dim];
  }
  ACLTAPE_RETURN_IF_FAILED(
      CheckExpectedInputs(call, {{kLayerQuery, form.target_rows()},
                                 {kLayerKey, form.source_rows()},
                                 {kLayerValue, form.source_rows()},
                                 {kLayerQueryWeight, form.weight()},
                                 {kLayerKeyWeight, form.weight()},
                                 {kLayerValueWeight, form.weight()},
                                 {kLayerMask, mask.size() == 4 ? mask : form.scores()},
                                 {kLayerOutWeight, form.weight()}}));
  for (int i = kLayerQueryBias; options.biased && i <= kLayerOutBias; ++i) {
    ACLTAPE_RETURN_IF_FAILED(CheckExpectedInputs(call, {{i, {form.columns()}}}));
  }
  if (form.keep < 1 && options.mask >= 0) {
    ACLTAPE_RETURN_IF_FAILED(CheckLayerMask(call, form, options.mask));
  }
  return CheckExpectedOutputs(call, {{kLayerY, form.target_rows()},
                                     {kLayerUsedDropout, form.mask(), ACL_UINT8},
                                     {kLayerQueryHeads, form.target_heads()},
                                     {kLayerKeyHeads, form.source_heads()},
                                     {kLayerValueHeads, form.source_heads()},
                                     {kLayerSoftmax, form.scores(), form.softmax},
                                     {kLayerDropped, form.scores()},
                                     {kLayerContext, form.target_rows()}});
}

aclError RunAttentionLayer(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckCounts(call, kLayerQueryBias, kLayerContext + 1));
  LayerForm form{};
  LayerOptions options;
  ACLTAPE_RETURN_IF_FAILED(ReadLayerForm(call, &form));
  ACLTAPE_RETURN_IF_FAILED(ReadLayerOptions(call, &options));
  ACLTAPE_RETURN_IF_FAILED(CheckLayer(call, form, options));
  if (form.batch == 0) return ACL_SUCCESS;
  NamedArithmetic in(call);
  const auto projected = [&](const Value& rows, int weight, int bias) {
    const Value product = in.Product(rows, Transposed(in, WholeInput(in, call, weight)));
    return options.biased ? in.Add(product, WholeInput(in, call, bias)) : product;
  };
  const auto heads = [&](int input, int weight, int bias, double scale, int output) {
    const Value rows = in.Times(projected(WholeInput(in, call, input), weight, bias), scale);
    Value apart = HeadsApart(in, rows, form.batch, form.heads);
    WholeOutput(in, call, output, apart);
    return apart;
  };
  const Value query =
      heads(kLayerQuery, kLayerQueryWeight, kLayerQueryBias, form.scale(), kLayerQueryHeads);
  const Value key = heads(kLayerKey, kLayerKeyWeight, kLayerKeyBias, 1, kLayerKeyHeads);
  const Value value = heads(kLayerValue, kLayerValueWeight, kLayerValueBias, 1, kLayerValueHeads);
  const Value scores =
      in.Add(in.Product(query, Transposed(in, key)), WholeInput(in, call, kLayerMask));
  Value probabilities = in.Softmax(scores, -1);
  WholeOutput(in, call, kLayerSoftmax, probabilities);
  ACLTAPE_RETURN_IF_FAILED(GiveLayerMask(call, form, options.mask));
  ACLTAPE_RETURN_IF_FAILED(
      DropLayerScores(call, form, call.outputs, kLayerUsedDropout, in, &probabilities));
  WholeOutput(in, call, kLayerDropped, probabilities);
  const Value context = HeadsTogether(in, in.Product(probabilities, value));
  WholeOutput(in, call, kLayerContext, context);
  WholeOutput(in, call, kLayerY, projected(context, kLayerOutWeight, kLayerOutBias));
  return in.status();
}

aclError CheckLayerGradient(const NamedCall& call, const LayerForm& form,
                            const std::vector<int64_t>& biased) {
  if (biased.size() != 4) {
    return Fail(ACL_ERROR_INVALID_PARAM,
                "aclop %s: bias_grad_mask has %zu values; expected one for each of the 4 biases",
                call.name, biased.size());
  }
  ACLTAPE_RETURN_IF_FAILED(
      CheckExpectedInputs(call, {{kOfLayerQuery, form.target_rows()},
                                 {kOfLayerKey, form.source_rows()},
                                 {kOfLayerValue, form.source_rows()},
                                 {kOfLayerQueryWeight, form.weight()},
                                 {kOfLayerKeyWeight, form.weight()},
                                 {kOfLayerValueWeight, form.weight()},
                                 {kOfLayerOutWeight, form.weight()},
                                 {kOfLayerQueryHeads, form.target_heads()},
                                 {kOfLayerKeyHeads, form.source_heads()},
                                 {kOfLayerValueHeads, form.source_heads()},
                                 {kOfLayerSoftmax, form.scores(), form.softmax},
                                 {kOfLayerDropped, form.scores()},
                                 {kOfLayerContext, form.target_rows()},
                                 {kOfLayerY, form.target_rows()}}));
  if (form.keep < 1) ACLTAPE_RETURN_IF_FAILED(CheckLayerMask(call, form, kOfLayerDropout));
  for (size_t i = 0; i < biased.size(); ++i) {
    if (biased[i] == 0) continue;
    const int output = kToLayerQueryBias + static_cast<int>(i);
    ACLTAPE_RETURN_IF_FAILED(CheckExpectedOutputs(call, {{output, {1, form.columns()}}}));
  }
  return CheckExpectedOutputs(call, {{kToLayerQueryWeight, form.weight()},
                                     {kToLayerKeyWeight, form.weight()},
                                     {kToLayerValueWeight, form.weight()},
                                     {kToLayerOutWeight, form.weight()},
                                     {kToLayerQuery, form.target_rows()},
                                     {kToLayerKey, form.source_rows()},
                                     {kToLayerValue, form.source_rows()}});
}

// The gradient of a bias is not written where bias_grad_mask says that there is no bias.
aclError RunAttentionLayerGradient(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckCounts(call, kOfLayerY + 1, kToLayerOutBias + 1));
  LayerForm form{};
  ACLTAPE_RETURN_IF_FAILED(ReadLayerForm(call, &form));
  const std::vector<int64_t> biased = IntegersOf(call, "bias_grad_mask");
  ACLTAPE_RETURN_IF_FAILED(CheckLayerGradient(call, form, biased));
  NamedArithmetic in(call);
  const auto input = [&](int i) { return WholeInput(in, call, i); };
  // Gives the gradients of a projection's weight and bias, for the gradient of its result.
  const auto give_parameters = [&](const Value& gradient, const Value& rows, int weight, int bias) {
    WholeOutput(in, call, weight, in.Product(Transposed(in, gradient), rows));
    if (biased[bias - kToLayerQueryBias] == 0) return;
    WholeOutput(in, call, bias, in.As(in.Sum(gradient, {0}), {1, form.columns()}));
  };
  const auto give = [&](const Value& apart, double scale, int rows, int weight, int to_rows,
                        int to_weight, int to_bias) {
    const Value gradient = in.Times(HeadsTogether(in, apart), scale);
    WholeOutput(in, call, to_rows, in.Product(gradient, input(weight)));
    give_parameters(gradient, input(rows), to_weight, to_bias);
  };
  const Value of_y = input(kOfLayerY);
  give_parameters(of_y, input(kOfLayerContext), kToLayerOutWeight, kToLayerOutBias);
  const Value of_context =
      HeadsApart(in, in.Product(of_y, input(kOfLayerOutWeight)), form.batch, form.heads);
  give(in.Product(Transposed(in, input(kOfLayerDropped)), of_context), 1, kOfLayerValue,
       kOfLayerValueWeight, kToLayerValue, kToLayerValueWeight, kToLayerValueBias);
  Value of_probabilities = in.Product(of_context, Transposed(in, input(kOfLayerValueHeads)));
  ACLTAPE_RETURN_IF_FAILED(
      DropLayerScores(call, form, call.inputs, kOfLayerDropout, in, &of_probabilities));
  const Value of_scores = in.SoftmaxGradient(of_probabilities, input(kOfLayerSoftmax), -1);
  give(in.Product(of_scores, input(kOfLayerKeyHeads)), form.scale(), kOfLayerQuery,
       kOfLayerQueryWeight, kToLayerQuery, kToLayerQueryWeight, kToLayerQueryBias);
  give(in.Product(Transposed(in, of_scores), input(kOfLayerQueryHeads)), 1, kOfLayerKey,
       kOfLayerKeyWeight, kToLayerKey, kToLayerKeyWeight, kToLayerKeyBias);
  return in.status();
}

constexpr NamedOperator kAttentionLayers[] = {
    {"MultiHeadAttention", RunAttentionLayer},
    {"MultiHeadAttentionGrad", RunAttentionLayerGradient},
};

}  // namespace

NamedTable AttentionLayersByName() { return kAttentionLayers; }

}  // namespace acltape::device
