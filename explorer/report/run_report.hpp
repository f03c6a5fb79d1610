#pragma once
// A run, an experiment or a captured run as one self-contained page: it opens from a file and makes
// no request.

#include <cstdint>
#include <string>
#include <string_view>

#include "explorer/results/plan_choice.hpp"
#include "explorer/results/store.hpp"

namespace rubato {

/// HTML with data, styles and scripts inside, of a run of any kind. Published results are drawn
/// beside a run in the published setting.
/// @param db  the path of the database, for lines to type
[[nodiscard]] std::string run_page(const ResultStore& store, const StoredRun& run,
                                   std::string_view db);

/// An experiment: small multiples over two axes, fronts, saving over switching latency, kernels,
/// and every unit with the coverage and error of its model.
/// @param experiment_id  of an existing experiment
[[nodiscard]] std::string experiment_page(const ResultStore& store,
                                          const std::string& experiment_id);

/// Of run_page: a trace, with its kernels at every clock.
[[nodiscard]] std::string trace_page(const ResultStore& store, std::int64_t run_id,
                                     std::string_view db);

/// Of run_page: several GPUs or stages. What to set, what that rests on, the clock of every kernel
/// or kind of pass, collectives of several ranks. A picture has time against energy of single
/// clocks, plans and the lower bound.
[[nodiscard]] std::string captured_page(const ResultStore& store, std::int64_t run_id,
                                        std::string_view db);

}  // namespace rubato
