/* A simulated machine with GPUs behind NVML's own functions, for tests: libnvidia-ml.so.1 as rubato.nvml loads it.
 *
 * All state lies in one file mapped by every process (RUBATO_SIM_STATE), under a robust mutex, so that what a killed
 * process set stays set, as on a card. A GPU is a queue of kernels, played at the clocks in force: each kernel has a time
 * and a power at each clock pair (from the model of rubato), and idle power at each. Requests take effect after a latency,
 * one after the other. Time is that of the machine, or virtual: then it stands still but for sim_sleep.
 *
 * sim.py makes the file and is the only one that calls sim_*.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { most_gpus = 8, most_clocks = 256, most_kernels = 128, most_queued = 1 << 16, most_changes = 256, most_log = 1 << 16 };
enum { ok = 0, uninitialized = 1, invalid = 2, unsupported = 3, no_rights = 4, too_small = 7, not_found = 6, lost = 15 };

typedef struct { double at_s; int core_mhz, mem_mhz; } Change; /* 0: the driver's choice */
typedef struct { int kernel; double start_s, end_s; } Launch;

typedef struct {
  char name[96], uuid[96];
  int default_core_mhz, default_mem_mhz;
  double core_latency_s, mem_latency_s, jitter_s, call_s, counter_step_s;
  int core_asked, mem_asked;       /* locked to, 0: not */
  int core_mhz, mem_mhz;           /* in force */
  Change changes[most_changes];    /* asked for, not yet in force, by time */
  int changes_count;
  int queue[most_queued];          /* ring of kernels */
  uint64_t queued, done;           /* counts since the beginning */
  double left_frac;                /* of the kernel that runs */
  double now_s, energy_j, shown_j, next_step_s, power_w;
  Launch log[most_log];
  int refuse, refuse_reset, mig, other_pid, no_mem_lock, has_counter, throttle, stuck_below_mhz;
  double lost_at_s;                /* < 0: never */
  uint64_t sets, resets;
  uint32_t random;
} Gpu;

typedef struct {
  pthread_mutex_t mutex;
  int virtual_time, gpus, kernels, clocks, states;
  double origin_s, virtual_s;
  int core_mhz[most_clocks], mem_mhz[most_clocks];        /* of clock pairs */
  int state_mhz[16];
  double idle_w[most_clocks];
  char kernel_name[most_kernels][128];
  double time_s[most_kernels][most_clocks], power_w[most_kernels][most_clocks];
  Gpu gpu[most_gpus];
} State;

static State* state;

static void map_state(void) {
  static char mapped[4096];
  const char* path = getenv("RUBATO_SIM_STATE");
  if (state && path && strcmp(path, mapped) == 0) return; /* handles stay good */
  const int file = path ? open(path, O_RDWR) : -1;
  if (file < 0) return;
  void* memory = mmap(NULL, sizeof(State), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (memory == MAP_FAILED) return;
  state = memory;
  snprintf(mapped, sizeof mapped, "%s", path);
}

static void lock(void) {
  if (pthread_mutex_lock(&state->mutex) == EOWNERDEAD) pthread_mutex_consistent(&state->mutex);
}
static void unlock(void) { pthread_mutex_unlock(&state->mutex); }

static double machine_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
static double now_s(void) { return state->virtual_time ? state->virtual_s : machine_s() - state->origin_s; }

static void pause_s(double seconds) {
  if (seconds <= 0 || state->virtual_time) return;
  const struct timespec span = {(time_t)seconds, (long)(1e9 * (seconds - (double)(time_t)seconds))};
  nanosleep(&span, NULL);
}

static int clock_of(const Gpu* g) {
  int best = 0;
  long least = -1;
  for (int c = 0; c < state->clocks; ++c) {
    const long away = 10000L * labs((long)state->mem_mhz[c] - g->mem_mhz) + labs((long)state->core_mhz[c] - g->core_mhz);
    if (least < 0 || away < least) { least = away; best = c; }
  }
  return best;
}

/* Plays a GPU up to a moment: kernels, changes of clock and steps of the energy counter, in order of time. */
static void advance(Gpu* g, double to_s) {
  while (g->now_s < to_s) {
    const int clock = clock_of(g), busy = g->done < g->queued;
    const int kernel = busy ? g->queue[g->done % most_queued] : -1;
    g->power_w = busy ? state->power_w[kernel][clock] : state->idle_w[clock];
    double next_s = to_s;
    if (busy) {
      const double end_s = g->now_s + g->left_frac * state->time_s[kernel][clock];
      if (end_s < next_s) next_s = end_s;
    }
    if (g->changes_count > 0 && g->changes[0].at_s < next_s) next_s = g->changes[0].at_s;
    if (g->counter_step_s > 0 && g->next_step_s < next_s) next_s = g->next_step_s;
    if (next_s < g->now_s) next_s = g->now_s;
    const double span_s = next_s - g->now_s;
    g->energy_j += g->power_w * span_s;
    if (busy) {
      Launch* launch = &g->log[g->done % most_log];
      if (g->left_frac == 1.0) { launch->kernel = kernel; launch->start_s = g->now_s; }
      g->left_frac -= span_s / state->time_s[kernel][clock];
      if (g->left_frac < 1e-9) { launch->end_s = next_s; ++g->done; g->left_frac = 1.0; }
    }
    g->now_s = next_s;
    if (g->changes_count > 0 && g->changes[0].at_s <= next_s) {
      if (g->changes[0].core_mhz >= 0) g->core_mhz = g->changes[0].core_mhz ? g->changes[0].core_mhz : g->default_core_mhz;
      if (g->changes[0].mem_mhz >= 0) g->mem_mhz = g->changes[0].mem_mhz ? g->changes[0].mem_mhz : g->default_mem_mhz;
      memmove(g->changes, g->changes + 1, (size_t)--g->changes_count * sizeof(Change));
    }
    if (g->counter_step_s <= 0) g->shown_j = g->energy_j;
    else if (g->next_step_s <= next_s) { g->shown_j = g->energy_j; g->next_step_s += g->counter_step_s; }
  }
}

static double jitter(Gpu* g) {
  g->random = g->random * 1664525u + 1013904223u;
  return g->jitter_s * (double)(g->random >> 8) / (double)(1 << 24);
}

/* Enters a call for a GPU: locked and up to date, or an error and not locked. */
static int enter(Gpu* g) {
  if (!state) return uninitialized;
  lock();
  const double now = now_s();
  if (g->lost_at_s >= 0 && now >= g->lost_at_s) { unlock(); return lost; }
  advance(g, now);
  return ok;
}

static int change(Gpu* g, int core_mhz, int mem_mhz) { /* -1: as it is */
  double at_s = g->now_s + (mem_mhz >= 0 ? g->mem_latency_s : g->core_latency_s) + jitter(g);
  if (g->changes_count == most_changes) { unlock(); return 999; }
  if (g->changes_count > 0 && g->changes[g->changes_count - 1].at_s > at_s) at_s = g->changes[g->changes_count - 1].at_s;
  if (core_mhz >= 0) g->core_asked = core_mhz;
  if (mem_mhz >= 0) g->mem_asked = mem_mhz;
  g->changes[g->changes_count++] = (Change){at_s, core_mhz, mem_mhz};
  const double call_s = g->call_s;
  unlock();
  pause_s(call_s);
  return ok;
}

/* NVML's functions. */

int nvmlInit_v2(void) { map_state(); return state ? ok : 9; /* driver not loaded */ }
int nvmlShutdown(void) { return ok; }
const char* nvmlErrorString(int error) {
  switch (error) {
    case ok: return "Success";
    case uninitialized: return "Uninitialized";
    case invalid: return "Invalid Argument";
    case unsupported: return "Not Supported";
    case no_rights: return "Insufficient Permissions";
    case not_found: return "Not Found";
    case too_small: return "Insufficient Size";
    case 9: return "Driver Not Loaded";
    case lost: return "GPU is lost";
    default: return "Unknown Error";
  }
}
int nvmlDeviceGetCount_v2(unsigned* count) { *count = (unsigned)state->gpus; return ok; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, Gpu** g) {
  if ((int)i >= state->gpus) return invalid;
  *g = &state->gpu[i];
  const int status = enter(*g);
  if (status == ok) unlock();
  return status;
}
int nvmlDeviceGetHandleByUUID(const char* uuid, Gpu** g) {
  for (int i = 0; i < state->gpus; ++i)
    if (strcmp(uuid, state->gpu[i].uuid) == 0) { *g = &state->gpu[i]; return ok; }
  return not_found;
}
int nvmlDeviceGetIndex(Gpu* g, unsigned* index) { *index = (unsigned)(g - state->gpu); return ok; }
int nvmlDeviceGetName(Gpu* g, char* to, unsigned size) { snprintf(to, size, "%s", g->name); return ok; }
int nvmlDeviceGetUUID(Gpu* g, char* to, unsigned size) { snprintf(to, size, "%s", g->uuid); return ok; }
int nvmlDeviceGetMigMode(Gpu* g, unsigned* now, unsigned* pending) { *now = *pending = (unsigned)g->mig; return ok; }

typedef struct { unsigned pid; unsigned long long bytes; unsigned gi, ci; } ProcessInfo;
int nvmlDeviceGetComputeRunningProcesses_v3(Gpu* g, unsigned* count, ProcessInfo* infos) {
  if (*count < 1) return too_small;
  *count = g->other_pid ? 1 : 0;
  if (g->other_pid) infos[0] = (ProcessInfo){(unsigned)g->other_pid, 0, 0, 0};
  return ok;
}

#define READ(function, type, value)            \
  int function(Gpu* g, type* out) {            \
    const int status = enter(g);               \
    if (status != ok) return status;           \
    *out = (type)(value);                      \
    unlock();                                  \
    return ok;                                 \
  }
READ(nvmlDeviceGetPowerUsage, unsigned, 1e3 * g->power_w)
READ(nvmlDeviceGetEnforcedPowerLimit, unsigned, 1000000)
READ(nvmlDeviceGetCurrentClocksThrottleReasons, unsigned long long, g->throttle)
int nvmlDeviceGetTotalEnergyConsumption(Gpu* g, unsigned long long* out) {
  const int status = enter(g);
  if (status != ok) return status;
  *out = (unsigned long long)(1e3 * g->shown_j);
  unlock();
  return g->has_counter ? ok : unsupported;
}
int nvmlDeviceGetTemperature(Gpu* g, unsigned sensor, unsigned* out) { (void)g; (void)sensor; *out = 50; return ok; }
int nvmlDeviceGetClockInfo(Gpu* g, unsigned kind, unsigned* out) {
  const int status = enter(g);
  if (status != ok) return status;
  *out = (unsigned)(kind == 2 ? g->mem_mhz : g->core_mhz < g->stuck_below_mhz ? g->stuck_below_mhz : g->core_mhz);
  unlock();
  return ok;
}
int nvmlDeviceGetSupportedMemoryClocks(Gpu* g, unsigned* count, unsigned* out) {
  (void)g;
  if ((int)*count < state->states) return too_small;
  *count = (unsigned)state->states;
  for (int i = 0; i < state->states; ++i) out[i] = (unsigned)state->state_mhz[i];
  return ok;
}
int nvmlDeviceGetSupportedGraphicsClocks(Gpu* g, unsigned mem, unsigned* count, unsigned* out) {
  (void)g;
  unsigned found = 0;
  for (int c = 0; c < state->clocks; ++c)
    if (state->mem_mhz[c] == (int)mem && found < *count) out[found++] = (unsigned)state->core_mhz[c];
  *count = found;
  return found ? ok : invalid;
}

static int set(Gpu* g, int core_mhz, int mem_mhz) {
  const int status = enter(g);
  if (status != ok) return status;
  ++g->sets;
  if (g->refuse || (mem_mhz >= 0 && g->no_mem_lock)) {
    const int refused = g->refuse ? g->refuse : unsupported;
    unlock();
    return refused;
  }
  return change(g, core_mhz, mem_mhz);
}
int nvmlDeviceSetGpuLockedClocks(Gpu* g, unsigned low, unsigned high) { return low == high ? set(g, (int)low, -1) : invalid; }
int nvmlDeviceSetMemoryLockedClocks(Gpu* g, unsigned low, unsigned high) { return low == high ? set(g, -1, (int)low) : invalid; }
int nvmlDeviceSetApplicationsClocks(Gpu* g, unsigned mem, unsigned core) { (void)g; (void)mem; (void)core; return unsupported; }

static int reset(Gpu* g, int core_mhz, int mem_mhz) {
  const int status = enter(g);
  if (status != ok) return status;
  ++g->resets;
  if (g->refuse_reset || g->refuse == no_rights || (mem_mhz >= 0 && g->no_mem_lock)) {
    const int refused = g->refuse_reset ? g->refuse_reset : g->refuse ? g->refuse : unsupported;
    unlock();
    return refused;
  }
  return change(g, core_mhz, mem_mhz);
}
int nvmlDeviceResetGpuLockedClocks(Gpu* g) { return reset(g, 0, -1); }
int nvmlDeviceResetMemoryLockedClocks(Gpu* g) { return reset(g, -1, 0); }
int nvmlDeviceResetApplicationsClocks(Gpu* g) { (void)g; return unsupported; }

/* What sim.py calls. */

/* Makes the file; numbers come through sim_gpu, sim_clock and sim_kernel. */
int sim_create(const char* path, int virtual_time) {
  const int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
  if (file < 0 || ftruncate(file, sizeof(State)) != 0) return -1;
  close(file);
  setenv("RUBATO_SIM_STATE", path, 1);
  map_state();
  if (!state) return -1;
  pthread_mutexattr_t shared;
  pthread_mutexattr_init(&shared);
  pthread_mutexattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&shared, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&state->mutex, &shared);
  state->virtual_time = virtual_time;
  state->origin_s = machine_s();
  return 0;
}
void sim_clock(int mem_mhz, int core_mhz, double idle_w) {
  const int c = state->clocks++;
  state->mem_mhz[c] = mem_mhz;
  state->core_mhz[c] = core_mhz;
  state->idle_w[c] = idle_w;
  for (int i = 0; i < state->states; ++i)
    if (state->state_mhz[i] == mem_mhz) return;
  state->state_mhz[state->states++] = mem_mhz;
}
int sim_kernel(const char* name) {
  snprintf(state->kernel_name[state->kernels], 128, "%s", name);
  return state->kernels++;
}
void sim_cell(int kernel, int clock, double time_s, double power_w) {
  state->time_s[kernel][clock] = time_s;
  state->power_w[kernel][clock] = power_w;
}
Gpu* sim_gpu(const char* name, const char* uuid, int mem_mhz, int core_mhz, double core_latency_s, double mem_latency_s,
             double jitter_s, double call_s, double counter_step_s) {
  Gpu* g = &state->gpu[state->gpus++];
  snprintf(g->name, sizeof g->name, "%s", name);
  snprintf(g->uuid, sizeof g->uuid, "%s", uuid);
  g->default_mem_mhz = g->mem_mhz = mem_mhz;
  g->default_core_mhz = g->core_mhz = core_mhz;
  g->core_latency_s = core_latency_s;
  g->mem_latency_s = mem_latency_s;
  g->jitter_s = jitter_s;
  g->call_s = call_s;
  g->counter_step_s = counter_step_s;
  g->left_frac = 1.0;
  g->lost_at_s = -1.0;
  g->has_counter = 1;
  g->random = (uint32_t)state->gpus;
  g->now_s = now_s();
  return g;
}
void sim_fail(int gpu, const char* what, double value) {
  Gpu* g = &state->gpu[gpu];
  lock();
  if (strcmp(what, "refuse") == 0) g->refuse = (int)value;
  if (strcmp(what, "refuse_reset") == 0) g->refuse_reset = (int)value;
  if (strcmp(what, "mig") == 0) g->mig = (int)value;
  if (strcmp(what, "other_pid") == 0) g->other_pid = (int)value;
  if (strcmp(what, "stuck_below_mhz") == 0) g->stuck_below_mhz = (int)value;
  if (strcmp(what, "throttle") == 0) g->throttle = (int)value;
  if (strcmp(what, "no_mem_lock") == 0) g->no_mem_lock = (int)value;
  if (strcmp(what, "no_counter") == 0) g->has_counter = !(int)value;
  if (strcmp(what, "lost_after_s") == 0) g->lost_at_s = value < 0 ? -1.0 : now_s() + value;
  unlock();
}
double sim_now(void) { return now_s(); }
void sim_sleep(double seconds) {
  if (state->virtual_time) state->virtual_s += seconds;
  else pause_s(seconds);
}
/* Queues a kernel. Returns how many were queued with it: its number for sim_done. */
unsigned long long sim_launch(int gpu, int kernel) {
  Gpu* g = &state->gpu[gpu];
  lock();
  advance(g, now_s());
  g->queue[g->queued++ % most_queued] = kernel;
  const unsigned long long number = g->queued;
  unlock();
  return number;
}
unsigned long long sim_queued(int gpu) { return state->gpu[gpu].queued; }
int sim_done(int gpu, unsigned long long number) {
  Gpu* g = &state->gpu[gpu];
  lock();
  advance(g, now_s());
  const int done = g->done >= number;
  unlock();
  return done;
}
/* Waits until all that was queued is done; in virtual time, the time goes by. */
void sim_synchronize(int gpu) {
  Gpu* g = &state->gpu[gpu];
  for (;;) {
    lock();
    advance(g, now_s());
    double left_s = 0.0;
    const int clock = clock_of(g);
    for (uint64_t i = g->done; i < g->queued; ++i)
      left_s += (i == g->done ? g->left_frac : 1.0) * state->time_s[g->queue[i % most_queued]][clock];
    const int over = g->done == g->queued;
    unlock();
    if (over) return;
    if (left_s > 0.005) left_s = 0.005;
    if (state->virtual_time) state->virtual_s += left_s + 1e-9;
    else pause_s(left_s + 2e-6);
  }
}
/* Clocks asked for (0: none) and in force, calls so far, exact energy. */
void sim_read(int gpu, int* asked_and_now, unsigned long long* calls, double* energy_j) {
  Gpu* g = &state->gpu[gpu];
  lock();
  advance(g, now_s());
  const int numbers[] = {g->core_asked, g->mem_asked, g->core_mhz, g->mem_mhz};
  memcpy(asked_and_now, numbers, sizeof numbers);
  calls[0] = g->sets;
  calls[1] = g->resets;
  *energy_j = g->energy_j;
  unlock();
}
/* When launch `number` (from 1) ran; 0 where it has not ended or is forgotten. */
int sim_span(int gpu, unsigned long long number, int* kernel, double* start_s, double* end_s) {
  const Gpu* g = &state->gpu[gpu];
  if (number == 0 || number > g->done || number + most_log <= g->queued) return 0;
  const Launch* launch = &g->log[(number - 1) % most_log];
  *kernel = launch->kernel;
  *start_s = launch->start_s;
  *end_s = launch->end_s;
  return 1;
}
