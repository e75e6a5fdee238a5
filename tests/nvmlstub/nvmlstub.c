/* A libnvidia-ml.so.1 for tests: it answers with what a description file says.
 *
 * The file named by NVMLSTUB is read at every nvmlInit. One word and its values a
 * line; lines after `device` are about that GPU, lines after `migdevice` too:
 *
 *   driver 550.54.15          version of the driver
 *   cuda 12040                newest CUDA version
 *   error FUNCTION CODE       FUNCTION answers CODE (of this GPU, after `device`)
 *   device
 *   name TEXT, uuid TEXT, bus TEXT, memory BYTES, cc MAJOR MINOR
 *   mig 0|1                   MIG mode; without it: not supported
 *   fabric STATE STATUS HEX CLIQUE
 *   c2c 0|1
 *   migdevice GI CI MIB MPS GISLICES CISLICES COPY DEC ENC JPEG OFA
 *                             numbers of profiles, then attributes
 *
 * Functions, structures and codes: the NVML API reference. What a real driver may
 * lack is lacking here too: asking for it is "function not found".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define MAX_DEVICES 16
#define MAX_MIGS 8
#define MAX_ERRORS 64
#define GI_ID(number) (100u + (number)) /* what profiles are called inside */
#define CI_ID(number) (200u + (number))

enum {
    SUCCESS = 0,
    UNINITIALIZED = 1,
    INVALID_ARGUMENT = 2,
    NOT_SUPPORTED = 3,
    NOT_FOUND = 6,
    INSUFFICIENT_SIZE = 7,
    ARGUMENT_VERSION_MISMATCH = 25,
};

struct device;

struct mig {
    int is_mig; /* first in both structures: tells handles apart */
    struct device *parent;
    unsigned id, gi_profile, ci_profile;
    unsigned long long memory;
    unsigned counts[8]; /* in the order of nvmlDeviceAttributes_t */
};

struct failure {
    char function[64];
    int code;
};

struct device {
    int is_mig;
    char name[96], uuid[96], bus[32];
    unsigned long long memory;
    int major, minor, mig_mode, c2c;
    unsigned fabric_state, fabric_status, clique;
    unsigned char cluster[16];
    int has_fabric, mig_count, failures;
    struct mig migs[MAX_MIGS];
    struct failure failure[MAX_ERRORS];
};

static struct {
    int initialised, devices, failures;
    unsigned cuda;
    char driver[80];
    struct device device[MAX_DEVICES];
    struct failure failure[MAX_ERRORS];
} all;

static int failure_in(const struct failure *listed, int count, const char *function) {
    for (int i = 0; i < count; i++)
        if (strcmp(listed[i].function, function) == 0)
            return listed[i].code;
    return SUCCESS;
}

#define CHECK()                                                                      \
    do {                                                                             \
        int code_ = failure_in(all.failure, all.failures, __func__);                 \
        if (code_ == SUCCESS && !all.initialised)                                    \
            code_ = UNINITIALIZED;                                                   \
        if (code_ != SUCCESS)                                                        \
            return code_;                                                            \
    } while (0)

#define CHECK_DEVICE(device_)                                                        \
    do {                                                                             \
        CHECK();                                                                     \
        int of_device_ =                                                             \
            failure_in((device_)->failure, (device_)->failures, __func__);           \
        if (of_device_ != SUCCESS)                                                   \
            return of_device_;                                                       \
    } while (0)

static struct device *owner(void *handle) {
    return *(int *)handle ? ((struct mig *)handle)->parent : handle;
}

static void rest_of(char *to, size_t size, const char *line) {
    snprintf(to, size, "%s", line);
    to[strcspn(to, "\n")] = '\0';
}

static void read_line(const char *line) {
    struct device *device = all.devices ? &all.device[all.devices - 1] : NULL;
    char word[32] = "", text[96] = "";
    int used = 0;
    if (sscanf(line, "%31s %n", word, &used) < 1 || word[0] == '#')
        return;
    line += used;
    if (strcmp(word, "driver") == 0) {
        rest_of(all.driver, sizeof all.driver, line);
    } else if (strcmp(word, "cuda") == 0) {
        sscanf(line, "%u", &all.cuda);
    } else if (strcmp(word, "error") == 0) {
        struct failure *failure = device ? &device->failure[device->failures++]
                                         : &all.failure[all.failures++];
        sscanf(line, "%63s %d", failure->function, &failure->code);
    } else if (strcmp(word, "device") == 0 && all.devices < MAX_DEVICES) {
        device = &all.device[all.devices++];
        device->mig_mode = device->c2c = -1;
    } else if (device == NULL) {
        fprintf(stderr, "nvmlstub: %s before the first device\n", word);
    } else if (strcmp(word, "name") == 0) {
        rest_of(device->name, sizeof device->name, line);
    } else if (strcmp(word, "uuid") == 0) {
        rest_of(device->uuid, sizeof device->uuid, line);
    } else if (strcmp(word, "bus") == 0) {
        rest_of(device->bus, sizeof device->bus, line);
    } else if (strcmp(word, "memory") == 0) {
        sscanf(line, "%llu", &device->memory);
    } else if (strcmp(word, "cc") == 0) {
        sscanf(line, "%d %d", &device->major, &device->minor);
    } else if (strcmp(word, "mig") == 0) {
        sscanf(line, "%d", &device->mig_mode);
    } else if (strcmp(word, "c2c") == 0) {
        sscanf(line, "%d", &device->c2c);
    } else if (strcmp(word, "fabric") == 0) {
        sscanf(line, "%u %u %32s %u", &device->fabric_state, &device->fabric_status,
               text, &device->clique);
        for (int i = 0; i < 16; i++)
            sscanf(text + 2 * i, "%2hhx", &device->cluster[i]);
        device->has_fabric = 1;
    } else if (strcmp(word, "migdevice") == 0 && device->mig_count < MAX_MIGS) {
        struct mig *mig = &device->migs[device->mig_count];
        unsigned *c = mig->counts;
        mig->is_mig = 1;
        mig->parent = device;
        mig->id = ++device->mig_count;
        sscanf(line, "%u %u %llu %u %u %u %u %u %u %u %u", &mig->gi_profile,
               &mig->ci_profile, &mig->memory, &c[0], &c[6], &c[7], &c[1], &c[2],
               &c[3], &c[4], &c[5]);
    } else {
        fprintf(stderr, "nvmlstub: unknown word %s\n", word);
    }
}

EXPORT int nvmlInitWithFlags(unsigned flags) {
    const char *path = getenv("NVMLSTUB");
    FILE *file = path ? fopen(path, "r") : NULL;
    char line[256];
    (void)flags;
    memset(&all, 0, sizeof all);
    if (file == NULL)
        return NOT_FOUND;
    while (fgets(line, sizeof line, file))
        read_line(line);
    fclose(file);
    int code = failure_in(all.failure, all.failures, __func__);
    all.initialised = code == SUCCESS;
    return code;
}

EXPORT int nvmlShutdown(void) {
    CHECK();
    all.initialised = 0;
    return SUCCESS;
}

EXPORT const char *nvmlErrorString(int code) {
    return code == NOT_SUPPORTED ? "Not Supported" : "An error of the stub";
}

static int give(char *to, unsigned size, const char *text) {
    if (strlen(text) >= size)
        return INSUFFICIENT_SIZE;
    strcpy(to, text);
    return SUCCESS;
}

EXPORT int nvmlSystemGetDriverVersion(char *version, unsigned size) {
    CHECK();
    return give(version, size, all.driver);
}

EXPORT int nvmlSystemGetCudaDriverVersion(int *version) {
    CHECK();
    *version = (int)all.cuda;
    return SUCCESS;
}

EXPORT int nvmlDeviceGetCount_v2(unsigned *count) {
    CHECK();
    *count = (unsigned)all.devices;
    return SUCCESS;
}

EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) {
    if (index >= (unsigned)all.devices)
        return INVALID_ARGUMENT;
    CHECK_DEVICE(&all.device[index]);
    *device = &all.device[index];
    return SUCCESS;
}

EXPORT int nvmlDeviceGetName(void *device, char *name, unsigned size) {
    CHECK_DEVICE(owner(device));
    return give(name, size, owner(device)->name);
}

EXPORT int nvmlDeviceGetUUID(void *device, char *uuid, unsigned size) {
    char text[128];
    CHECK_DEVICE(owner(device));
    if (!*(int *)device)
        return give(uuid, size, owner(device)->uuid);
    snprintf(text, sizeof text, "MIG-%s-%u", owner(device)->uuid,
             ((struct mig *)device)->id);
    return give(uuid, size, text);
}

struct memory {
    unsigned long long total, free, used;
};

EXPORT int nvmlDeviceGetMemoryInfo(struct device *device, struct memory *memory) {
    CHECK_DEVICE(device);
    *memory = (struct memory){device->memory, device->memory, 0};
    return SUCCESS;
}

EXPORT int nvmlDeviceGetCudaComputeCapability(struct device *device, int *major,
                                              int *minor) {
    CHECK_DEVICE(device);
    *major = device->major;
    *minor = device->minor;
    return SUCCESS;
}

struct pci_info {
    char bus_id_legacy[16];
    unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
    char bus_id[32];
};

EXPORT int nvmlDeviceGetPciInfo_v3(struct device *device, struct pci_info *pci) {
    CHECK_DEVICE(device);
    memset(pci, 0, sizeof *pci);
    return give(pci->bus_id, sizeof pci->bus_id, device->bus);
}

EXPORT int nvmlDeviceGetMigMode(struct device *device, unsigned *now,
                                unsigned *pending) {
    CHECK_DEVICE(device);
    if (device->mig_mode < 0)
        return NOT_SUPPORTED;
    *now = *pending = (unsigned)device->mig_mode;
    return SUCCESS;
}

EXPORT int nvmlDeviceGetMaxMigDeviceCount(struct device *device, unsigned *count) {
    CHECK_DEVICE(device);
    *count = MAX_MIGS;
    return SUCCESS;
}

EXPORT int nvmlDeviceGetMigDeviceHandleByIndex(struct device *device, unsigned index,
                                               void **mig) {
    CHECK_DEVICE(device);
    if (index >= (unsigned)device->mig_count)
        return index % 2 ? INVALID_ARGUMENT : NOT_FOUND;
    *mig = &device->migs[index];
    return SUCCESS;
}

struct attributes {
    unsigned counts[8];
    unsigned long long memory;
};

EXPORT int nvmlDeviceGetAttributes_v2(struct mig *mig, struct attributes *attributes) {
    CHECK_DEVICE(owner(mig));
    memcpy(attributes->counts, mig->counts, sizeof mig->counts);
    attributes->memory = mig->memory;
    return SUCCESS;
}

EXPORT int nvmlDeviceGetGpuInstanceId(struct mig *mig, unsigned *id) {
    CHECK_DEVICE(owner(mig));
    *id = mig->id;
    return SUCCESS;
}

EXPORT int nvmlDeviceGetComputeInstanceId(struct mig *mig, unsigned *id) {
    CHECK_DEVICE(owner(mig));
    *id = 0;
    return SUCCESS;
}

EXPORT int nvmlDeviceGetGpuInstanceById(struct device *device, unsigned id,
                                        void **instance) {
    CHECK_DEVICE(device);
    if (id == 0 || id > (unsigned)device->mig_count)
        return NOT_FOUND;
    *instance = &device->migs[id - 1];
    return SUCCESS;
}

struct instance_info {
    void *device;
    unsigned id, profile, start, size;
};

EXPORT int nvmlGpuInstanceGetInfo(struct mig *instance, struct instance_info *info) {
    CHECK_DEVICE(owner(instance));
    *info = (struct instance_info){instance->parent, instance->id,
                                   GI_ID(instance->gi_profile), 0, 1};
    return SUCCESS;
}

struct gpu_instance_profile {
    unsigned version, id, p2p, slices, instances, counts[6];
    unsigned long long memory;
    char name[96];
};

EXPORT int nvmlDeviceGetGpuInstanceProfileInfoV(struct device *device, unsigned profile,
                                                struct gpu_instance_profile *info) {
    CHECK_DEVICE(device);
    if (info->version != (sizeof *info | 2u << 24))
        return ARGUMENT_VERSION_MISMATCH;
    if (profile == 5 || profile == 6)
        return NOT_SUPPORTED; /* 8 and 6 slices: other GPUs have them */
    info->id = GI_ID(profile);
    return SUCCESS;
}

EXPORT int nvmlGpuInstanceGetComputeInstanceById(struct mig *instance, unsigned id,
                                                 void **compute) {
    CHECK_DEVICE(owner(instance));
    if (id != 0)
        return NOT_FOUND;
    *compute = instance;
    return SUCCESS;
}

struct compute_instance_profile {
    unsigned version, id, slices, instances, counts[6];
    char name[96];
};

EXPORT int nvmlGpuInstanceGetComputeInstanceProfileInfoV(
    struct mig *instance, unsigned profile, unsigned engines,
    struct compute_instance_profile *info) {
    CHECK_DEVICE(owner(instance));
    if (info->version != (sizeof *info | 2u << 24))
        return ARGUMENT_VERSION_MISMATCH;
    if (engines != 0 || profile == 5)
        return INVALID_ARGUMENT;
    info->id = CI_ID(profile);
    return SUCCESS;
}

struct compute_instance_info {
    void *device, *instance;
    unsigned id, profile, start, size;
};

EXPORT int nvmlComputeInstanceGetInfo_v2(struct mig *compute,
                                         struct compute_instance_info *info) {
    CHECK_DEVICE(owner(compute));
    *info = (struct compute_instance_info){compute->parent, compute, 0,
                                           CI_ID(compute->ci_profile), 0, 1};
    return SUCCESS;
}

struct fabric {
    unsigned char cluster[16];
    unsigned status, clique, state;
};

struct fabric_v2 {
    unsigned version;
    struct fabric fabric;
    unsigned health;
};

static int tell_fabric(const struct device *device, struct fabric *fabric) {
    if (!device->has_fabric)
        return NOT_SUPPORTED;
    memcpy(fabric->cluster, device->cluster, sizeof fabric->cluster);
    fabric->status = device->fabric_status;
    fabric->clique = device->clique;
    fabric->state = device->fabric_state;
    return SUCCESS;
}

EXPORT int nvmlDeviceGetGpuFabricInfoV(struct device *device, struct fabric_v2 *info) {
    CHECK_DEVICE(device);
    if (info->version != (sizeof *info | 2u << 24))
        return ARGUMENT_VERSION_MISMATCH;
    return tell_fabric(device, &info->fabric);
}

EXPORT int nvmlDeviceGetGpuFabricInfo(struct device *device, struct fabric *info) {
    CHECK_DEVICE(device);
    return tell_fabric(device, info);
}

EXPORT int nvmlDeviceGetC2cModeInfoV(struct device *device, unsigned *enabled) {
    CHECK_DEVICE(device);
    if (device->c2c < 0)
        return NOT_SUPPORTED;
    *enabled = (unsigned)device->c2c;
    return SUCCESS;
}
