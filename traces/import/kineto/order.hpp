#pragma once
// Where an event stands in a file says nothing.

#include "traces/import/kineto/events.hpp"

namespace rubato::kineto {

/// Puts events in order of their start, so that the same events say the same wherever they stand in
/// the file, and leaves one of those that are there twice, as in a file merged with itself. A file
/// merged of several processes keeps its order: it helps to tell them apart.
/// @return how much device work was there twice
std::size_t put_in_order(Events& events);

}  // namespace rubato::kineto
