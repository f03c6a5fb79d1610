#pragma once
// Documents of JSON's values, asked for everything.

#include "common/json.hpp"

namespace rubato::fuzz {

/// Asks the first values of a document for every type. A refusal is an answer; its text must hold
/// as everywhere.
void ask_for_all_types(const JsonDocument& document);

}  // namespace rubato::fuzz
