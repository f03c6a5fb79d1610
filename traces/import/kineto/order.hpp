#pragma once
// Where an event stands in a file says nothing.

#include "traces/import/kineto/events.hpp"

namespace rubato::kineto {

/// Puts events in order of their start, so that the same events say the same wherever they stand in
/// the file. A file merged of several processes keeps its order: it helps to tell them apart.
void put_in_order(Events& events);

}  // namespace rubato::kineto
