#pragma once
// The contract of every reader: any bytes give a value or one of our errors, whose text can be
// shown. A broken contract ends the process, which libFuzzer and the test of the corpus report.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "common/error.hpp"

namespace rubato::fuzz {

/// What became of the last input.
enum class Outcome { accepted, refused };
[[nodiscard]] Outcome last_outcome() noexcept;
[[nodiscard]] const std::string& last_report() noexcept;  ///< of the error, if it was refused

/// Calls `read` with the bytes. An Error is an answer if its report is short and can be shown; any
/// other exception is not caught, so that the trace of the stack begins where it was thrown.
/// @return 0, what libFuzzer expects
int check(const std::uint8_t* data, std::size_t size,
          const std::function<void(std::string_view)>& read);

/// Prints the law that does not hold and ends the process.
[[noreturn]] void broken(std::string_view law);

inline void require(bool holds, std::string_view law) {
  if (!holds) broken(law);
}

/// What `call` gives; here even an Error breaks the law.
template <class Call>
auto must(std::string_view law, Call call) {
  try {
    return call();
  } catch (const Error& error) {
    broken(std::string(law) + ": " + error.report());
  }
}

/// The bytes as a file for readers that take a path; the next call overwrites it.
[[nodiscard]] const std::filesystem::path& as_file(std::string_view bytes);

}  // namespace rubato::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
