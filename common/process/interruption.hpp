#pragma once
// Ctrl-C and SIGTERM, for the process as a whole: a signal knows no more of a program than that.
//
// The first one asks to stop. A command that gives parts of an answer then ends its search, and
// gives what is finished; every other command is ended within a second. The second one ends the
// program at once. Whatever is written is written beside its target first (file.hpp), or in a
// transaction (sqlite.hpp), so that the program may end at any moment.

#include <atomic>
#include <filesystem>
#include <string>

#include "common/error.hpp"

namespace rubato {

/// The user asked to stop, and there is no answer. `what()` says what became of it.
class InterruptedError : public Error {
 public:
  explicit InterruptedError(const std::string& what) : Error(ExitStatus::interrupted, what, {}) {}
};

/// From here on SIGINT and SIGTERM ask to stop, as above.
void handle_interruptions();

/// Set when the user asked to stop.
[[nodiscard]] const std::atomic<bool>& stop_asked() noexcept;

/// From here on the command gives parts of its answer when it is stopped: it ends by itself, and
/// output is marked as a part.
/// @param tell  after a second, that the program still works
void give_parts(bool tell = true) noexcept;

/// Whether what is given now is part of what was asked.
[[nodiscard]] bool is_part() noexcept;

/// Whether the user asked to stop a command that gives no parts.
[[nodiscard]] bool must_end() noexcept;

/// Called before anything is given. @throws InterruptedError if must_end()
void refuse_if_interrupted();

/// Remembers a file to remove if the program is ended by a signal, with what SQLite puts beside it.
/// @return a place to forget; negative if there is no room for more
[[nodiscard]] int remove_when_ended(const std::filesystem::path& path);
void forget_to_remove(int place) noexcept;

}  // namespace rubato
