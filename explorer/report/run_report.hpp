#pragma once
// A run or an experiment as one self-contained page: it opens from a file and makes no request.

#include <cstdint>
#include <string>
#include <string_view>

#include "explorer/results/store.hpp"

namespace rubato {

/// HTML with data, styles and scripts inside, of a run of any kind. Published results are drawn
/// beside a run in the published setting.
/// @param db  the path of the database, for lines to type
[[nodiscard]] std::string run_page(const ResultStore& store, std::int64_t run_id,
                                   std::string_view db);

/// The same of an experiment: its best unit, fronts, saving over switching latency, kernels, and
/// every unit with the coverage and error of its model.
/// @param experiment_id  of an existing experiment
[[nodiscard]] std::string experiment_page(const ResultStore& store,
                                          const std::string& experiment_id);

/// All runs that somebody asked for, and all experiments. Links of rows lead to "run/N" and
/// "experiment/ID" beside the page: `rubato serve` answers them.
[[nodiscard]] std::string index_page(const ResultStore& store, std::string_view db);

}  // namespace rubato
