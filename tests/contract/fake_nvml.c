/* A small libnvidia-ml.so.1: as many GPUs as $FAKE_GPUS says, and the calls named in $FAKE_FAIL ("call=code,...") fail.
   $FAKE_REASONS are the clock reasons of the first GPU, $FAKE_MIG splits it, $FAKE_LINKS are its NVLinks ("110": two up).
   $FAKE_BUSY is the utilization in per cent, $FAKE_USED the memory in use, of each. $FAKE_HANG is a call that never ends. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct { unsigned gpu, memory; } utilization;
typedef struct { unsigned long long total, free, used; } memory;
typedef struct { unsigned version, supported; } gpm_support;
typedef struct { unsigned pid; unsigned long long memory; unsigned instance, compute; } process;
typedef struct { char *short_name, *long_name, *unit; } metric_info;
typedef struct { unsigned id; int result; double value; metric_info info; } metric;
typedef struct { unsigned version, count; void *first, *second; metric metrics[333]; } metrics_get;

static int outcome(const char *call) {
    const char *list = getenv("FAKE_FAIL");
    const char *hangs = getenv("FAKE_HANG");
    while (hangs && !strcmp(hangs, call)) sleep(60);
    size_t length = strlen(call);
    while (list && *list) {
        if (!strncmp(list, call, length) && list[length] == '=') return atoi(list + length + 1);
        list = strchr(list, ',');
        if (list) list++;
    }
    return 0;
}
#define CALL(name) int code = outcome(name); if (code) return code

int nvmlInitWithFlags(unsigned flags) { (void)flags; return outcome("init"); }
int nvmlShutdown(void) { return 0; }
const char *nvmlErrorString(int code) { static char text[32]; snprintf(text, sizeof text, "error %d", code); return text; }
int nvmlDeviceGetCount_v2(unsigned *count) {
    CALL("count");
    const char *gpus = getenv("FAKE_GPUS");
    *count = gpus ? (unsigned)atoi(gpus) : 1;
    return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) { *device = (void *)(size_t)(index + 1); return 0; }
int nvmlDeviceGetUtilizationRates(void *device, utilization *found) {
    CALL("utilization");
    const char *busy = getenv("FAKE_BUSY");
    found->gpu = busy ? (unsigned)atoi(busy) : (unsigned)(20 * (size_t)device);
    found->memory = 5;
    return 0;
}
int nvmlDeviceGetMemoryInfo(void *device, memory *found) {
    CALL("memory");
    (void)device;
    const char *used = getenv("FAKE_USED");
    found->total = 1000; found->used = used ? strtoull(used, NULL, 0) : 400; found->free = 600;
    return 0;
}
int nvmlDeviceGetClockInfo(void *device, int kind, unsigned *mhz) {
    CALL("clock");
    (void)kind;
    *mhz = device == (void *)1 ? 1500 : 900;
    return 0;
}
int nvmlDeviceGetMaxClockInfo(void *device, int kind, unsigned *mhz) {
    CALL("max_clock");
    (void)device; (void)kind;
    *mhz = outcome("zero_clock") ? 0 : 1800;
    return 0;
}
int nvmlDeviceGetCurrentClocksEventReasons(void *device, unsigned long long *reasons) {
    CALL("reasons");
    /* The second GPU is too hot; the first only runs at its power cap. */
    const char *first = getenv("FAKE_REASONS");
    *reasons = device != (void *)1 ? 0x40 : first ? strtoull(first, NULL, 0) : 0x4;
    return 0;
}
int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *celsius) {
    CALL("temperature");
    (void)device; (void)sensor;
    *celsius = 61;
    return 0;
}
int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts) { CALL("power"); (void)device; *milliwatts = 250500; return 0; }
int nvmlDeviceGetEnforcedPowerLimit(void *device, unsigned *milliwatts) {
    CALL("power_limit");
    (void)device;
    *milliwatts = 700000;
    return 0;
}
int nvmlDeviceGetMigMode(void *device, unsigned *current, unsigned *pending) {
    CALL("mig");
    *current = *pending = device == (void *)1 && getenv("FAKE_MIG");
    return 0;
}
int nvmlDeviceGetTotalEccErrors(void *device, int kind, int since, unsigned long long *count) {
    CALL("ecc");
    /* Uncorrected ones, since the driver was loaded. */
    *count = kind == 1 && since == 0 ? 2 * (size_t)device : 1000;
    return 0;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, process *found) {
    CALL("processes");
    (void)device;
    if (!found || *count < 3) { *count = 3; return 7; }
    *count = 3;
    for (unsigned index = 0; index < 3; index++) found[index].pid = index + 1;
    return 0;
}
int nvmlDeviceGetNvLinkState(void *device, unsigned link, unsigned *active) {
    CALL("links");
    (void)device;
    const char *links = getenv("FAKE_LINKS");
    if (!links) links = "1111";
    if (link >= strlen(links)) return 2;
    *active = links[link] == '1';
    return 0;
}
int nvmlDeviceGetNvLinkErrorCounter(void *device, unsigned link, int kind, unsigned long long *count) {
    CALL("link_errors");
    (void)device; (void)link;
    *count = kind < 4 ? 1 : 1000;
    return 0;
}
int nvmlGpmQueryDeviceSupport(void *device, gpm_support *found) {
    CALL("gpm");
    (void)device;
    found->supported = !outcome("gpm_unsupported");
    return 0;
}
int nvmlGpmSampleAlloc(void **sample) { *sample = malloc(8); return 0; }
int nvmlGpmSampleFree(void *sample) { free(sample); return 0; }
int nvmlGpmSampleGet(void *device, void *sample) { (void)device; (void)sample; return outcome("gpm_sample"); }
int nvmlGpmMetricsGet(metrics_get *asked) {
    CALL("gpm_metrics");
    asked->metrics[0].result = outcome("gpm_value");
    asked->metrics[0].value = asked->metrics[0].id == 2 ? 35.0 : -1.0;
    return 0;
}
