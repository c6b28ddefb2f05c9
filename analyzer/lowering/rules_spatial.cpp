// Pooling, resampling, padding and rearrangement of images and volumes.
#include "analyzer/lowering/rules.h"

namespace acltape::analyzer::lowering {

const std::vector<LoweringRule>& SpatialRules() {
  static const std::vector<LoweringRule> rules = {
      // ---- pooling ----
      // The second result is a packed mask.
      {"max_pool2d_with_indices", "device",
       "aclnnMaxPool2dWithMask(self, kernel_size, or(stride, kernel_size), padding, dilation, "
       "ceil_mode, out0, out1)"},
      {"max_pool2d_with_indices_backward", "device",
       "aclnnMaxPool2dWithMaskBackward(grad_output, self, indices, kernel_size, "
       "or(stride, kernel_size), padding, dilation, ceil_mode, out)"},
      {"max_pool2d_with_indices", "",
       "aclnnMaxPool2dWithIndices(self, kernel_size, or(stride, kernel_size), padding, dilation, "
       "ceil_mode, out0, out1)"},
      {"max_pool2d_with_indices_backward", "",
       "aclnnMaxPool2dWithIndicesBackward(grad_output, self, indices, kernel_size, "
       "or(stride, kernel_size), padding, dilation, ceil_mode, out)"},
      {"avg_pool2d", "",
       "aclnnAvgPool2d(self, kernel_size, or(stride, kernel_size), padding, ceil_mode, "
       "count_include_pad, or(divisor_override, 0), 0, out)"},
      {"avg_pool2d_backward", "",
       "aclnnAvgPool2dBackward(grad_output, self, kernel_size, or(stride, kernel_size), padding, "
       "ceil_mode, count_include_pad, or(divisor_override, 0), 0, out)"},
      {"_adaptive_avg_pool2d", "", "aclnnAdaptiveAvgPool2d(self, output_size, out)"},
      {"_adaptive_avg_pool2d_backward", "",
       "aclnnAdaptiveAvgPool2dBackward(grad_output, self, out)"},
      {"adaptive_max_pool2d", "", "aclnnAdaptiveMaxPool2d(self, output_size, out0, out1)"},
      {"adaptive_max_pool2d_backward", "",
       "aclnnAdaptiveMaxPool2dBackward(grad_output, self, indices, out)"},
      {"max_pool3d_with_indices", "",
       "aclnnMaxPool3dWithArgmax(self, kernel_size, or(stride, kernel_size), padding, dilation, "
       "ceil_mode, out0, out1)"},
      {"max_pool3d_with_indices_backward", "",
       "aclnnMaxPool3dWithArgmaxBackward(grad_output, self, indices, kernel_size, "
       "or(stride, kernel_size), padding, dilation, ceil_mode, out)"},
      {"avg_pool3d", "",
       "aclnnAvgPool3d(self, kernel_size, or(stride, kernel_size), padding, ceil_mode, "
       "count_include_pad, or(divisor_override, 0), out)"},
      {"avg_pool3d_backward", "",
       "aclnnAvgPool3dBackward(grad_output, self, kernel_size, or(stride, kernel_size), padding, "
       "ceil_mode, count_include_pad, or(divisor_override, 0), out)"},
      {"_adaptive_avg_pool3d", "", "aclnnAdaptiveAvgPool3d(self, output_size, out)"},
      {"_adaptive_avg_pool3d_backward", "",
       "aclnnAdaptiveAvgPool3dBackward(grad_output, self, out)"},
      {"adaptive_max_pool3d", "", "aclnnAdaptiveMaxPool3d(self, output_size, out0, out1)"},
      {"adaptive_max_pool3d_backward", "",
       "aclnnAdaptiveMaxPool3dBackward(grad_output, self, indices, out)"},

      // ---- resampling; a scale of 0 stands for none ----
      {"upsample_nearest2d", "-scales_h", "aclnnUpsampleNearest2d(self, output_size, out)"},
      {"upsample_nearest2d.vec", "-scale_factors",
       "aclnnUpsampleNearest2d(input, output_size, out)"},
      {"upsample_bilinear2d.vec", "-scale_factors",
       "aclnnUpsampleBilinear2d(input, output_size, align_corners, 0.0, 0.0, out)"},
      {"upsample_bilinear2d", "",
       "aclnnUpsampleBilinear2d(self, output_size, align_corners, or(scales_h, 0.0), "
       "or(scales_w, 0.0), out)"},
      {"upsample_nearest2d", "",
       "aclnnUpsampleNearest2dV2(self, output_size, or(scales_h, 0.0), or(scales_w, 0.0), out)"},
      {"upsample_nearest1d", "",
       "aclnnUpsampleNearest1dV2(self, output_size, or(scales, 0.0), out)"},
      {"upsample_nearest3d", "",
       "aclnnUpsampleNearest3d(self, output_size, or(scales_d, 0.0), or(scales_h, 0.0), "
       "or(scales_w, 0.0), out)"},
      {"_upsample_nearest_exact2d", "",
       "aclnnUpsampleNearestExact2d(self, output_size, or(scales_h, 0.0), or(scales_w, 0.0), out)"},
      {"upsample_linear1d", "",
       "aclnnUpsampleLinear1d(self, output_size, align_corners, or(scales, 0.0), out)"},
      {"upsample_bicubic2d", "",
       "aclnnUpsampleBicubic2d(self, output_size, align_corners, or(scales_h, 0.0), or(scales_w, "
       "0.0), out)"},
      {"_upsample_bilinear2d_aa", "",
       "aclnnUpsampleBilinear2dAA(self, output_size, align_corners, or(scales_h, 0.0), "
       "or(scales_w, 0.0), out)"},
      {"upsample_trilinear3d", "",
       "aclnnUpsampleTrilinear3d(self, output_size, align_corners, or(scales_d, 0.0), or(scales_h, "
       "0.0), or(scales_w, 0.0), out)"},
      {"upsample_nearest1d_backward", "",
       "aclnnUpsampleNearest1dBackward(grad_output, output_size, input_size, or(scales, 0.0), "
       "out)"},
      {"upsample_nearest2d_backward", "",
       "aclnnUpsampleNearest2dBackward(grad_output, output_size, input_size, or(scales_h, 0.0), "
       "or(scales_w, 0.0), out)"},
      {"upsample_nearest3d_backward", "",
       "aclnnUpsampleNearest3dBackward(grad_output, output_size, input_size, or(scales_d, 0.0), "
       "or(scales_h, 0.0), or(scales_w, 0.0), out)"},
      {"_upsample_nearest_exact2d_backward", "",
       "aclnnUpsampleNearestExact2dBackward(grad_output, output_size, input_size, or(scales_h, "
       "0.0), or(scales_w, 0.0), out)"},
      {"upsample_linear1d_backward", "",
       "aclnnUpsampleLinear1dBackward(grad_output, output_size, input_size, align_corners, "
       "or(scales, 0.0), out)"},
      {"upsample_bilinear2d_backward", "",
       "aclnnUpsampleBilinear2dBackwardV2(grad_output, output_size, input_size, align_corners, "
       "or(scales_h, 0.0), or(scales_w, 0.0), out)"},
      {"upsample_bicubic2d_backward", "",
       "aclnnUpsampleBicubic2dBackward(grad_output, output_size, input_size, align_corners, "
       "or(scales_h, 0.0), or(scales_w, 0.0), out)"},
      {"_upsample_bilinear2d_aa_backward", "",
       "aclnnUpsampleBilinear2dAABackward(grad_output, output_size, input_size, align_corners, "
       "or(scales_h, 0.0), or(scales_w, 0.0), out)"},
      {"upsample_trilinear3d_backward", "",
       "aclnnUpsampleTrilinear3dBackward(grad_output, output_size, input_size, align_corners, "
       "or(scales_d, 0.0), or(scales_h, 0.0), or(scales_w, 0.0), out)"},

      // ---- samples at given places ----
      {"grid_sampler_2d", "",
       "aclnnGridSampler2D(input, grid, interpolation_mode, padding_mode, align_corners, out)"},
      {"grid_sampler_2d_backward", "",
       "aclnnGridSampler2DBackward(grad_output, input, grid, interpolation_mode, padding_mode, "
       "align_corners, output_mask, out0, out1)"},
      {"affine_grid_generator", "", "aclnnAffineGrid(theta, size, align_corners, out)"},

      // ---- padding and unfolding ----
      {"constant_pad_nd", "", "aclnnConstantPadNd(self, pad, value, out)"},
      {"reflection_pad1d", "", "aclnnReflectionPad1d(self, padding, out)"},
      {"reflection_pad2d", "", "aclnnReflectionPad2d(self, padding, out)"},
      {"im2col", "", "aclnnIm2col(self, kernel_size, dilation, padding, stride, out)"},
      {"reflection_pad3d", "", "aclnnReflectionPad3d(self, padding, out)"},
      {"reflection_pad1d_backward", "",
       "aclnnReflectionPad1dBackward(grad_output, self, padding, out)"},
      {"reflection_pad2d_backward", "",
       "aclnnReflectionPad2dBackward(grad_output, self, padding, out)"},
      {"reflection_pad3d_backward", "",
       "aclnnReflectionPad3dBackward(grad_output, self, padding, out)"},
      {"replication_pad1d", "", "aclnnReplicationPad1d(self, padding, out)"},
      {"replication_pad2d", "", "aclnnReplicationPad2d(self, padding, out)"},
      {"replication_pad3d", "", "aclnnReplicationPad3d(self, padding, out)"},
      {"replication_pad1d_backward", "",
       "aclnnReplicationPad1dBackward(grad_output, self, padding, out)"},
      {"replication_pad2d_backward", "",
       "aclnnReplicationPad2dBackward(grad_output, self, padding, out)"},
      {"replication_pad3d_backward", "",
       "aclnnReplicationPad3dBackward(grad_output, self, padding, out)"},
      {"col2im", "",
       "aclnnIm2colBackward(self, output_size, kernel_size, dilation, padding, stride, out)"},
      {"unfold_backward", "", "aclnnUnfoldGrad(grad_in, input_sizes, dim, size, step, out)"},
      {"pixel_shuffle", "",
       "aclnnInplaceCopy(blocks(out, upscale_factor), planes(self, upscale_factor))"},
      {"pixel_unshuffle", "",
       "aclnnInplaceCopy(planes(out, downscale_factor), blocks(self, downscale_factor))"},
      {"channel_shuffle", "", "aclnnChannelShuffle(self, groups, out)"},
  };
  return rules;
}

}  // namespace acltape::analyzer::lowering
