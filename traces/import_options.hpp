#pragma once
// How files are read that may be damaged or far too large.

#include <cstdint>
#include <string>

#include "common/byte_source.hpp"

namespace rubato {

/// How to read.
struct ImportOptions {
  bool partial = false;    ///< leave out what cannot be read, and say so in Capture::left_out
  std::string phase = {};  ///< of a server's capture, see only_phase(); empty: all of it
  std::uint64_t max_expanded_bytes = rubato::max_expanded_bytes;  ///< of content, against zip bombs
};

}  // namespace rubato
