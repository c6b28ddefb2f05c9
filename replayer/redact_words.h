// The words that stay in a redacted trace. Any other text that a program or a tool chose is taken
// out, so a word that is missing here costs a replay its argument and reveals nothing.
#pragma once

#include <string_view>

namespace acltape::replayer {

// The words by which operators of PyTorch and of the device choose what they do.
inline constexpr std::string_view kOptionWords[] = {
    // PyTorch
    "N", "L", "R", "T", "U", "V", "add", "amax", "amin", "area", "backward", "bicubic", "bilinear",
    "border", "ceil", "circular", "complete", "constant", "floor", "forward", "fro", "gels",
    "gelsd", "gelss", "gelsy", "gesvd", "gesvda", "gesvdj", "higher", "ij", "left", "linear",
    "lower", "max", "mean", "midpoint", "min", "multiply", "nearest", "nearest-exact", "none",
    "nuc", "ortho", "prod", "r", "reduced", "reflect", "replace", "replicate", "right", "round",
    "same", "sum", "tanh", "trilinear", "trunc", "valid", "xy", "zeros",
    // the device
    "A2A", "AllReduce", "CALCULATED", "NCDHW", "NCHW", "NCL", "NDHWC", "NHWC", "Norm",
    "PA_BLK_BNSD", "PA_BLK_NZ", "PA_BNSD", "PA_BSND", "PA_NZ", "REDIRECTIONAL", "SAME",
    "UNIDIRECTIONAL", "VALID", "aiv", "batchmean", "ccu", "columns", "default", "div", "dynamic",
    "erf", "fastgelu", "fullmesh", "fullmesh_v1", "fullmesh_v2", "geglu", "gelu", "gelu_erf",
    "gelu_tanh", "half", "hierarchy", "hybrid", "ifjo", "indices", "interleave", "iof", "iou",
    "mul", "permute", "perchannel", "pergroup", "pertensor", "pertoken", "quarter", "reglu", "relu",
    "rint", "rows", "sigmoid", "silu", "softmax", "static", "sub", "subtraction", "swiglu",
    "update"};

// Words of layouts such as "BSND" and "BNSD_NBSD" have no other letters.
inline constexpr std::string_view kLayoutLetters = "ABDHNPSTZ_";

// The kinds of memory that a device is named by, alone or with a number: "cpu", "npu:0".
inline constexpr std::string_view kDeviceWords[] = {"cpu", "cuda",          "hpu", "meta", "mps",
                                                    "npu", "privateuseone", "xla", "xpu"};

// The kinds of rows of the ledger that acltape writes.
inline constexpr std::string_view kLedgerKinds[] = {"arguments_too_long",
                                                    "buffer_without_birth",
                                                    "calls_missing",
                                                    "device_clock_set",
                                                    "device_not_waited_for",
                                                    "device_time_missing",
                                                    "device_value_not_kept",
                                                    "engine_steps_not_followed",
                                                    "frame_end_alone",
                                                    "freed_memory",
                                                    "function_missing",
                                                    "higher_order_operators",
                                                    "inductor_not_followed",
                                                    "late_change",
                                                    "launch_without_first_phase",
                                                    "left_out",
                                                    "malformed_record",
                                                    "memory_not_known",
                                                    "modules_not_followed",
                                                    "no_host_memory",
                                                    "no_operators",
                                                    "no_steps",
                                                    "oldest_dropped",
                                                    "opaque_kernel",
                                                    "operator_not_in_table",
                                                    "outside_block",
                                                    "payload_damaged",
                                                    "payload_incomplete",
                                                    "payload_missing",
                                                    "process_outlived",
                                                    "processes_not_attached",
                                                    "processes_unanswered",
                                                    "processes_without_number",
                                                    "program_killed",
                                                    "range_end_alone",
                                                    "read_past_block",
                                                    "recorder_killed",
                                                    "recorder_stall",
                                                    "recording_stopped",
                                                    "records_dropped",
                                                    "rings_not_mapped",
                                                    "sampled_check",
                                                    "strict_device",
                                                    "threads_without_ring",
                                                    "threads_without_slot",
                                                    "torch_allocator",
                                                    "torch_kit_missing",
                                                    "torch_plugin_failed",
                                                    "torch_plugin_refused",
                                                    "unfinished_call",
                                                    "unknown_record",
                                                    "unprotected",
                                                    "unwritten_read",
                                                    "value_not_kept",
                                                    "write_past_block"};

inline constexpr std::string_view kQuirks[] = {"batch_norm_writes_statistics",
                                               "frame_time_at_begin", "overwriting_is_out"};
inline constexpr std::string_view kFoundBy[] = {"optimizer", "period"};
inline constexpr std::string_view kDependencies[] = {"RAW",   "WAR",  "WAW",
                                                     "event", "host", "stream"};
inline constexpr std::string_view kScopeKinds[] = {"module", "user"};
inline constexpr std::string_view kCaptureModes[] = {"global", "relaxed", "thread_local"};

}  // namespace acltape::replayer
