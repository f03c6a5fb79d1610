#pragma once
// A user's own defaults: gpu, db and prices in rubato.toml.

#include <optional>
#include <string>
#include <string_view>

namespace rubato {

/// What $XDG_CONFIG_HOME/rubato.toml (~/.config/rubato.toml) says of "gpu", "db" or "prices", each
/// as its option takes it. Says on standard error, once, that it is used.
/// @throws DataError naming file and line for what is no such default
[[nodiscard]] std::optional<std::string> user_default(std::string_view key);

/// The GPU of whoever names none: the user's, else rtx-3080-ti.
[[nodiscard]] std::string usual_gpu();

}  // namespace rubato
