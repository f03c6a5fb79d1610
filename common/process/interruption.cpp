#include "common/process/interruption.hpp"

#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <string_view>

#include <unistd.h>

namespace rubato {

namespace {

// Signal handlers reach nothing but globals, and call only what POSIX lists as safe in them.
std::atomic<bool> asked = false;
std::atomic<bool> parts = false, tells = true;
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

struct Place {
  enum State { free, changing, used };
  std::atomic<int> state = free;
  std::array<char, PATH_MAX> path = {};
};
std::array<Place, 16> places;

constexpr unsigned patience_s = 1;

void say_from_handler(std::string_view text) {
  (void)!::write(STDERR_FILENO, text.data(), text.size());
}

[[noreturn]] void end_now() {
  for (Place& place : places) {
    if (place.state.load() != Place::used) continue;
    const std::string_view path(place.path.data());
    std::array<char, PATH_MAX + 16> name{};
    for (const std::string_view suffix : {"", "-wal", "-shm", "-journal"}) {
      std::memcpy(name.data(), path.data(), path.size());
      std::memcpy(name.data() + path.size(), suffix.data(), suffix.size());
      name[path.size() + suffix.size()] = '\0';
      ::unlink(name.data());
    }
  }
  ::_exit(static_cast<int>(ExitStatus::interrupted));
}

extern "C" void on_stop(int) {
  const int kept_error = errno;
  if (asked.exchange(true)) end_now();
  ::alarm(patience_s);
  errno = kept_error;
}

extern "C" void on_patience_over(int) {
  const int kept_error = errno;
  if (!parts.load()) {
    say_from_handler("interrupted: ended early; files that were not finished are as they were\n");
    end_now();
  }
  if (tells.load())
    say_from_handler("interrupted: ending what was begun; Ctrl-C again ends at once\n");
  errno = kept_error;
}

}  // namespace

void handle_interruptions() {
  std::signal(SIGALRM, on_patience_over);
  std::signal(SIGINT, on_stop);
  std::signal(SIGTERM, on_stop);
}

const std::atomic<bool>& stop_asked() noexcept { return asked; }

void give_parts(bool tell) noexcept {
  tells = tell;
  parts = true;
}

bool is_part() noexcept { return asked.load() && parts.load(); }
bool must_end() noexcept { return asked.load() && !parts.load(); }

void refuse_if_interrupted() {
  if (must_end())
    throw InterruptedError("ended early; files that were not finished are as they were");
}

int remove_when_ended(const std::filesystem::path& path) {
  const std::string name = std::filesystem::absolute(path).string();
  if (name.size() >= PATH_MAX) return -1;
  for (std::size_t i = 0; i < places.size(); ++i) {
    int expected = Place::free;
    if (!places[i].state.compare_exchange_strong(expected, Place::changing)) continue;
    std::memcpy(places[i].path.data(), name.c_str(), name.size() + 1);
    places[i].state = Place::used;
    return static_cast<int>(i);
  }
  return -1;
}

void forget_to_remove(int place) noexcept {
  if (place >= 0) places[static_cast<std::size_t>(place)].state = Place::free;
}

}  // namespace rubato
