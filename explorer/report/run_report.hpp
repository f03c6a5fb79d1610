#pragma once
// A run, an experiment or a captured run as one self-contained page: it opens from a file and makes
// no request.

#include <cstdint>
#include <string>
#include <string_view>

#include "explorer/results/store.hpp"

namespace rubato {

/// HTML with data, styles and scripts inside. Published results are drawn beside
/// a run in the published setting.
/// @param run  an existing run_id
/// @param db   the path of the database, for lines to type
[[nodiscard]] std::string report_page(const ResultStore& store, std::int64_t run,
                                      std::string_view db);

/// An experiment: small multiples over two axes, fronts, saving over switching latency, kernels,
/// and every unit with the coverage and error of its model.
/// @param experiment_id  of an existing experiment
[[nodiscard]] std::string experiment_page(const ResultStore& store,
                                          const std::string& experiment_id);

/// A captured run and its plans: what to set, what that rests on, the clock of every kernel,
/// collectives of several ranks. A picture has time against energy of single clocks, plans and the
/// lower bound.
/// @param graph_run  an existing graph_run_id
/// @param db  the path of the database, for lines to type
[[nodiscard]] std::string captured_page(const ResultStore& store, std::int64_t graph_run,
                                        std::string_view db);

}  // namespace rubato
