#pragma once
// A trace as CSV: one row per launch of the compact form, in order. A kernel's
// figures stand in each of its rows and must be equal there.

#include <string>
#include <string_view>

#include "traces/trace.hpp"

namespace rubato {

/// Columns: segment, repeat, kernel, class, pass; optional: label, dtype, flops, dram_bytes, m, n,
/// k, gemm_batch, attention_batch, q_tokens, kv_tokens, heads, kv_heads, head_dim, causal,
/// collective, message_bytes, group_size, stride, measured_time_s, work_source. Empty cells are
/// unknown; an empty label is the kernel's name, and an empty work_source is `derived` beside FLOPs
/// or bytes. Consecutive rows with the same segment form one segment.
/// @throws DataError listing up to 20 problems with their lines
[[nodiscard]] Trace parse_trace_csv(std::string_view text, const std::string& name);

/// All columns. Provenance, conditions of the capture and launch shapes are not part of the form.
[[nodiscard]] std::string to_csv(const Trace& trace);

}  // namespace rubato
