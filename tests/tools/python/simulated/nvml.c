/* A simulated machine with GPUs (machine.h) behind NVML's own functions, for tests: libnvidia-ml.so.1 as rubato.hardware.nvml loads it. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>

#include "machine.h"

enum { ok = 0, uninitialized = 1, invalid = 2, unsupported = 3, no_rights = 4, too_small = 7, not_found = 6, lost = 15 };

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
int nvmlInitWithFlags(unsigned flags) { (void)flags; return nvmlInit_v2(); } /* as NVIDIA's own Python binding calls it */
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
READ(nvmlDeviceGetEnforcedPowerLimit, unsigned, g->limit_mw)
READ(nvmlDeviceGetPowerManagementLimit, unsigned, g->limit_mw)
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
  const int fits = (int)*count >= state->states;
  *count = (unsigned)state->states;
  if (!fits) return too_small;
  for (int i = 0; i < state->states; ++i) out[i] = (unsigned)state->state_mhz[i];
  return ok;
}
int nvmlDeviceGetSupportedGraphicsClocks(Gpu* g, unsigned mem, unsigned* count, unsigned* out) {
  (void)g;
  unsigned found = 0;
  for (int c = 0; c < state->clocks; ++c)
    if (state->mem_mhz[c] == (int)mem && found++ < *count) out[found - 1] = (unsigned)state->core_mhz[c];
  const int fits = found <= *count;
  *count = found;
  return found == 0 ? invalid : fits ? ok : too_small;
}

static int set(Gpu* g, int core_mhz, int mem_mhz) {
  const int status = enter(g);
  if (status != ok) return status;
  ++g->sets;
  if (g->refuse || g->no_lock || (mem_mhz >= 0 && g->no_mem_lock)) {
    const int refused = g->refuse ? g->refuse : unsupported;
    unlock();
    return refused;
  }
  return change(g, core_mhz, mem_mhz);
}
int nvmlDeviceSetGpuLockedClocks(Gpu* g, unsigned low, unsigned high) { return low == high ? set(g, (int)low, -1) : invalid; }
int nvmlDeviceSetMemoryLockedClocks(Gpu* g, unsigned low, unsigned high) { return low == high ? set(g, -1, (int)low) : invalid; }
/* Application clocks hold where nothing is locked; only GPUs that cannot lock have them here. */
static int set_applications(Gpu* g, int core_mhz, int mem_mhz) {
  const int status = enter(g);
  if (status != ok) return status;
  if (!g->acp || (g->acp == 1 && g->refuse == no_rights)) {
    const int refused = g->acp ? no_rights : unsupported;
    unlock();
    return refused;
  }
  const int core_asked = g->core_asked, mem_asked = g->mem_asked;
  const int changed = change(g, core_mhz, mem_mhz);
  g->core_asked = core_asked;
  g->mem_asked = mem_asked;
  g->app_core = core_mhz;
  g->app_mem = mem_mhz;
  return changed;
}
int nvmlDeviceSetApplicationsClocks(Gpu* g, unsigned mem, unsigned core) { return set_applications(g, (int)core, (int)mem); }
int nvmlDeviceResetApplicationsClocks(Gpu* g) { return set_applications(g, 0, 0); }
int nvmlDeviceGetAPIRestriction(Gpu* g, unsigned api, unsigned* restricted) {
  if (api != 0 || !g->acp) return unsupported;
  *restricted = g->acp == 1;
  return ok;
}
int nvmlDeviceGetApplicationsClock(Gpu* g, unsigned kind, unsigned* out) {
  if (!g->acp) return unsupported;
  *out = (unsigned)(kind == 2 ? (g->app_mem ? g->app_mem : g->default_mem_mhz) : g->app_core ? g->app_core : g->default_core_mhz);
  return ok;
}
int nvmlDeviceGetDefaultApplicationsClock(Gpu* g, unsigned kind, unsigned* out) {
  if (!g->acp) return unsupported;
  *out = (unsigned)(kind == 2 ? g->default_mem_mhz : g->default_core_mhz);
  return ok;
}
int nvmlDeviceGetArchitecture(Gpu* g, unsigned* out) { *out = g->capability < 70 ? 4 : g->capability < 75 ? 5 : g->capability < 80 ? 6 : 7; return ok; }
int nvmlDeviceGetCudaComputeCapability(Gpu* g, int* major, int* minor) {
  *major = g->capability / 10;
  *minor = g->capability % 10;
  return ok;
}
int nvmlDeviceGetPowerManagementLimitConstraints(Gpu* g, unsigned* least_mw, unsigned* most_mw) {
  (void)g;
  *least_mw = 100000;
  *most_mw = 1000000;
  return ok;
}
int nvmlDeviceGetPowerManagementDefaultLimit(Gpu* g, unsigned* limit_mw) { (void)g; *limit_mw = 1000000; return ok; }
int nvmlSystemGetDriverVersion(char* to, unsigned size) { snprintf(to, size, "535.104.05"); return ok; }

int nvmlDeviceSetPowerManagementLimit(Gpu* g, unsigned limit_mw) {
  const int status = enter(g);
  if (status != ok) return status;
  ++g->sets;
  const int refused = g->refuse ? g->refuse : limit_mw < 100000 || limit_mw > 1000000 ? invalid : ok;
  if (refused == ok) g->limit_mw = limit_mw;
  unlock();
  return refused;
}

static int reset(Gpu* g, int core_mhz, int mem_mhz) {
  const int status = enter(g);
  if (status != ok) return status;
  ++g->resets;
  if (g->refuse_reset || g->refuse == no_rights || g->no_lock || (mem_mhz >= 0 && g->no_mem_lock)) {
    const int refused = g->refuse_reset ? g->refuse_reset : g->refuse ? g->refuse : unsupported;
    unlock();
    return refused;
  }
  return change(g, core_mhz, mem_mhz);
}
int nvmlDeviceResetGpuLockedClocks(Gpu* g) { return reset(g, 0, -1); }
int nvmlDeviceResetMemoryLockedClocks(Gpu* g) { return reset(g, -1, 0); }
