#pragma once
// Captured runs from the files of other tools. docs/trace-import.md.

#include <filesystem>

#include "traces/capture.hpp"
#include "traces/import_options.hpp"

namespace rubato {

/// What a file is, by its content.
enum class CaptureFormat {
  kineto,
  nsight_systems,
  nsight_compute,
  chakra_protobuf,
  chakra_json,
  pipeline_passes,
  rubato_capture,  ///< files/capture_json.hpp
  rubato_json,     ///< files/trace_json.hpp
  rubato_csv       ///< files/trace_csv.hpp
};

/// Rubato's own traces: the compact form of one step, which need not have times.
[[nodiscard]] constexpr bool is_trace(CaptureFormat value) noexcept {
  return value == CaptureFormat::rubato_json || value == CaptureFormat::rubato_csv;
}
[[nodiscard]] std::string_view name_of(CaptureFormat value) noexcept;

/// Format of a file.
/// @throws IoError; DataError with a hint for what is not a capture, and for a .nsys-rep
[[nodiscard]] CaptureFormat capture_format(const std::filesystem::path& path);

/// Reads a file of any known format. Traces of ours become one stream without gaps; where they
/// have no times, all durations are 0 and Capture::left_out says so.
/// @throws IoError, DataError naming the place, with `partial` only if nothing can be used; what
///         only_phase() throws
[[nodiscard]] Capture import_capture(const std::filesystem::path& path,
                                     const ImportOptions& options = {});

/// One of Rubato's own traces, plain or gzip.
/// @throws IoError, DataError
[[nodiscard]] Trace import_trace(const std::filesystem::path& path, const ImportOptions& options);

/// PyTorch profiler (Kineto) trace, plain or gzip, NVIDIA or ROCm, any time base.
[[nodiscard]] Capture import_kineto(const std::filesystem::path& path,
                                    const ImportOptions& options);

/// Chakra execution trace, length-delimited protobuf.
[[nodiscard]] Capture import_chakra_protobuf(const std::filesystem::path& path,
                                             const ImportOptions& options);

/// Chakra execution trace as JSON: the feeder's, or PyTorch's with or without device nodes. Without
/// device nodes, operators are taken for launches: they have no times, and their work comes from
/// shapes.
[[nodiscard]] Capture import_chakra_json(const std::filesystem::path& path,
                                         const ImportOptions& options);

/// Whether a line is the header of a CSV of Nsight Compute, as written or as spreadsheet programs
/// save it.
[[nodiscard]] bool is_nsight_compute_header(std::string_view line);

/// CSV of Nsight Compute, raw page or one line per metric (names or the labels of the details
/// page). DRAM bytes and FLOPs are those counted by the hardware.
[[nodiscard]] Capture import_nsight_compute(const std::filesystem::path& path,
                                            const ImportOptions& options);

/// Start and end of every pass of one pipeline stage, as Primus writes them (pp_rank_N.json, plain
/// or gzip; the rank from the name). Each iteration is a step named as in the file, and time begins
/// anew in each. Stages run 1F1B; what they send each other are launches without a duration.
[[nodiscard]] Capture import_pipeline_passes(const std::filesystem::path& path,
                                             const ImportOptions& options);

/// SQLite export of Nsight Systems.
[[nodiscard]] Capture import_nsight_systems(const std::filesystem::path& path,
                                            const ImportOptions& options);

}  // namespace rubato
