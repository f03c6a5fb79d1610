// Entry point: runs the program, turns errors into messages and exit statuses.

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>

#if __has_include(<malloc.h>)
#include <malloc.h>  // of glibc: mallopt
#endif
#if __has_include(<sys/mman.h>)
#include <sys/mman.h>  // madvise
#endif

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/process/interruption.hpp"
#include "tools/options/files.hpp"
#include "tools/program.hpp"
#include "tools/terminal/standard_error.hpp"
#include "tools/terminal/terminal.hpp"

namespace rubato {
namespace {

// Memory that one step of a fit or one unit of a sweep frees is allocated again by the next. In
// between glibc would give it back to the system, which then makes and clears every page again.
void keep_freed_memory() {
#if defined(M_TRIM_THRESHOLD) && defined(M_MMAP_THRESHOLD) && defined(M_TOP_PAD)
  constexpr int most_bytes = 32 << 20;  // the largest that glibc takes for M_MMAP_THRESHOLD
  mallopt(M_MMAP_THRESHOLD, most_bytes);
  mallopt(M_TRIM_THRESHOLD, 8 * most_bytes);
  mallopt(M_TOP_PAD, most_bytes / 2);
#endif
}

// The system makes a page when it is first touched (a page fault), which takes it tens of times
// longer than to make the page with its neighbours. So the first megabyte, which every command
// needs, is made at once.
void make_first_pages() {
#if defined(MADV_POPULATE_WRITE)
  constexpr std::size_t bytes = 1 << 20, page = 4096;
  void* const block = std::malloc(bytes);
  void* first = block;
  std::size_t left = bytes;
  if (std::align(page, bytes - page, first, left) != nullptr)
    (void)madvise(first, bytes - page, MADV_POPULATE_WRITE);  // if not, then one by one
  std::free(block);
#endif
}

}  // namespace
}  // namespace rubato

int main(int argc, char** argv) {
  using rubato::ExitStatus;
  rubato::keep_freed_memory();
  rubato::make_first_pages();
  rubato::handle_interruptions();
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is then an ordinary write error
  try {
    return static_cast<int>(rubato::run_program(argc, argv));
  } catch (const rubato::InterruptedError& interrupted) {
    rubato::tell("interrupted: {}\n", interrupted.what());
    return static_cast<int>(ExitStatus::interrupted);
  } catch (const rubato::Error& error) {
    rubato::clear_progress();
    std::fputs(rubato::with_input_named(error.report()).c_str(), stderr);
    return static_cast<int>(error.status());
  } catch (const std::bad_alloc&) {
    std::fputs("error: out of memory\n", stderr);
    return static_cast<int>(ExitStatus::io);
  } catch (const std::exception& error) {
    rubato::tell("error: a bug in rubato: {}\n  hint: please report the command and its input\n",
                 error.what());
    return static_cast<int>(ExitStatus::bug);
  }
}
