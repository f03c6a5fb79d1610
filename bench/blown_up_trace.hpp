#pragma once
// Large profiler traces for benchmarks, made of small real ones.

#include <cstdint>
#include <filesystem>

namespace rubato {

/// A Kineto file, plain or gzip, whose events are written again and again as they are, but for
/// times and ids, which go on where the copy before ends: what a longer run of the same program
/// records.
/// @param bytes  about the size of `to`
/// @throws IoError; DataError if `from` is no such file
void blow_up_trace(const std::filesystem::path& from, const std::filesystem::path& to,
                   std::uint64_t bytes);

}  // namespace rubato
