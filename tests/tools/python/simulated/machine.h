/* The simulated machine of nvml.c (its functions as the driver's library) and machine.c (how it plays, and what machine.py calls).
 *
 * All state lies in one file mapped by every process (RUBATO_SIM_STATE), under a robust mutex, so that what a killed
 * process set stays set, as on a card. A GPU is a queue of kernels, played at the clocks in force: each kernel has a time
 * and a power at each clock pair (from the model of rubato), and idle power at each. Requests take effect after a latency,
 * one after the other. Time is that of the machine, or virtual: then it stands still but for sim_sleep.
 */
#pragma once
#include <pthread.h>
#include <stdint.h>

enum { most_gpus = 8, most_clocks = 256, most_kernels = 128, most_queued = 1 << 16, most_changes = 256, most_log = 1 << 16 };

typedef struct { double at_s; int core_mhz, mem_mhz; } Change; /* 0: the driver's choice */
typedef struct { int kernel; double start_s, end_s; } Launch;

typedef struct {
  char name[96], uuid[96];
  int default_core_mhz, default_mem_mhz;
  double core_latency_s, mem_latency_s, jitter_s, call_s, counter_step_s;
  int core_asked, mem_asked;       /* locked to, 0: not */
  int app_core, app_mem;           /* application clocks, 0: not set */
  unsigned limit_mw;               /* power limit as set; nothing draws more than it here */
  int core_mhz, mem_mhz;           /* in force */
  Change changes[most_changes];    /* asked for, not yet in force, by time */
  int changes_count;
  int queue[most_queued];          /* ring of kernels */
  uint64_t queued, done;           /* counts since the beginning */
  double left_frac;                /* of the kernel that runs */
  double now_s, energy_j, shown_j, next_step_s, power_w;
  Launch log[most_log];
  int refuse, refuse_reset, mig, other_pid, no_mem_lock, no_lock, acp, capability, has_counter, throttle, stuck_below_mhz;
  /* acp: 0 has no application clocks, 1 root may set them, 2 everyone; capability: 80 is 8.0 */
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

#pragma GCC visibility push(hidden) /* what the two files share is no function of the library */
extern State* state; /* NULL until mapped */

void map_state(void);
void lock(void);
void unlock(void);
double now_s(void);
void pause_s(double seconds);
/* The clock pair whose numbers hold: the nearest to those in force. */
int clock_of(const Gpu* g);
/* Plays a GPU up to a moment: kernels, changes of clock and steps of the energy counter, in order of time. */
void advance(Gpu* g, double to_s);
#pragma GCC visibility pop
