// A decoder of the shape that an inference library gives it: rotary positions, a cache in half
// precision, half weights times float rows, flash attention, and weights in the device's blocked
// order: of half precision, of 4 bits in groups and of 8 bits. 16 greedy tokens follow a prompt
// of 4.
//
// Each step the host gives token and place; the length of the cache is a host argument of the
// attention. So the captured form rewrites one task group in each layer for each execution. All
// logits are held against a reference in double precision (decoder_weights.h).
//
//   decoder [--captured]
#include <algorithm>
#include <memory>

#include "aclnnop/aclnn_add.h"
#include "aclnnop/aclnn_argmax.h"
#include "aclnnop/aclnn_cast.h"
#include "aclnnop/aclnn_convert_weight_to_int4_pack.h"
#include "aclnnop/aclnn_embedding.h"
#include "aclnnop/aclnn_fused_infer_attention_score_v3.h"
#include "aclnnop/aclnn_index_select.h"
#include "aclnnop/aclnn_matmul.h"
#include "aclnnop/aclnn_mm.h"
#include "aclnnop/aclnn_rms_norm.h"
#include "aclnnop/aclnn_rotary_position_embedding.h"
#include "aclnnop/aclnn_scatter_pa_kv_cache.h"
#include "aclnnop/aclnn_swi_glu.h"
#include "aclnnop/aclnn_trans_matmul_weight.h"
#include "aclnnop/aclnn_weight_quant_batch_matmul_v2.h"
#include "decoder_weights.h"
#include "sample.h"

namespace {

using namespace decoder;

constexpr int kPrompt[] = {5, 71, 23, 40};
constexpr int kPromptTokens = 4, kNewTokens = 16;

// The standard: the logits as a whole, by cosine and by the relative square error that tests of
// inference libraries ask of attention.
constexpr double kLeastCosine = 0.99, kGreatestSquareError = 5e-4;

// A dense tensor over device memory of its own, or over a part of another's.
class Tensor {
 public:
  Tensor(aclDataType type, std::vector<int64_t> sizes, const void* content = nullptr)
      : bytes_(Bytes(type, sizes)), address_(MallocDevice(bytes_)), owner_(true) {
    tensor_ = MakeTensor(type, static_cast<int>(sizes.size()), sizes.data(), address_);
    if (content == nullptr) return;
    CHECK_ACL(aclrtMemcpy(address_, bytes_, content, bytes_, ACL_MEMCPY_HOST_TO_DEVICE));
  }
  Tensor(const Tensor& of, size_t offset, aclDataType type, std::vector<int64_t> sizes)
      : bytes_(Bytes(type, sizes)),
        address_(static_cast<char*>(of.address_) + offset),
        owner_(false) {
    CHECK(offset + bytes_ <= of.bytes_);
    tensor_ = MakeTensor(type, static_cast<int>(sizes.size()), sizes.data(), address_);
  }
  ~Tensor() {
    CHECK_ACL(aclDestroyTensor(tensor_));
    if (owner_) CHECK_ACL(aclrtFree(address_));
  }
  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;

  // The matrix of 32 bit integers shall lie in blocks of 16 rows and 8 columns, which fit into it.
  void LieInBlocks() {
    int64_t* sizes = nullptr;
    uint64_t rank = 0;
    CHECK_ACL(aclGetViewShape(tensor_, &sizes, &rank));
    CHECK(rank == 2 && sizes[0] % 16 == 0 && sizes[1] % 8 == 0);
    const int64_t strides[] = {sizes[1], 1}, storage[] = {sizes[1] / 8, sizes[0] / 16, 16, 8};
    CHECK_ACL(aclDestroyTensor(tensor_));
    tensor_ = aclCreateTensor(sizes, 2, ACL_INT32, strides, 0, ACL_FORMAT_FRACTAL_NZ, storage, 4,
                              address_);
    CHECK(tensor_ != nullptr);
    delete[] sizes;
  }

  operator aclTensor*() const { return tensor_; }
  void* address() const { return address_; }
  size_t bytes() const { return bytes_; }

 private:
  static size_t Bytes(aclDataType type, const std::vector<int64_t>& sizes) {
    size_t bytes = aclDataTypeSize(type);
    for (int64_t size : sizes) bytes *= static_cast<size_t>(size);
    return bytes;
  }

  size_t bytes_;
  void* address_;
  bool owner_;
  aclTensor* tensor_;
};

// One workspace for all: operators of one stream use it one after the other.
constexpr size_t kWorkspaceBytes = 1 << 20;

#define SUBMIT(op, on, ...)                                                        \
  do {                                                                             \
    uint64_t submit_bytes = 0;                                                     \
    aclOpExecutor* submit_executor = nullptr;                                      \
    CHECK_ACL(op##GetWorkspaceSize(__VA_ARGS__, &submit_bytes, &submit_executor)); \
    CHECK(submit_bytes <= kWorkspaceBytes);                                        \
    CHECK_ACL(op(workspace_.address(), submit_bytes, submit_executor, on));        \
  } while (0)

// The weights of a quantised product on the device. Eight integers of 4 bits lie in one of 32.
struct QuantisedTensors {
  QuantisedTensors(const QuantisedMatrix& from, int bits)
      : group(bits == 4 ? from.group : 0),
        whole(ACL_INT32, {from.rows, from.columns}, from.whole.data()),
        weight(bits == 4 ? ACL_INT32 : ACL_INT8,
               {from.rows, bits == 4 ? from.columns / 8 : from.columns}),
        scales(ACL_FLOAT16, {from.rows / from.group, from.columns}, from.scales.data()),
        offsets(ACL_FLOAT16, {from.rows / from.group, from.columns}, from.offsets.data()) {}
  int64_t group;  // 0: a scale for each column
  Tensor whole, weight, scales, offsets;
};

struct LayerTensors {
  explicit LayerTensors(const Layer& from)
      : before_attention(ACL_FLOAT, {kHidden}, from.before_attention.data()),
        before_feed(ACL_FLOAT, {kHidden}, from.before_feed.data()),
        project(ACL_FLOAT16, {kHidden, kProjected}, from.project.bits.data()),
        collect(ACL_FLOAT16, {kHeads * kWidth, kHidden}, from.collect.bits.data()),
        widen(from.widen, 4),
        narrow(from.narrow, 8),
        keys(ACL_FLOAT16, {1, kPlaces, kKeyHeads, kWidth}),
        values(ACL_FLOAT16, {1, kPlaces, kKeyHeads, kWidth}) {
    for (const Tensor* cache : {&keys, &values}) {
      CHECK_ACL(aclrtMemset(cache->address(), cache->bytes(), 0, cache->bytes()));
    }
    // A list takes its tensors over, so it gets others than the cache's own.
    for (auto [cache, list] : {std::pair(&keys, &key_list), std::pair(&values, &value_list)}) {
      const int64_t sizes[] = {1, kPlaces, kKeyHeads, kWidth};
      aclTensor* only = MakeTensor(ACL_FLOAT16, 4, sizes, cache->address());
      *list = aclCreateTensorList(&only, 1);
      CHECK(*list != nullptr);
    }
    CHECK_ACL(aclrtCreateEventWithFlag(&updated, ACL_EVENT_EXTERNAL));
  }
  ~LayerTensors() {
    CHECK_ACL(aclDestroyTensorList(key_list));
    CHECK_ACL(aclDestroyTensorList(value_list));
    CHECK_ACL(aclrtDestroyEvent(updated));
  }

  Tensor before_attention, before_feed, project, collect;
  QuantisedTensors widen, narrow;
  Tensor keys, values;
  aclTensorList* key_list = nullptr;
  aclTensorList* value_list = nullptr;
  // Handles of the captured form: the attention, and the event that lets an execution go on to it.
  aclrtTaskGrp attention = nullptr;
  aclrtEvent updated = nullptr;
};

class Decoder {
 public:
  Decoder(const Weights& weights, aclrtStream stream)
      : stream_(stream),
        embedding_(ACL_FLOAT, {kVocabulary, kHidden}, weights.embedding.data()),
        cosines_(ACL_FLOAT, {kPlaces, kWidth}, weights.cosines.data()),
        sines_(ACL_FLOAT, {kPlaces, kWidth}, weights.sines.data()),
        last_(ACL_FLOAT, {kHidden}, weights.last.data()),
        head_(ACL_FLOAT16, {kHidden, kVocabulary}, weights.head.bits.data()) {
    for (const Layer& layer : weights.layers) {
      layers_.push_back(std::make_unique<LayerTensors>(layer));
      // From here on the device keeps these weights in its own order.
      LayerTensors& made = *layers_.back();
      SUBMIT(aclnnTransMatmulWeight, stream_, made.collect);
      SUBMIT(aclnnCast, stream_, made.narrow.whole, ACL_INT8, made.narrow.weight);
      SUBMIT(aclnnTransMatmulWeight, stream_, made.narrow.weight);
      made.widen.weight.LieInBlocks();
      SUBMIT(aclnnConvertWeightToINT4Pack, stream_, made.widen.whole, made.widen.weight);
    }
    CHECK_ACL(aclrtSynchronizeStream(stream_));
  }
  ~Decoder() { CHECK_ACL(aclDestroyScalar(one_)); }

  // Submits one step: token and place -> logits and the next token. With `capture` each attention
  // becomes a task group after a wait.
  void Submit(int64_t length, bool capture) {
    SUBMIT(aclnnEmbedding, stream_, embedding_, token_, x_);
    SUBMIT(aclnnIndexSelect, stream_, cosines_, 0, place_, cosine_);
    SUBMIT(aclnnIndexSelect, stream_, sines_, 0, place_, sine_);
    for (auto& layer : layers_) {
      SubmitAttention(*layer, length, capture);
      SubmitFeedForward(*layer);
    }
    SUBMIT(aclnnRmsNorm, stream_, x_, last_, kEpsilon, normed_, root_);
    SUBMIT(aclnnMm, stream_, normed_, head_, logits, int8_t{0});
    SUBMIT(aclnnArgMax, stream_, logits, 1, false, next);
  }

  // Gives the attentions of the captured step the new length of the cache.
  void Update(int64_t length, aclrtStream update_stream) {
    for (auto& layer : layers_) {
      CHECK_ACL(aclmdlRICaptureTaskUpdateBegin(update_stream, layer->attention));
      SubmitFlash(*layer, length, update_stream);
      CHECK_ACL(aclmdlRICaptureTaskUpdateEnd(update_stream));
      CHECK_ACL(aclrtRecordEvent(layer->updated, update_stream));
    }
  }

 private:
  void SubmitAttention(LayerTensors& layer, int64_t length, bool capture) {
    SUBMIT(aclnnRmsNorm, stream_, x_, layer.before_attention, kEpsilon, normed_, root_);
    SUBMIT(aclnnMm, stream_, normed_, layer.project, projected_, int8_t{0});
    SUBMIT(aclnnRotaryPositionEmbedding, stream_, query_, cosine_row_, sine_row_, 0, turned_query_);
    SUBMIT(aclnnRotaryPositionEmbedding, stream_, key_, cosine_row_, sine_row_, 0, turned_key_);
    SUBMIT(aclnnCast, stream_, turned_query_, ACL_FLOAT16, half_query_);
    SUBMIT(aclnnCast, stream_, turned_key_, ACL_FLOAT16, half_key_);
    SUBMIT(aclnnCast, stream_, value_, ACL_FLOAT16, half_value_);
    char none[] = "";
    SUBMIT(aclnnScatterPaKvCache, stream_, half_key_row_, layer.keys, place_, half_value_row_,
           layer.values, nullptr, nullptr, nullptr, none, none, nullptr, nullptr);
    if (capture) {
      CHECK_ACL(aclrtStreamWaitEvent(stream_, layer.updated));
      CHECK_ACL(aclrtResetEvent(layer.updated, stream_));
      CHECK_ACL(aclmdlRICaptureTaskGrpBegin(stream_));
    }
    SubmitFlash(layer, length, stream_);
    if (capture) CHECK_ACL(aclmdlRICaptureTaskGrpEnd(stream_, &layer.attention));
    SUBMIT(aclnnMatmul, stream_, attended_row_, layer.collect, half_hidden_, int8_t{0});
    AddHalfHidden();
  }

  void SubmitFlash(LayerTensors& layer, int64_t length, aclrtStream stream) {
    aclIntArray* lengths = aclCreateIntArray(&length, 1);
    CHECK(lengths != nullptr);
    char layout[] = "BSND";
    const int64_t all = 2147483647;
    SUBMIT(aclnnFusedInferAttentionScoreV3, stream, half_query_, layer.key_list, layer.value_list,
           nullptr, nullptr, nullptr, lengths, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
           nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
           nullptr, nullptr, nullptr, nullptr, kHeads, 1 / std::sqrt(static_cast<double>(kWidth)),
           all, all, layout, kKeyHeads, 0, 0, 0, 0, false, 0, 0, attended_, nullptr);
    CHECK_ACL(aclDestroyIntArray(lengths));
  }

  void SubmitFeedForward(LayerTensors& layer) {
    SUBMIT(aclnnRmsNorm, stream_, x_, layer.before_feed, kEpsilon, normed_, root_);
    SUBMIT(aclnnCast, stream_, normed_, ACL_FLOAT16, half_hidden_);
    Quantised(half_hidden_, layer.widen, false, wide_);
    SUBMIT(aclnnSwiGlu, stream_, wide_, -1, gated_);
    Quantised(gated_, layer.narrow, true, half_hidden_);
    AddHalfHidden();
  }

  void Quantised(const Tensor& x, const QuantisedTensors& weight, bool offsets, const Tensor& out) {
    SUBMIT(aclnnWeightQuantBatchMatmulV2, stream_, x, weight.weight, weight.scales,
           offsets ? static_cast<aclTensor*>(weight.offsets) : nullptr, nullptr, nullptr, nullptr,
           static_cast<int>(weight.group), out);
  }

  void AddHalfHidden() {
    SUBMIT(aclnnCast, stream_, half_hidden_, ACL_FLOAT, hidden_);
    SUBMIT(aclnnInplaceAdd, stream_, x_, hidden_, one_);
  }

  static constexpr size_t kFloat = sizeof(float);

  aclrtStream stream_;
  Tensor workspace_{ACL_UINT8, {kWorkspaceBytes}};
  Tensor embedding_, cosines_, sines_, last_, head_;
  std::vector<std::unique_ptr<LayerTensors>> layers_;
  aclScalar* one_ = MakeScalar(1);

 public:
  Tensor inputs{ACL_INT64, {2}};  // token and place
  Tensor logits{ACL_FLOAT, {1, kVocabulary}};
  Tensor next{ACL_INT64, {1}};

 private:
  Tensor token_{inputs, 0, ACL_INT64, {1}};
  Tensor place_{inputs, sizeof(int64_t), ACL_INT64, {1}};
  Tensor x_{ACL_FLOAT, {1, kHidden}}, normed_{ACL_FLOAT, {1, kHidden}}, root_{ACL_FLOAT, {1, 1}};
  Tensor cosine_{ACL_FLOAT, {1, kWidth}}, sine_{ACL_FLOAT, {1, kWidth}};
  Tensor cosine_row_{cosine_, 0, ACL_FLOAT, {1, 1, 1, kWidth}};
  Tensor sine_row_{sine_, 0, ACL_FLOAT, {1, 1, 1, kWidth}};
  Tensor projected_{ACL_FLOAT, {1, kProjected}};
  Tensor query_{projected_, 0, ACL_FLOAT, {1, 1, kHeads, kWidth}};
  Tensor key_{projected_, kHeads* kWidth* kFloat, ACL_FLOAT, {1, 1, kKeyHeads, kWidth}};
  Tensor value_{
      projected_, (kHeads + kKeyHeads) * kWidth* kFloat, ACL_FLOAT, {1, 1, kKeyHeads, kWidth}};
  Tensor turned_query_{ACL_FLOAT, {1, 1, kHeads, kWidth}};
  Tensor turned_key_{ACL_FLOAT, {1, 1, kKeyHeads, kWidth}};
  Tensor half_query_{ACL_FLOAT16, {1, 1, kHeads, kWidth}};
  Tensor half_key_{ACL_FLOAT16, {1, 1, kKeyHeads, kWidth}};
  Tensor half_value_{ACL_FLOAT16, {1, 1, kKeyHeads, kWidth}};
  Tensor half_key_row_{half_key_, 0, ACL_FLOAT16, {1, kKeyHeads, kWidth}};
  Tensor half_value_row_{half_value_, 0, ACL_FLOAT16, {1, kKeyHeads, kWidth}};
  Tensor attended_{ACL_FLOAT16, {1, 1, kHeads, kWidth}};
  Tensor attended_row_{attended_, 0, ACL_FLOAT16, {1, kHeads* kWidth}};
  Tensor half_hidden_{ACL_FLOAT16, {1, kHidden}}, hidden_{ACL_FLOAT, {1, kHidden}};
  Tensor wide_{ACL_FLOAT16, {1, 2 * kInner}}, gated_{ACL_FLOAT16, {1, kInner}};
};

// How far the logits of all steps lie from the reference.
class Distance {
 public:
  void Add(const float* logits, const std::vector<double>& reference) {
    for (size_t i = 0; i < reference.size(); ++i) {
      const double a = logits[i], b = reference[i];
      greatest_ = std::max(greatest_, std::fabs(a - b));
      squares_ += (a - b) * (a - b);
      aa_ += a * a, bb_ += b * b, ab_ += a * b;
    }
  }
  double greatest() const { return greatest_; }
  double square_error() const { return squares_ / bb_; }
  double cosine() const { return ab_ / std::sqrt(aa_ * bb_); }

 private:
  double greatest_ = 0, squares_ = 0, aa_ = 0, bb_ = 0, ab_ = 0;
};

template <typename Number>
int64_t Largest(const Number* logits) {
  return std::max_element(logits, logits + kVocabulary) - logits;
}

void Generate(aclrtStream stream, aclrtStream update_stream, bool captured) {
  const Weights weights = MakeWeights(3);
  Reference reference(weights);
  Distance distance;
  Decoder decoder(weights, stream);
  auto* inputs = static_cast<int64_t*>(MallocPinned(decoder.inputs.bytes()));
  auto* logits = static_cast<float*>(MallocPinned(decoder.logits.bytes()));
  auto* next = static_cast<int64_t*>(MallocPinned(decoder.next.bytes()));
  aclmdlRI model = nullptr;
  if (captured) {
    CHECK_ACL(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL));
    decoder.Submit(1, true);
    CHECK_ACL(aclmdlRICaptureEnd(stream, &model));
  }
  uint64_t digest = 14695981039346656037u;  // FNV-1a over the bits of all logits
  printf("tokens:");
  for (int64_t place = 0; place < kPromptTokens + kNewTokens - 1; ++place) {
    inputs[0] = place < kPromptTokens ? kPrompt[place] : *next;
    inputs[1] = place;
    CHECK_ACL(aclrtMemcpyAsync(decoder.inputs.address(), decoder.inputs.bytes(), inputs,
                               decoder.inputs.bytes(), ACL_MEMCPY_HOST_TO_DEVICE, stream));
    if (captured) {
      CHECK_ACL(aclmdlRIExecuteAsync(model, stream));
      decoder.Update(place + 1, update_stream);
    } else {
      decoder.Submit(place + 1, false);
    }
    CHECK_ACL(aclrtMemcpyAsync(logits, decoder.logits.bytes(), decoder.logits.address(),
                               decoder.logits.bytes(), ACL_MEMCPY_DEVICE_TO_HOST, stream));
    CHECK_ACL(aclrtMemcpyAsync(next, decoder.next.bytes(), decoder.next.address(),
                               decoder.next.bytes(), ACL_MEMCPY_DEVICE_TO_HOST, stream));
    CHECK_ACL(aclrtSynchronizeStream(stream));

    const std::vector<double> expected = reference.Step(inputs[0], place);
    distance.Add(logits, expected);
    CHECK(Largest(logits) == *next);
    if (place >= kPromptTokens - 1) {
      CHECK(Largest(expected.data()) == *next);
      printf(" %" PRId64, *next);
    }
    const auto* bytes = reinterpret_cast<const unsigned char*>(logits);
    for (size_t i = 0; i < decoder.logits.bytes(); ++i) {
      digest = (digest ^ bytes[i]) * 1099511628211u;
    }
  }
  printf("\n");
  CHECK_ACL(aclrtSynchronizeStream(update_stream));
  if (model != nullptr) CHECK_ACL(aclmdlRIDestroy(model));
  CHECK_ACL(aclrtFreeHost(inputs));
  CHECK_ACL(aclrtFreeHost(logits));
  CHECK_ACL(aclrtFreeHost(next));
  printf("greatest error: %.3g, square error: %.3g, cosine: %.8f\n", distance.greatest(),
         distance.square_error(), distance.cosine());
  CHECK(distance.cosine() >= kLeastCosine);
  CHECK(distance.square_error() <= kGreatestSquareError);
  printf("digest: %016" PRIx64 "\n", digest);
}

}  // namespace

int main(int argc, char** argv) {
  const bool captured = argc == 2 && strcmp(argv[1], "--captured") == 0;
  CHECK(argc == 1 || captured);
  aclrtStream stream = nullptr, update_stream = nullptr;
  CHECK_ACL(aclInit(nullptr));
  CHECK_ACL(aclrtSetDevice(0));
  CHECK_ACL(aclrtCreateStream(&stream));
  CHECK_ACL(aclrtCreateStream(&update_stream));
  Generate(stream, update_stream, captured);
  CHECK_ACL(aclrtDestroyStream(update_stream));
  CHECK_ACL(aclrtDestroyStream(stream));
  CHECK_ACL(aclrtResetDevice(0));
  CHECK_ACL(aclFinalize());
  printf("ok\n");
  return 0;
}
