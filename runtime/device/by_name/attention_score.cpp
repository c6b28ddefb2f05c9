// Attention with a scale, a mask that is added, and a dropout with a mask of bytes
// (AttentionScore), and its gradient. The order of the bytes is that of the elements: a device has
// it in blocks, but the bytes are random numbers.
#include "runtime/device/by_name/arguments.h"
#include "runtime/device/by_name/attention_heads.h"
#include "runtime/device/by_name/table.h"

namespace acltape::device {
namespace {

using Value = NamedArithmetic::Value;

// Sizes of an attention, and its numbers.
struct ScoreForm {
  int64_t batch, heads, queries, keys, width, value_width;
  double scale, keep;
  int mask;  // the input with the dropout's mask; -1: none

  std::vector<int64_t> scores() const { return {batch, heads, queries, keys}; }
  std::vector<int64_t> query() const { return {batch, heads, queries, width}; }
  std::vector<int64_t> key() const { return {batch, heads, keys, width}; }
  std::vector<int64_t> value() const { return {batch, heads, keys, value_width}; }
  // A tensor of the query's length in the shape of results: heads side by side.
  std::vector<int64_t> rows(int64_t length, int64_t columns) const {
    return {batch * length, heads * columns};
  }
};

// The product has kernels for tensors as they lie alone, and softmax along the last dim.
aclError CheckScoreAttributes(const NamedCall& call) {
  for (const char* flag : {"query_transpose", "key_transpose", "value_transpose", "dx_transpose",
                           "bmm_score_transpose_a", "bmm_score_transpose_b"}) {
    if (!FlagOf(call, flag, false)) continue;
    return Fail(ACL_ERROR_INVALID_PARAM,
                "aclop %s: %s is true; the soft device takes tensors that are not transposed",
                call.name, flag);
  }
  const std::vector<int64_t> axes = IntegersOf(call, "softmax_axes");
  if (axes.empty() || (axes.size() == 1 && (axes[0] == -1 || axes[0] == 3))) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM,
              "aclop %s: softmax_axes is %s; the soft device takes the last dim", call.name,
              ShapeText(axes).c_str());
}

// Reads the sizes from query, key and value, and the numbers of the call. Input `scale` is the
// scale, and the one after it the mask of the dropout.
aclError ReadScoreForm(const NamedCall& call, int query, int key, int value, int scale,
                       ScoreForm* form) {
  ACLTAPE_RETURN_IF_FAILED(CheckScoreAttributes(call));
  for (int i : {query, key, value}) {
    if (call.inputs.Shape(i).size() == 4) continue;
    return Fail(ACL_ERROR_INVALID_PARAM, "aclop %s: input %d has the shape %s, expected 4 dims",
                call.name, i, ShapeText(call.inputs.Shape(i)).c_str());
  }
  const std::vector<int64_t>& sizes = call.inputs.Shape(query);
  form->batch = sizes[0], form->heads = sizes[1], form->queries = sizes[2], form->width = sizes[3];
  form->keys = call.inputs.Shape(key)[2];
  form->value_width = call.inputs.Shape(value)[3];
  ACLTAPE_RETURN_IF_FAILED(CheckExpectedInputs(
      call, {{query, form->query()}, {key, form->key()}, {value, form->value()}}));
  ACLTAPE_RETURN_IF_FAILED(ReadNumber(call, scale, "scale", &form->scale));
  form->keep = RealOf(call, "keep_prob", 1);
  form->mask = call.inputs.Has(scale + 1) ? scale + 1 : -1;
  const bool unmasked = form->mask < 0 && form->keep < 1 && ElementsOf(form->scores()) > 0;
  if (!(form->keep >= 0 && form->keep <= 1) || unmasked) {
    return Fail(
        ACL_ERROR_INVALID_PARAM,
        "aclop %s: keep_prob is %g, and a mask of the dropout is %s; expected a number from "
        "0 to 1, and a mask below 1",
        call.name, form->keep, form->mask < 0 ? "missing" : "given");
  }
  if (form->mask < 0) return ACL_SUCCESS;
  ACLTAPE_RETURN_IF_FAILED(CheckInput(call, form->mask, "drop_mask"));
  const aclDataType type = call.inputs.descs[form->mask]->type;
  const std::vector<int64_t>& shape = call.inputs.Shape(form->mask);
  if ((type == ACL_UINT8 || type == ACL_INT8) && ElementsOf(shape) == ElementsOf(form->scores())) {
    return ACL_SUCCESS;
  }
  return Fail(ACL_ERROR_INVALID_PARAM,
              "aclop %s: drop_mask has the shape %s and the type %d; the soft device takes a byte "
              "for each element of the shape %s",
              call.name, ShapeText(shape).c_str(), static_cast<int>(type),
              ShapeText(form->scores()).c_str());
}

// The elements that the dropout keeps, scaled. With a probability of 0 it keeps none.
Value DroppedScores(NamedArithmetic& in, const ScoreForm& form, const Value& scores) {
  if (form.mask < 0) return scores;
  const Value left =
      in.Multiply(scores, in.Read(form.mask, scores.shape, RowMajorStrides(scores.shape)));
  return form.keep > 0 ? in.Over(left, form.keep) : left;
}

// (query, key, value, padding_mask, scale, drop_mask) to (attention_score, softmax_output): the
// softmax of query * key^T * scale + padding_mask, and what the dropout leaves of it times value.
aclError RunAttentionScore(const NamedCall& call) {
  constexpr int kQuery = 0, kKey = 1, kValue = 2, kPadding = 3, kScale = 4;
  ACLTAPE_RETURN_IF_FAILED(CheckCounts(call, 5, 2));
  ScoreForm form{};
  ACLTAPE_RETURN_IF_FAILED(ReadScoreForm(call, kQuery, kKey, kValue, kScale, &form));
  std::vector<int64_t> padding = call.inputs.Shape(kPadding);
  for (size_t dim = 0; dim < padding.size() && padding.size() == 4; ++dim) {
    if (padding[dim] != 1) padding[dim] = form.scores()[dim];
  }
  ACLTAPE_RETURN_IF_FAILED(
      CheckExpectedInputs(call, {{kPadding, padding.size() == 4 ? padding : form.scores()}}));
  ACLTAPE_RETURN_IF_FAILED(CheckExpectedOutputs(
      call, {{0, form.rows(form.queries, form.value_width)}, {1, form.scores()}}));
  NamedArithmetic in(call);
  const Value key = WholeInput(in, call, kKey);
  const Value products = in.Product(WholeInput(in, call, kQuery), Transposed(in, key));
  const Value scores = in.Add(in.Times(products, form.scale), WholeInput(in, call, kPadding));
  const Value softmax = in.Softmax(scores, -1);
  WholeOutput(in, call, 1, softmax);
  const Value context = in.Product(DroppedScores(in, form, softmax), WholeInput(in, call, kValue));
  WholeOutput(in, call, 0, HeadsTogether(in, context));
  return in.status();
}

// (attention_score, dx, value, key, query, scale, drop_mask) to (value_dw, query_dx, key_dw), where
// attention_score is the softmax, and dx the gradient with its heads apart. The prototype calls the
// inputs 2 to 4 query, key and value; the product's kernel and torch_npu take them in this order.
aclError RunAttentionScoreGradient(const NamedCall& call) {
  constexpr int kProbabilities = 0, kOutputGradient = 1, kValue = 2, kKey = 3, kQuery = 4,
                kScale = 5;
  ACLTAPE_RETURN_IF_FAILED(CheckCounts(call, 6, 3));
  ScoreForm form{};
  ACLTAPE_RETURN_IF_FAILED(ReadScoreForm(call, kQuery, kKey, kValue, kScale, &form));
  const std::vector<int64_t> of_result{form.batch, form.heads, form.queries, form.value_width};
  ACLTAPE_RETURN_IF_FAILED(
      CheckExpectedInputs(call, {{kProbabilities, form.scores()}, {kOutputGradient, of_result}}));
  ACLTAPE_RETURN_IF_FAILED(CheckExpectedOutputs(call, {{0, form.rows(form.keys, form.value_width)},
                                                       {1, form.rows(form.queries, form.width)},
                                                       {2, form.rows(form.keys, form.width)}}));
  NamedArithmetic in(call);
  const Value softmax = WholeInput(in, call, kProbabilities),
              gradient = WholeInput(in, call, kOutputGradient);
  const Value dropped = DroppedScores(in, form, softmax);
  WholeOutput(in, call, 0, HeadsTogether(in, in.Product(Transposed(in, dropped), gradient)));
  const Value value = WholeInput(in, call, kValue);
  const Value of_dropped = in.Product(gradient, Transposed(in, value));
  const Value of_softmax = DroppedScores(in, form, of_dropped);
  const Value of_scores = in.Times(in.SoftmaxGradient(of_softmax, softmax, -1), form.scale);
  WholeOutput(in, call, 1, HeadsTogether(in, in.Product(of_scores, WholeInput(in, call, kKey))));
  WholeOutput(
      in, call, 2,
      HeadsTogether(in, in.Product(Transposed(in, of_scores), WholeInput(in, call, kQuery))));
  return in.status();
}

constexpr NamedOperator kAttentionScores[] = {
    {"AttentionScore", RunAttentionScore},
    {"AttentionScoreGrad", RunAttentionScoreGradient},
};

}  // namespace

NamedTable AttentionScoresByName() { return kAttentionScores; }

}  // namespace acltape::device
