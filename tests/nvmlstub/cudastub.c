/* A libcuda.so.1 for tests: the one GPU of a Jetson, or an error from CUDASTUB. */
#include <stdio.h>
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int cuInit(unsigned flags) {
    const char *code = getenv("CUDASTUB");
    (void)flags;
    return code ? atoi(code) : 0;
}

EXPORT int cuDriverGetVersion(int *version) {
    *version = 12060;
    return 0;
}

EXPORT int cuDeviceGetCount(int *count) {
    *count = 1;
    return 0;
}

EXPORT int cuDeviceGet(int *device, int index) {
    *device = index;
    return index ? 101 : 0;
}

EXPORT int cuDeviceGetName(char *name, int size, int device) {
    (void)device;
    snprintf(name, (size_t)size, "Orin");
    return 0;
}

EXPORT int cuDeviceTotalMem_v2(size_t *bytes, int device) {
    (void)device;
    *bytes = (size_t)30697 << 20;
    return 0;
}

EXPORT int cuDeviceGetAttribute(int *value, int attribute, int device) {
    (void)device;
    if (attribute != 75 && attribute != 76)
        return 1;
    *value = attribute == 75 ? 8 : 7;
    return 0;
}
