#pragma once
// Laws that hold for whatever an importer of captures reads.

#include <functional>
#include <string_view>

#include "traces/import/readers.hpp"

namespace rubato::fuzz {

using Importer = std::function<Capture(const std::filesystem::path&, const ImportOptions&)>;

/// Imports the bytes with and without `partial`: what needs no leave is the same with it. A capture
/// keeps the promises of its types, and the trace made from it can be written and read again.
/// @throws Error as the importer without `partial`
void check_capture(std::string_view bytes, const Importer& import);

}  // namespace rubato::fuzz
