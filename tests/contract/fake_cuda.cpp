/* A small libcuda.so.1 whose device is the processor: memory is malloc's, and the kernels are those of
   scripts/gpu/kernels.cu, compiled here and run thread after thread. $FAKE_FAIL as in fake_nvml.c ("cuInit=100,...");
   $FAKE_CAPABILITY ("90") is the card's. What is allocated is told to the fake NVML of the same process. */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

struct index3 { unsigned x, y, z; };
static thread_local index3 blockIdx, blockDim, threadIdx;
#define __global__
static int __dp4a(int left, int right, int sum) {
    for (int byte = 0; byte < 32; byte += 8) sum += (int8_t)(left >> byte) * (int8_t)(right >> byte);
    return sum;
}
#include "kernels.cu"

static const size_t TOTAL = 8ull << 30;
static std::map<uint64_t, size_t> held;
static thread_local bool bound;

static int outcome(const char *call) {
    const char *list = getenv("FAKE_FAIL");
    const char *found = list ? strstr(list, call) : nullptr;
    return found && found[strlen(call)] == '=' ? atoi(found + strlen(call) + 1) : 0;
}
static size_t used() {
    size_t sum = 0;
    for (auto &part : held) sum += part.second;
    return sum;
}
static void tell() {
    char text[32];
    snprintf(text, sizeof text, "%zu", used());
    if (!outcome("hidden")) setenv("FAKE_USED", text, 1);
}
#define CALL(name) { int code = outcome(#name); if (code) return code; }
#define IN_CONTEXT(name) CALL(name) if (!bound) return 201

extern "C" {
int cuInit(unsigned) { CALL(cuInit) return 0; }
int cuGetErrorName(int code, const char **text) {
    static char name[32];
    snprintf(name, sizeof name, "CUDA_ERROR_%d", code);
    *text = name;
    return 0;
}
int cuDeviceGetCount(int *count) { *count = outcome("none") ? 0 : 1; return 0; }
int cuDeviceGet(int *device, int) { *device = 0; return 0; }
int cuDeviceGetName(char *text, int length, int) { snprintf(text, length, "Fake \"Card\" 1"); return 0; }
int cuDeviceGetAttribute(int *value, int attribute, int) {
    const char *capability = getenv("FAKE_CAPABILITY");
    int number = capability ? atoi(capability) : 90;
    *value = attribute == 75 ? number / 10 : attribute == 76 ? number % 10 : -1;
    return 0;
}
int cuDevicePrimaryCtxRetain(void **context, int) { CALL(cuDevicePrimaryCtxRetain) *context = (void *)1; return 0; }
int cuDevicePrimaryCtxRelease_v2(int) { return 0; }
int cuCtxSetCurrent(void *context) { bound = context != nullptr; return 0; }
int cuCtxSynchronize() { IN_CONTEXT(cuCtxSynchronize); return 0; }
int cuModuleLoadData(void **module, const void *text) {
    IN_CONTEXT(cuModuleLoadData);
    if (!strstr((const char *)text, ".entry product_int8(")) return 218;
    *module = (void *)2;
    return 0;
}
int cuModuleGetFunction(void **function, void *module, const char *name) {
    if (module != (void *)2) return 400;
    *function = !strcmp(name, "product_fp32") ? (void *)product_fp32 : !strcmp(name, "product_int8") ? (void *)product_int8 : nullptr;
    return *function ? 0 : 500;
}
int cuMemGetInfo_v2(size_t *free_bytes, size_t *total) {
    IN_CONTEXT(cuMemGetInfo_v2);
    *total = TOTAL;
    *free_bytes = TOTAL - used();
    return 0;
}
int cuMemAlloc_v2(uint64_t *address, size_t size) {
    IN_CONTEXT(cuMemAlloc_v2);
    *address = (uint64_t)malloc(size);
    held[*address] = size;
    tell();
    return 0;
}
int cuMemFree_v2(uint64_t address) {
    IN_CONTEXT(cuMemFree_v2);
    if (!held.erase(address)) return 1;
    free((void *)address);
    tell();
    return 0;
}
int cuMemcpyHtoD_v2(uint64_t target, const void *source, size_t size) {
    IN_CONTEXT(cuMemcpyHtoD_v2);
    memcpy((void *)target, source, size);
    return 0;
}
int cuMemcpyDtoH_v2(void *target, uint64_t source, size_t size) {
    IN_CONTEXT(cuMemcpyDtoH_v2);
    memcpy(target, (void *)source, size);
    if (outcome("wrong")) memset(target, 77, size);
    return 0;
}
int cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned bx, unsigned by, unsigned bz,
                   unsigned, void *, void **parameters, void **) {
    IN_CONTEXT(cuLaunchKernel);
    auto kernel = (void (*)(uint64_t, uint64_t, uint64_t, int, int, int))function;
    if (z != 1 || bz != 1) return 1;
    blockDim = {bx, by, bz};
    for (blockIdx.y = 0; blockIdx.y < y; blockIdx.y++)
        for (blockIdx.x = 0; blockIdx.x < x; blockIdx.x++)
            for (threadIdx.y = 0; threadIdx.y < by; threadIdx.y++)
                for (threadIdx.x = 0; threadIdx.x < bx; threadIdx.x++)
                    kernel(*(uint64_t *)parameters[0], *(uint64_t *)parameters[1], *(uint64_t *)parameters[2],
                           *(int *)parameters[3], *(int *)parameters[4], *(int *)parameters[5]);
    return 0;
}
}
