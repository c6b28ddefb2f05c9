// Matrix products. cubeMathType is accepted and ignored: float32 arithmetic satisfies all its
// values.
#include <ATen/CPUFunctions.h>
#include <ATen/ExpandUtils.h>

#include <algorithm>

#include "runtime/opapi/engine/blocked.h"
#include "runtime/opapi/engine/tensor_blocks.h"
#include "runtime/opapi/kernels/elementwise.h"
#include "runtime/opapi/kernels/expect_dtypes.h"

namespace acltape::opapi {
namespace {

namespace f = at::cpu;
using at::Tensor;

void ExpectSameDtype(const Call& call, const Operand& a, int i, const Operand& b) {
  if (a.view().scalar_type() != b.view().scalar_type()) {
    call.RejectArg(i, std::string("has dtype ") + at::toString(b.view().scalar_type()) + " but " +
                          std::string(call.Arg(0).name) + " has " +
                          at::toString(a.view().scalar_type()));
  }
}

// Two floating dtypes may differ where the result's holds what they promote to, rounded at most.
void ExpectPromotable(const Call& call, const Operand& a, int i, const Operand& b,
                      const Tensor& out, int out_index) {
  const at::ScalarType x = a.view().scalar_type(), y = b.view().scalar_type();
  if (x == y) return;
  if (!at::isFloatingType(x) || !at::isFloatingType(y)) ExpectSameDtype(call, a, i, b);
  ExpectCast(call, out_index, out, at::promote_types(x, y));
}

void ExpectInner(const Call& call, const Tensor& a, const Tensor& b) {
  if (a.size(-1) != b.size(b.dim() == 1 ? 0 : -2)) {
    call.RejectCall("shapes " + SizesText(a.sizes()) + " and " + SizesText(b.sizes()) +
                    " do not multiply");
  }
}

// A dense float32 copy of a half tensor in the workspace.
class WidenedCopy {
 public:
  explicit WidenedCopy(Tensor view)
      : view_(std::move(view)), strides_(at::infer_dense_strides(view_.sizes(), view_.strides())) {}

  uint64_t bytes() const { return (view_.numel() * sizeof(float) + 63) / 64 * 64; }

  // The copy's memory, unfilled. Moves `workspace` to the first byte after it.
  Tensor Place(char*& workspace) const {
    Tensor placed = at::from_blob(workspace, view_.sizes(), strides_,
                                  at::TensorOptions(at::kFloat).device(at::kCPU));
    workspace += bytes();
    return placed;
  }

  Tensor Fill(char*& workspace) const { return Place(workspace).copy_(view_); }

  const Tensor& view() const { return view_; }

 private:
  Tensor view_;
  std::vector<int64_t> strides_;
};

// fn(out, a, b) of half tensors: float32 copies live in the workspace that the caller brings.
template <typename Fn>
std::unique_ptr<Kernel> BindHalfProduct(Tensor out, Tensor a, Tensor b, Fn fn) {
  const WidenedCopy wide_a(std::move(a)), wide_b(std::move(b)), wide_out(std::move(out));
  return MakeWorkspaceKernel(wide_a.bytes() + wide_b.bytes() + wide_out.bytes(),
                             [=](char* workspace) {
                               const Tensor x = wide_a.Fill(workspace);
                               const Tensor y = wide_b.Fill(workspace);
                               Tensor product = wide_out.Place(workspace);
                               fn(product, x, y);
                               wide_out.view().copy_(product);
                             });
}

// Factors of different dtypes meet in the dtype that both promote to.
template <typename Fn>
std::unique_ptr<Kernel> BindProduct(const Tensor& out, const Operand& a, const Operand& b, Fn fn) {
  if (a.view().scalar_type() != b.view().scalar_type()) {
    const at::ScalarType both = at::promote_types(a.dtype(), b.dtype());
    Target target(out, both, Access::kFree, {&a.view(), &b.view()});
    return MakeKernel(
        [=] { target.Write([&](Tensor& result) { fn(result, a().to(both), b().to(both)); }); });
  }
  if (a.view().scalar_type() == at::kHalf && out.numel() > 0) {
    return BindHalfProduct(out, a.view(), b.view(), fn);
  }
  Target target(out, a.dtype(), Access::kFree, {&a.view(), &b.view()});
  return MakeKernel([=] {
    target.Write([&](Tensor& result) {
      Tensor scratch_a, scratch_b;
      fn(result, a.Read(scratch_a), b.Read(scratch_b));
    });
  });
}

std::unique_ptr<Kernel> BindMm(const Call& call) {
  const Operand a = call.In(0), b = call.In(1);
  const Tensor out = call.Out(2);
  call.ExpectRank(0, a.view(), 2);
  call.ExpectRank(1, b.view(), 2);
  ExpectPromotable(call, a, 1, b, out, 2);
  ExpectInner(call, a.view(), b.view());
  call.ExpectSizes(2, out, {a.view().size(0), b.view().size(1)});
  return BindProduct(out, a, b, f::mm_out);
}

// One side's batch may be 1 against N.
std::unique_ptr<Kernel> BindBatchMatMul(const Call& call) {
  const Tensor a = call.View(0), b = call.View(1);
  const Tensor out = call.Out(2);
  call.ExpectRank(0, a, 3);
  call.ExpectRank(1, b, 3);
  const int64_t batch = call.Broadcast({{a.size(0)}, {b.size(0)}})[0];
  const Operand left(a.expand({batch, a.size(1), a.size(2)}), call.widen());
  const Operand right(b.expand({batch, b.size(1), b.size(2)}), call.widen());
  ExpectPromotable(call, left, 1, right, out, 2);
  ExpectInner(call, a, b);
  call.ExpectSizes(2, out, {batch, a.size(1), b.size(2)});
  return BindProduct(out, left, right, f::bmm_out);
}

void ExpectOrder(const Call& call, int i, std::vector<int64_t> order) {
  std::sort(order.begin(), order.end());
  if (order != std::vector<int64_t>{0, 1, 2}) call.RejectArg(i, "is no order of three dims");
}

// Argument `i` with its dims in the order that another argument gives, if it gives one.
Tensor Permuted(const Call& call, int i, int order_index) {
  const Tensor tensor = call.View(i);
  const std::vector<int64_t> order = call.Ints(order_index);
  call.ExpectRank(i, tensor, 3);
  if (order.empty()) return tensor;
  ExpectOrder(call, order_index, order);
  return tensor.permute(order);
}

// (x1, x2, bias?, scale?, permX1, permX2, permY, cubeMathType, batchSplitFactor, out)
std::unique_ptr<Kernel> BindTransposeBatchMatMul(const Call& call) {
  for (int i : {2, 3}) {
    if (!call.IsAbsent(i)) call.RejectArg(i, "is given, which the soft device lacks");
  }
  if (call.Int(8) != 1) call.RejectArg(8, "must be 1: the soft device does not split batches");
  const Tensor a = Permuted(call, 0, 4), b = Permuted(call, 1, 5);
  ExpectSameDtype(call, call.In(0), 1, call.In(1));
  ExpectInner(call, a, b);
  if (a.size(0) != b.size(0)) call.RejectArg(1, "has another batch than x1");
  const Operand left(a, call.widen()), right(b, call.widen());
  std::vector<int64_t> order = call.Ints(6);
  if (order.empty()) order = {0, 1, 2};
  ExpectOrder(call, 6, order);
  const std::vector<int64_t> sizes = {a.size(0), a.size(1), b.size(2)};
  const Tensor out = call.Out(9);
  call.ExpectSizes(9, out, at::empty(sizes).permute(order).sizes());
  return MakeKernel([=] { Tensor(out).copy_(at::bmm(left(), right()).permute(order)); });
}

// Any ranks from 1 to 6: batch dims broadcast, 1-D operands gain and lose a dim.
std::unique_ptr<Kernel> BindMatmul(const Call& call) {
  const Operand a = call.In(0), b = call.In(1);
  const Tensor out = call.Out(2);
  ExpectPromotable(call, a, 1, b, out, 2);
  if (a.dim() == 0 || b.dim() == 0) call.RejectCall("a 0-dim operand cannot be multiplied");
  ExpectInner(call, a.view(), b.view());
  const int64_t batch_a = std::max<int64_t>(a.dim() - 2, 0);
  const int64_t batch_b = std::max<int64_t>(b.dim() - 2, 0);
  std::vector<int64_t> sizes =
      call.Broadcast({a.sizes().slice(0, batch_a), b.sizes().slice(0, batch_b)});
  if (a.dim() > 1) sizes.push_back(a.sizes()[a.dim() - 2]);
  if (b.dim() > 1) sizes.push_back(b.sizes()[b.dim() - 1]);
  call.ExpectSizes(2, out, sizes);
  if (a.dim() == 2 && b.dim() == 2) return BindProduct(out, a, b, f::mm_out);
  if (a.dim() == 3 && b.dim() == 3 && a.sizes()[0] == b.sizes()[0]) {
    return BindProduct(out, a, b, f::bmm_out);
  }
  return BindProduct(out, a, b, [](Tensor& result, const Tensor& x, const Tensor& y) {
    const Tensor product = at::matmul(x, y);
    result.resize_(product.sizes()).copy_(product);
  });
}

// The dtype that three inputs promote to. Those of different dtypes are of floating ones.
at::ScalarType PromotedOfThree(const Call& call, const Operand& a, const Operand& b,
                               const Operand& c) {
  at::ScalarType promoted = a.view().scalar_type();
  for (const auto& [i, other] : {std::pair<int, const Operand*>{1, &b}, {2, &c}}) {
    const at::ScalarType dtype = other->view().scalar_type();
    if (dtype == promoted) continue;
    if (!at::isFloatingType(promoted) || !at::isFloatingType(dtype)) {
      ExpectSameDtype(call, a, i, *other);
    }
    promoted = at::promote_types(promoted, dtype);
  }
  return promoted;
}

// fn(out, self, a, b, beta, alpha) = beta * self + alpha * (a @ b), where self broadcasts. The
// output is argument 5. Inputs of different floating dtypes meet in the dtype that all promote to.
template <typename Fn>
std::unique_ptr<Kernel> BindAccumulating(const Call& call, int beta_index, int alpha_index,
                                         const std::vector<int64_t>& sizes, Fn fn) {
  const Operand self = call.In(0), a = call.In(1), b = call.In(2);
  const at::ScalarType promoted = PromotedOfThree(call, self, a, b);
  const at::Scalar beta = call.Number(beta_index), alpha = call.Number(alpha_index);
  const Tensor out = call.Out(5);
  call.ExpectSizes(5, out, sizes);
  if (call.Broadcast({self.sizes(), sizes}) != sizes) {
    call.RejectArg(0, "has shape " + SizesText(self.sizes()) + ", which does not broadcast to " +
                          SizesText(sizes));
  }
  const at::ScalarType computed = call.Computed(promoted);
  Target target(out, computed, Access::kFree, {&a.view(), &b.view()});
  target.Read(self.view(), Access::kElementwise);
  return MakeKernel([=] {
    target.Write([&](Tensor& result) {
      Tensor scratch, scratch_a, scratch_b;
      const Tensor x = a.Read(scratch_a), y = b.Read(scratch_b);
      const Tensor added = self.Read(scratch);
      fn(result, added.to(computed), x.to(computed), y.to(computed), beta, alpha);
    });
  });
}

std::unique_ptr<Kernel> BindAddmm(const Call& call) {
  const Tensor a = call.View(1), b = call.View(2);
  call.ExpectRank(1, a, 2);
  call.ExpectRank(2, b, 2);
  ExpectInner(call, a, b);
  return BindAccumulating(call, 3, 4, {a.size(0), b.size(1)}, f::addmm_out);
}

// (A, B, C, alpha, beta, transA, transB, out, cubeMathType): alpha A B + beta C
std::unique_ptr<Kernel> BindGemm(const Call& call) {
  const Operand left = call.In(0), right = call.In(1), added = call.In(2);
  const bool turn_left = call.Int(5) != 0, turn_right = call.Int(6) != 0;
  for (int i : {0, 1}) call.ExpectRank(i, call.View(i), 2);
  for (int i : {0, 1, 2}) ExpectFloats(call, i, call.View(i));
  for (int i : {1, 2}) ExpectDtypes(call, i, call.View(i), {left.view().scalar_type()});
  const Tensor a = turn_left ? left.view().t() : left.view();
  const Tensor b = turn_right ? right.view().t() : right.view();
  if (a.size(1) != b.size(0)) call.RejectArg(1, "has another inner size than A");
  const std::vector<int64_t> sizes = {a.size(0), b.size(1)};
  if (call.Broadcast({added.sizes(), sizes}) != sizes) {
    call.RejectArg(2, "does not broadcast to the product");
  }
  const double alpha = call.Real(3), beta = call.Real(4);
  const Tensor out = call.Out(7);
  call.ExpectSizes(7, out, sizes);
  return MakeKernel([=] {
    const Tensor x = turn_left ? left().t() : left(), y = turn_right ? right().t() : right();
    out.copy_(at::addmm(added(), x, y, beta, alpha));
  });
}

std::unique_ptr<Kernel> BindBaddbmm(const Call& call) {
  const Tensor a = call.View(1), b = call.View(2);
  call.ExpectRank(1, a, 3);
  call.ExpectRank(2, b, 3);
  ExpectInner(call, a, b);
  if (a.size(0) != b.size(0)) call.RejectArg(2, "has another batch than batch1");
  const auto product = [](Tensor& out, const Tensor& self, const Tensor& x, const Tensor& y,
                          const at::Scalar& beta, const at::Scalar& alpha) {
    // With beta 0 the library multiplies what the output held before by 0, NaN or not.
    if (beta.toComplexDouble() == 0.0) out.resize_({x.size(0), x.size(1), y.size(2)}).zero_();
    f::baddbmm_out(out, self, x, y, beta, alpha);
  };
  return BindAccumulating(call, 3, 4, {a.size(0), a.size(1), b.size(2)}, product);
}

std::unique_ptr<Kernel> BindAddbmm(const Call& call) {
  const Tensor a = call.View(1), b = call.View(2);
  call.ExpectRank(1, a, 3);
  call.ExpectRank(2, b, 3);
  ExpectInner(call, a, b);
  return BindAccumulating(call, 3, 4, {a.size(1), b.size(2)}, f::addbmm_out);
}

std::unique_ptr<Kernel> BindAddmv(const Call& call) {
  if (call.View(0).scalar_type() == at::kBool) call.RejectArg(0, "is of dtype Bool");
  const Tensor matrix = call.View(1), vector = call.View(2);
  call.ExpectRank(1, matrix, 2);
  call.ExpectRank(2, vector, 1);
  ExpectInner(call, matrix, vector);
  return BindAccumulating(call, 4, 3, {matrix.size(0)}, f::addmv_out);
}

std::unique_ptr<Kernel> BindAddr(const Call& call) {
  const Tensor a = call.View(1), b = call.View(2);
  call.ExpectRank(1, a, 1);
  call.ExpectRank(2, b, 1);
  const auto product = [](Tensor& out, const Tensor& self, const Tensor& x, const Tensor& y,
                          const at::Scalar& beta,
                          const at::Scalar& alpha) { at::addr_out(out, self, x, y, beta, alpha); };
  return BindAccumulating(call, 3, 4, {a.size(0), b.size(0)}, product);
}

std::unique_ptr<Kernel> BindMv(const Call& call) {
  const Operand matrix = call.In(0), vector = call.In(1);
  const Tensor out = call.Out(2);
  call.ExpectRank(0, matrix.view(), 2);
  call.ExpectRank(1, vector.view(), 1);
  ExpectPromotable(call, matrix, 1, vector, out, 2);
  ExpectInner(call, matrix.view(), vector.view());
  call.ExpectSizes(2, out, {matrix.view().size(0)});
  const at::ScalarType both = at::promote_types(matrix.dtype(), vector.dtype());
  Target target(out, both, Access::kFree, {&matrix.view(), &vector.view()});
  return MakeKernel([=] {
    target.Write([&](Tensor& result) { at::mv_out(result, matrix().to(both), vector().to(both)); });
  });
}

std::unique_ptr<Kernel> BindDot(const Call& call) {
  const Operand a = call.In(0), b = call.In(1);
  const Tensor out = call.Out(2);
  call.ExpectRank(0, a.view(), 1);
  call.ExpectSizes(1, b.view(), a.sizes());
  ExpectPromotable(call, a, 1, b, out, 2);
  call.ExpectSizes(2, out, {});
  const at::ScalarType both = at::promote_types(a.dtype(), b.dtype());
  return MakeKernel([=] { out.copy_(f::dot(a().to(both), b().to(both))); });
}

// (self, vec2, out): the outer product.
std::unique_ptr<Kernel> BindGer(const Call& call) {
  const Operand a = call.In(0), b = call.In(1);
  const Tensor out = call.Out(2);
  call.ExpectRank(0, a.view(), 1);
  call.ExpectRank(1, b.view(), 1);
  call.ExpectSizes(2, out, {a.sizes()[0], b.sizes()[0]});
  return MakeKernel([=] { out.copy_(at::outer(a(), b())); });
}

// (self, other, dim, out)
std::unique_ptr<Kernel> BindCross(const Call& call) {
  const Operand a = call.In(0), b = call.In(1);
  const Tensor out = call.Out(3);
  const std::vector<int64_t> sizes = call.Broadcast({a.sizes(), b.sizes()});
  const int64_t dim = call.Dim(2, static_cast<int64_t>(sizes.size()));
  if (sizes.empty() || sizes[dim] != 3) call.RejectArg(2, "is no dim of size 3");
  call.ExpectSizes(3, out, sizes);
  return MakeKernel([=] { out.copy_(at::linalg_cross(a(), b(), dim)); });
}

// (self, out)
std::unique_ptr<Kernel> BindTrace(const Call& call) {
  const Operand self = call.In(0);
  const Tensor out = call.Out(1);
  call.ExpectRank(0, self.view(), 2);
  call.ExpectSizes(1, out, {});
  // Truth values are counted.
  const bool counts = self.dtype() == at::kBool;
  return MakeKernel([=] { out.copy_(f::trace(counts ? self().to(at::kLong) : self())); });
}

// (mmWeightRef): moves a weight into blocks, in its own memory. From this phase on its handle says
// that it lies there in FRACTAL_NZ, as on a device.
std::unique_ptr<Kernel> BindTransMatmulWeight(const Call& call) {
  const Tensor weight = call.Out(0);
  aclTensor& described = call.Described(0);
  if (described.format != ACL_FORMAT_ND && described.format != ACL_FORMAT_UNDEFINED) {
    call.RejectArg(0, "is not in the format ND");
  }
  ExpectDtypes(call, 0, weight, {at::kHalf, at::kBFloat16, at::kChar});
  if (weight.dim() < 2 || weight.dim() > 6) call.RejectArg(0, "must have 2 to 6 dims");
  if (weight.numel() == 0) call.RejectArg(0, "is empty");
  aclTensor blocked = described;
  blocked.format = ACL_FORMAT_FRACTAL_NZ;
  blocked.strides.assign(weight.dim(), 1);
  for (int64_t i = weight.dim() - 1; i > 0; --i) {
    blocked.strides[i - 1] = blocked.strides[i] * weight.size(i);
  }
  acl::BlockedLayout layout;
  if (!BlocksOf(blocked, &layout)) call.RejectArg(0, "does not fit into blocks");
  blocked.storage_dims.assign(layout.dims, layout.dims + layout.rank);
  described = blocked;
  return MakeKernel([=] {
    const at::ScalarType bits = weight.element_size() == 1 ? at::kByte : at::kShort;
    const Tensor dense = weight.contiguous().clone().view(bits);
    WriteBlocks(weight.data_ptr(), layout, dense.view({layout.batch, layout.rows, layout.columns}));
  });
}

}  // namespace

KernelRows MatmulRows() {
  constexpr Widen kHalf = Widen::kHalf;
  return {
      {"aclnnMm", BindMm, kHalf},
      {"aclnnMatmul", BindMatmul, kHalf},
      {"aclnnBatchMatMul", BindBatchMatMul, kHalf},
      {"aclnnTransposeBatchMatMul", BindTransposeBatchMatMul, Widen::kHalfAndBfloat16},
      {"aclnnAddmm", kAlsoInPlace, BindAddmm, kHalf},
      {"aclnnGemm", BindGemm, Widen::kHalfAndBfloat16},
      {"aclnnBaddbmm", kAlsoInPlace, BindBaddbmm, kHalf},
      {"aclnnAddbmm", kAlsoInPlace, BindAddbmm, kHalf},
      {"aclnnAddmv", BindAddmv, kHalf},
      {"aclnnAddr", kAlsoInPlace, BindAddr},
      {"aclnnMv", BindMv, kHalf},
      {"aclnnDot", BindDot, kHalf},
      {"aclnnGer", BindGer},
      {"aclnnLinalgCross", BindCross, kHalf},
      {"aclnnTrace", BindTrace, Widen::kHalfAndBfloat16},
      {"aclnnTransMatmulWeight", BindTransMatmulWeight},
      {"aclnnMatmulWeightNz", BindMatmul, kHalf},
      {"aclnnBatchMatMulWeightNz", BindBatchMatMul, kHalf},
      {"aclnnAddmmWeightNz", BindAddmm, kHalf},
  };
}

}  // namespace acltape::opapi
