// Creation, copies, indexing and rearrangement.
#include "analyzer/lowering/rules.h"

namespace acltape::analyzer::lowering {

const std::vector<LoweringRule>& DataRules() {
  static const std::vector<LoweringRule> rules = {
      // ---- creation ----
      {"zeros", "", "aclnnInplaceZero(out)"},
      {"zeros_like", "", "aclnnInplaceZero(out)"},
      {"new_zeros", "", "aclnnInplaceZero(out)"},
      {"zero", "", "aclnnInplaceZero(out)", kAlsoIntoSelf},
      {"_efficientzerotensor", "", "aclnnInplaceZero(out)"},
      {"ones", "", "aclnnInplaceOne(out)"},
      {"ones_like", "", "aclnnInplaceOne(out)"},
      {"new_ones", "", "aclnnInplaceOne(out)"},
      {"full", "", "aclnnInplaceFillScalar(out, fill_value)"},
      {"full_like", "", "aclnnInplaceFillScalar(out, fill_value)"},
      {"new_full", "", "aclnnInplaceFillScalar(out, fill_value)"},
      {"scalar_tensor", "", "aclnnInplaceFillScalar(out, s)"},
      {"fill_.Tensor", "", "aclnnInplaceFillTensor(self, value)"},
      {"fill.Scalar", "", "aclnnInplaceFillScalar(out, value)", kAlsoIntoSelf},
      {"arange", "", "aclnnArange(0, end, 1, out)"},
      {"arange.start", "", "aclnnArange(start, end, 1, out)"},
      {"arange.start_step", "", "aclnnArange(start, end, step, out)"},
      {"arange.out", "", "aclnnArange(0, end, 1, out)"},
      {"arange.start_out", "", "aclnnArange(start, end, step, out)"},
      {"linspace", "", "aclnnLinspace(start, end, or(steps, 100), out)"},
      {"logspace", "", "aclnnLogSpace(start, end, steps, base, out)"},
      {"eye", "", "aclnnEye(n, n, out)"},
      {"eye.m", "", "aclnnEye(n, m, out)"},
      {"triu", "", "aclnnTriu(self, diagonal, out)", kAlsoInPlace},
      {"tril", "", "aclnnTril(self, diagonal, out)", kAlsoInPlace},

      // ---- copies and conversions ----
      {"copy", "", "aclnnInplaceCopy(out, src)", kAlsoIntoSelf},
      {"clone", "", "aclnnInplaceCopy(out, self)"},
      {"contiguous", "", "aclnnInplaceCopy(out, self)"},
      {"lift_fresh_copy", "", "aclnnInplaceCopy(out, self)"},
      {"_to_copy", "dtype self=out", "aclnnInplaceCopy(out, self)"},
      {"_to_copy", "", "aclnnCast(self, dtype(out), out)"},

      // ---- masks and selection ----
      {"masked_fill.Scalar", "",
       "aclnnInplaceCopy(out, self); aclnnInplaceMaskedFillScalar(out, mask, value)",
       kAlsoIntoSelf},
      {"masked_fill.Tensor", "",
       "aclnnInplaceCopy(out, self); aclnnInplaceMaskedFillTensor(out, mask, value)",
       kAlsoIntoSelf},
      {"masked_select", "",
       "aclnnMaskedSelect(self, mask, selected(out, self, mask)); "
       "aclnnInplaceCopy(out, slice(selected(out, self, mask), 0, 0, size(out, 0), 1))"},
      {"masked_scatter", "",
       "aclnnInplaceCopy(out, self); aclnnInplaceMaskedScatter(out, mask, source)", kAlsoIntoSelf},
      {"nonzero", "",
       "aclnnNonzero(self, found(self)); "
       "aclnnInplaceCopy(out, slice(found(self), 0, 0, size(out, 0), 1))"},
      // Results that nobody asked for are empty.
      {"_unique2", "return_inverse=true,return_counts=true",
       "aclnnUnique2(self, sorted, true, true, distinct(self), out1, counts(self)); "
       "aclnnInplaceCopy(out0, slice(distinct(self), 0, 0, size(out0, 0), 1)); "
       "aclnnInplaceCopy(out2, slice(counts(self), 0, 0, size(out2, 0), 1))"},
      {"_unique2", "return_counts=true",
       "aclnnUnique2(self, sorted, false, true, distinct(self), positions(self), counts(self)); "
       "aclnnInplaceCopy(out0, slice(distinct(self), 0, 0, size(out0, 0), 1)); "
       "aclnnInplaceCopy(out2, slice(counts(self), 0, 0, size(out2, 0), 1))"},
      {"_unique2", "return_inverse=true",
       "aclnnUnique2(self, sorted, true, false, distinct(self), out1, counts(self)); "
       "aclnnInplaceCopy(out0, slice(distinct(self), 0, 0, size(out0, 0), 1))"},
      {"_unique2", "",
       "aclnnUnique2(self, sorted, false, false, distinct(self), positions(self), counts(self)); "
       "aclnnInplaceCopy(out0, slice(distinct(self), 0, 0, size(out0, 0), 1))"},
      // 1000 stands for all dimensions.
      {"unique_consecutive", "-dim,return_inverse=true,return_counts=true",
       "aclnnUniqueConsecutive(self, true, true, 1000, distinct(self), out1, counts(self)); "
       "aclnnInplaceCopy(out0, slice(distinct(self), 0, 0, size(out0, 0), 1)); "
       "aclnnInplaceCopy(out2, slice(counts(self), 0, 0, size(out2, 0), 1))"},
      {"unique_consecutive", "-dim,return_counts=true",
       "aclnnUniqueConsecutive(self, false, true, 1000, distinct(self), positions(self), "
       "counts(self)); "
       "aclnnInplaceCopy(out0, slice(distinct(self), 0, 0, size(out0, 0), 1)); "
       "aclnnInplaceCopy(out2, slice(counts(self), 0, 0, size(out2, 0), 1))"},
      {"unique_consecutive", "-dim,return_inverse=true",
       "aclnnUniqueConsecutive(self, true, false, 1000, distinct(self), out1, counts(self)); "
       "aclnnInplaceCopy(out0, slice(distinct(self), 0, 0, size(out0, 0), 1))"},
      {"unique_consecutive", "-dim",
       "aclnnUniqueConsecutive(self, false, false, 1000, distinct(self), positions(self), "
       "counts(self)); "
       "aclnnInplaceCopy(out0, slice(distinct(self), 0, 0, size(out0, 0), 1))"},
      {"where.self", "", "aclnnSWhere(condition, num(self, other), num(other, self), out)"},

      // ---- indexing ----
      {"index.Tensor", "", "aclnnIndex(self, indices(indices), out)"},
      {"_index_put_impl_", "",
       "aclnnIndexPutImpl(self, indices(indices), values, accumulate, unsafe)"},
      {"index_put", "",
       "aclnnInplaceCopy(out, self); "
       "aclnnIndexPutImpl(out, indices(indices), values, accumulate, false)",
       kAlsoIntoSelf},
      {"index_select", "", "aclnnIndexSelect(self, dim, index, out)"},
      {"index_copy", "",
       "aclnnInplaceCopy(out, self); aclnnInplaceIndexCopy(out, dim, index, source)",
       kAlsoIntoSelf},
      {"index_add", "", "aclnnIndexAdd(self, dim, index, source, alpha, out)", kAlsoIntoSelf},
      {"index_fill.int_Scalar", "", "aclnnIndexFill(self, dim, index, value, out)", kAlsoInPlace},
      {"gather", "", "aclnnGather(self, dim, index, out)"},
      {"scatter.src", "", "aclnnScatter(self, dim, index, src, 0, out)", kAlsoInPlace},
      {"scatter.value", "", "aclnnScatterValue(self, dim, index, value, 0, out)", kAlsoInPlace},
      {"scatter_add", "", "aclnnScatterAdd(self, dim, index, src, out)", kAlsoIntoSelf},
      {"scatter_reduce.two", "",
       "aclnnScatterReduce(self, dim, index, src, pick(reduce, 'sum', 1, 'prod', 2, 'amax', 3, "
       "'amin', 4, 'mean', 5), include_self, out)"},
      {"put", "", "aclnnInplaceCopy(out, self); aclnnInplacePut(out, index, source, accumulate)",
       kAlsoIntoSelf},
      {"one_hot", "", "aclnnOneHot(self, size(out, -1), ones(out, 1), zeros(out, 1), -1, out)"},
      {"take", "", "aclnnTake(self, index, out)"},
      {"searchsorted.Tensor", "side=right",
       "aclnnSearchSorted(sorted_sequence, self, out_int32, true, sorter, out)"},
      {"searchsorted.Tensor", "",
       "aclnnSearchSorted(sorted_sequence, self, out_int32, right, sorter, out)"},
      {"bucketize.Tensor", "", "aclnnBucketize(self, boundaries, out_int32, right, out)"},

      // ---- rearrangement ----
      {"cat", "", "aclnnCat(tensors, dim, out)"},
      {"_cat", "", "aclnnCat(tensors, dim, out)"},
      {"stack", "", "aclnnStack(tensors, dim, out)"},
      {"_chunk_cat", "", "aclnnChunkCat(tensors, dim, num_chunks, out)"},
      {"repeat", "", "aclnnRepeat(self, repeats, out)"},
      {"repeat_interleave.self_int", "-dim",
       "aclnnRepeatInterleaveInt(self, repeats, size(out, 0), out)"},
      {"repeat_interleave.self_int", "",
       "aclnnRepeatInterleaveIntWithDim(self, repeats, dim, size(out, dim), out)"},
      {"repeat_interleave.self_Tensor", "-dim",
       "aclnnRepeatInterleave(self, repeats, size(out, 0), out)"},
      {"repeat_interleave.self_Tensor", "",
       "aclnnRepeatInterleaveWithDim(self, repeats, dim, size(out, dim), out)"},
      {"flip", "", "aclnnFlip(self, dims, out)"},
      {"roll", "", "aclnnRoll(self, shifts, dims, out)"},
      {"diag_embed", "",
       "aclnnInplaceZero(out); aclnnInplaceCopy(diagonal(out, offset, dim1, dim2), self)"},
      {"diagonal_copy", "", "aclnnInplaceCopy(out, diagonal(self, offset, dim1, dim2))"},
      {"diagonal_backward", "",
       "aclnnInplaceZero(out); aclnnInplaceCopy(diagonal(out, offset, dim1, dim2), grad_output)"},
      {"fill_diagonal_", "", "aclnnInplaceFillDiagonal(self, fill_value, wrap)"},
      // Forward results of these share storage, so only the gradients compute something.
      {"select_backward", "",
       "aclnnInplaceZero(out); aclnnInplaceCopy(select(out, dim, index), "
       "grad_output)"},
      {"slice_backward", "",
       "aclnnInplaceZero(out); aclnnInplaceCopy(slice(out, dim, start, end, "
       "step), grad_output)"},
  };
  return rules;
}

}  // namespace acltape::analyzer::lowering
