/* The machine of machine.h: how it plays, and what machine.py calls (sim_...; it alone does). */
#define _GNU_SOURCE
#include "machine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

State* state;

void map_state(void) {
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

void lock(void) {
  if (pthread_mutex_lock(&state->mutex) == EOWNERDEAD) pthread_mutex_consistent(&state->mutex);
}
void unlock(void) { pthread_mutex_unlock(&state->mutex); }

static double machine_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
double now_s(void) { return state->virtual_time ? state->virtual_s : machine_s() - state->origin_s; }

void pause_s(double seconds) {
  if (seconds <= 0 || state->virtual_time) return;
  const struct timespec span = {(time_t)seconds, (long)(1e9 * (seconds - (double)(time_t)seconds))};
  nanosleep(&span, NULL);
}

int clock_of(const Gpu* g) {
  int best = 0;
  long least = -1;
  for (int c = 0; c < state->clocks; ++c) {
    const long away = 10000L * labs((long)state->mem_mhz[c] - g->mem_mhz) + labs((long)state->core_mhz[c] - g->core_mhz);
    if (least < 0 || away < least) { least = away; best = c; }
  }
  return best;
}

void advance(Gpu* g, double to_s) {
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

/* What machine.py calls. */

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
  g->limit_mw = 1000000;
  g->capability = 80;
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
  if (strcmp(what, "no_lock") == 0) g->no_lock = (int)value;
  if (strcmp(what, "acp") == 0) g->acp = (int)value;
  if (strcmp(what, "capability") == 0) g->capability = (int)value;
  if (strcmp(what, "no_counter") == 0) g->has_counter = !(int)value;
  if (strcmp(what, "limit_mw") == 0) g->limit_mw = (unsigned)value;
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
/* Clocks locked to (0: none) and in force, the power limit in mW, application clocks, calls so far, exact energy. */
void sim_read(int gpu, int* asked_and_now, unsigned long long* calls, double* energy_j) {
  Gpu* g = &state->gpu[gpu];
  lock();
  advance(g, now_s());
  const int numbers[] = {g->core_asked, g->mem_asked, g->core_mhz, g->mem_mhz, (int)g->limit_mw, g->app_core, g->app_mem};
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
