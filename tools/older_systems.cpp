// Two functions that glibc 2.35 and libstdc++ of g++ 12 gave a new version, with the same results:
// taken in their old one, the program of a wheel runs with glibc 2.34 and libstdc++ of g++ 11 (RHEL
// 9). The linker's --wrap brings calls here.

#include <condition_variable>
#include <mutex>

__asm__(".symver hypot_of_2_2_5, hypot@GLIBC_2.2.5");
__asm__(
    ".symver wait_of_3_4_11, "
    "_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE@GLIBCXX_3.4.11");

using Lock = std::unique_lock<std::mutex>;

// NOLINTBEGIN(bugprone-reserved-identifier): names that the linker gives.
extern "C" {
double hypot_of_2_2_5(double a, double b);
void wait_of_3_4_11(std::condition_variable* condition, Lock* lock);
double __wrap_hypot(double a, double b);
void __wrap__ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE(
    std::condition_variable* condition, Lock* lock);

double __wrap_hypot(double a, double b) { return hypot_of_2_2_5(a, b); }
void __wrap__ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE(
    std::condition_variable* condition, Lock* lock) {
  wait_of_3_4_11(condition, lock);
}
}
// NOLINTEND(bugprone-reserved-identifier)
