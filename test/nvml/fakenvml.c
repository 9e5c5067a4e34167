//go:build ignore

/*
 * A fake libnvidia-ml.so.1: GPUs that a script describes, behind the part of
 * NVML's binary interface that devices/nvml calls. README.md beside this file
 * holds the script's language. Build:
 *
 *   gcc -shared -fPIC -pthread -Wl,-soname,libnvidia-ml.so.1 -o libnvidia-ml.so.1 fakenvml.c
 *
 * With -DOLD_DRIVER it lacks the functions that came after the R418 drivers,
 * so that a caller that does not look symbols up first dies as it would there.
 *
 * As with the real library, nvmlInit fixes which GPUs there are until the last
 * nvmlShutdown; what becomes of those shows at once. A GPU that leaves the
 * script while the library is up is lost, one that enters it waits for the
 * next nvmlInit. Every function takes one lock and looks at the script's
 * modification time, so calls may come from any thread. A call that the
 * script has hang gives the lock back while it waits.
 */
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fakescript.h"

/* NVML's binary interface: layouts of nvml.h, version 13. */
enum { TOPOLOGY_SYSTEM = 50 };

typedef struct {
    char busIdLegacy[16];
    unsigned int domain, bus, device, pciDeviceId, pciSubSystemId;
    char busId[32];
} nvmlPciInfo_t;
_Static_assert(sizeof(nvmlPciInfo_t) == 68, "nvmlPciInfo_t");
_Static_assert(offsetof(nvmlPciInfo_t, busId) == 36, "nvmlPciInfo_t.busId");

typedef struct {
    unsigned long long total, free, used;
} nvmlMemory_t;
_Static_assert(sizeof(nvmlMemory_t) == 24, "nvmlMemory_t");

typedef struct {
    unsigned int version;
    unsigned long long total, reserved, free, used;
} nvmlMemory_v2_t;
_Static_assert(sizeof(nvmlMemory_v2_t) == 40, "nvmlMemory_v2_t");
enum { MEMORY_VERSION_2 = sizeof(nvmlMemory_v2_t) | 2 << 24 };

typedef struct {
    unsigned int gpu, memory;
} nvmlUtilization_t;

typedef struct {
    unsigned int multiprocessorCount, sharedCopyEngineCount, sharedDecoderCount, sharedEncoderCount, sharedJpegCount,
        sharedOfaCount, gpuInstanceSliceCount, computeInstanceSliceCount;
    unsigned long long memorySizeMB;
} nvmlDeviceAttributes_t;
_Static_assert(sizeof(nvmlDeviceAttributes_t) == 40, "nvmlDeviceAttributes_t");

/* A handle names a GPU that was there at nvmlInit, or one of its instances. */
struct handle { int gpu, instance; };
typedef struct handle *nvmlDevice_t;
enum { WHOLE = -1 };

/* mu guards everything below it. */
static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static struct script script, incoming;
static nvmlReturn_t script_state = DRIVER_NOT_LOADED;
static struct stat script_stat;
static int references, attached_len;
static struct address attached[MAX_GPUS];
static struct handle handles[MAX_GPUS][MAX_INSTANCES + 1];
static int hanging;                   /* threads that a script holds in a call about no GPU */
static int hanging_about[MAX_GPUS];   /* and in a call about this GPU */
static int hanging_waits;             /* and in a wait for events */

/* An event set, and which types it hears of the GPUs there were at nvmlInit. */
struct set {
    int used;
    unsigned long long types[MAX_GPUS];
};
static struct set sets[8];

/* enter begins every call. While a call about no GPU hangs, nobody may make another,
 * but for a wait for events: no second wait may begin then, and no set may be freed.
 * find says the same of the calls about one GPU. */
static void enter(void)
{
    pthread_mutex_lock(&mu);
    if (hanging > 0)
        fprintf(stderr, "fake NVML: a call was made while another hangs\n");
}

static int hanging_in_all(void)
{
    int sum = hanging + hanging_waits;
    for (int i = 0; i < MAX_GPUS; i++)
        sum += hanging_about[i];
    return sum;
}

static nvmlReturn_t parse_file(const char *path, FILE *file)
{
    char line[512], shown[512];
    memset(&incoming, 0, sizeof incoming);
    for (int number = 1; fgets(line, sizeof line, file) != NULL; number++) {
        strcpy(shown, line);
        if (!parse_line(&incoming, line)) {
            shown[strcspn(shown, "\n")] = '\0';
            fprintf(stderr, "fake NVML: %s:%d: cannot read \"%s\"\n", path, number, shown);
            return UNKNOWN;
        }
    }
    script = incoming;
    return OK;
}

/* refresh reads the script again where it changed. No script, no driver. */
static void refresh(void)
{
    struct stat now;
    const char *path = getenv("MUSTER_FAKE_NVML");
    if (path == NULL || stat(path, &now) != 0) {
        script_state = DRIVER_NOT_LOADED;
        memset(&script_stat, 0, sizeof script_stat);
        return;
    }
    if (now.st_ino == script_stat.st_ino && now.st_size == script_stat.st_size &&
        now.st_mtim.tv_sec == script_stat.st_mtim.tv_sec && now.st_mtim.tv_nsec == script_stat.st_mtim.tv_nsec)
        return;
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        script_state = DRIVER_NOT_LOADED;
        return;
    }
    script_state = parse_file(path, file);
    script_stat = now;
    fclose(file);
}

/* script_changes is a descriptor that can be read once something changes in the
 * script's folder, or -1 where there is none. */
static int script_changes(void)
{
    static int fd = -2;
    const char *path = getenv("MUSTER_FAKE_NVML");
    if (fd == -2 && path != NULL) {
        char folder[4096] = ".";
        const char *slash = strrchr(path, '/');
        if (slash != NULL && (size_t)(slash - path) < sizeof folder - 1)
            snprintf(folder, sizeof folder, "%.*s", (int)(slash - path) + 1, path);
        fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
        if (fd >= 0)
            inotify_add_watch(fd, folder, IN_CREATE | IN_DELETE | IN_MOVED_TO | IN_MOVED_FROM | IN_CLOSE_WRITE);
    }
    return fd;
}

/* doze lets other calls in until the script may have changed, at most for
 * limit_ms. Of several that doze one may miss a change, hence the bound. */
static void doze(int limit_ms)
{
    char events[4096];
    struct pollfd changes = {script_changes(), POLLIN, 0};
    pthread_mutex_unlock(&mu);
    if (poll(&changes, 1, limit_ms < 50 ? limit_ms : 50) > 0 && read(changes.fd, events, sizeof events) < 0)
        changes.fd = -1; /* another has read it */
    pthread_mutex_lock(&mu);
    refresh();
}

/* hold keeps the caller until the script no more says that the call hangs. */
static void hold(enum driver_call call)
{
    int *held = call == DRIVER_WAIT ? &hanging_waits : &hanging;
    refresh();
    while (script_state == OK && script.hang[call]) {
        ++*held;
        doze(50);
        --*held;
    }
}

static nvmlReturn_t up(void)
{
    refresh();
    return references > 0 ? script_state : UNINITIALIZED;
}

/* gpu_at is the script's GPU at an address, or NULL. */
static struct gpu *gpu_at(struct address pci)
{
    for (int i = 0; i < script.gpus_len; i++) {
        if (same_address(script.gpus[i].pci, pci))
            return &script.gpus[i];
    }
    return NULL;
}

/* find resolves a handle to the script's GPU, and to an instance for a MIG
 * handle (*instance is NULL for a whole GPU). It holds calls that hang. */
static nvmlReturn_t find(nvmlDevice_t device, enum call call, struct gpu **gpu, struct instance **instance)
{
    nvmlReturn_t ret = up();
    if (ret != OK)
        return ret;
    struct handle *first = &handles[0][0];
    if (device < first || device >= first + MAX_GPUS * (MAX_INSTANCES + 1) || device->gpu >= attached_len)
        return INVALID_ARGUMENT;
    int *about = &hanging_about[device->gpu];
    int counts = call != CALL_ANCESTOR; /* that call is about two GPUs: which of them hangs is not known */
    if (*about > 0)
        fprintf(stderr, "fake NVML: a call about GPU %d was made while another about it hangs\n", device->gpu);
    for (;;) {
        *gpu = gpu_at(attached[device->gpu]);
        if (script_state != OK)
            return script_state;
        if (*gpu == NULL || !(*gpu)->hang[call])
            break;
        *about += counts;
        doze(50);
        *about -= counts;
    }
    if (*gpu == NULL)
        return GPU_IS_LOST;
    if ((*gpu)->fail[call] != OK)
        return (*gpu)->fail[call];
    if (device->instance != WHOLE && device->instance >= (*gpu)->instances_len)
        return NOT_FOUND;
    *instance = device->instance == WHOLE ? NULL : &(*gpu)->instances[device->instance];
    return OK;
}

static nvmlReturn_t answer(char *to, unsigned int length, const char *format, ...)
{
    va_list arguments;
    if (to == NULL)
        return INVALID_ARGUMENT;
    va_start(arguments, format);
    int written = vsnprintf(to, length, format, arguments);
    va_end(arguments);
    return written >= (int)length ? INSUFFICIENT_SIZE : OK;
}

static nvmlReturn_t unlock(nvmlReturn_t ret)
{
    pthread_mutex_unlock(&mu);
    return ret;
}

/* nonsense fills a buffer with what no driver writes: escape sequences, bytes
 * that are no text, and no end. */
static void nonsense(void *to, size_t size)
{
    static const char pattern[] = "\x1b[2J../../etc/x\xff\xfe;$(id)\n";
    for (size_t i = 0; i < size; i++)
        ((char *)to)[i] = pattern[i % (sizeof pattern - 1)];
}

/* NVML's functions. */
static nvmlReturn_t start(void)
{
    hold(DRIVER_INIT);
    if (script_state == OK && script.garbage[DRIVER_INIT])
        return 31337;
    if (references == 0) {
        if (script_state != OK)
            return script_state;
        if (script.init != OK)
            return script.init;
        attached_len = script.gpus_len;
        for (int i = 0; i < attached_len; i++) {
            attached[i] = script.gpus[i].pci;
            for (int j = 0; j <= MAX_INSTANCES; j++)
                handles[i][j] = (struct handle){i, j - 1};
        }
    }
    references++;
    return OK;
}

nvmlReturn_t nvmlInit_v2(void)
{
    enter();
    return unlock(start());
}

nvmlReturn_t nvmlInitWithFlags(unsigned int flags)
{
    (void)flags;
    return nvmlInit_v2();
}

nvmlReturn_t nvmlShutdown(void)
{
    enter();
    if (references == 0)
        return unlock(UNINITIALIZED);
    hold(DRIVER_SHUTDOWN);
    if (references == 1 && hanging_in_all() > 0)
        fprintf(stderr, "fake NVML: the library was shut down while a call hangs\n");
    if (--references == 0)
        memset(sets, 0, sizeof sets);
    return unlock(OK);
}

const char *nvmlErrorString(nvmlReturn_t code)
{
    switch (code) {
    case OK: return "The operation was successful";
    case UNINITIALIZED: return "Uninitialized";
    case INVALID_ARGUMENT: return "Invalid Argument";
    case NOT_SUPPORTED: return "Not Supported";
    case NOT_FOUND: return "Not Found";
    case INSUFFICIENT_SIZE: return "Insufficient Size";
    case DRIVER_NOT_LOADED: return "Driver Not Loaded";
    case TIMEOUT: return "Timeout";
    case GPU_IS_LOST: return "GPU is lost";
    case 18: return "Driver/library version mismatch";
    default: return "Unknown Error";
    }
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length)
{
    enter();
    hold(DRIVER_VERSION);
    nvmlReturn_t ret = up();
    if (ret == OK && script.garbage[DRIVER_VERSION]) {
        nonsense(version, length);
        return unlock(OK);
    }
    return unlock(ret != OK ? ret : answer(version, length, "%s", script.driver));
}

nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned int length)
{
    enter();
    nvmlReturn_t ret = up();
    return unlock(ret != OK ? ret : answer(version, length, "13.%s", script.driver));
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count)
{
    enter();
    hold(DRIVER_COUNT);
    nvmlReturn_t ret = up();
    *count = ret == OK ? (unsigned int)attached_len : 0;
    if (ret == OK && script.garbage[DRIVER_COUNT])
        *count = 0xfffffff0;
    return unlock(ret);
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
{
    struct gpu *gpu;
    struct instance *instance;
    enter();
    if (index >= (unsigned int)attached_len)
        return unlock(references > 0 ? INVALID_ARGUMENT : UNINITIALIZED);
    *device = &handles[index][0];
    return unlock(find(*device, CALL_HANDLE, &gpu, &instance));
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length)
{
    struct gpu *gpu;
    struct instance *instance;
    enter();
    nvmlReturn_t ret = find(device, CALL_UUID, &gpu, &instance);
    if (ret == OK && gpu->garbage[CALL_UUID]) {
        nonsense(uuid, length);
        return unlock(OK);
    }
    return unlock(ret != OK ? ret : answer(uuid, length, "%s", instance == NULL ? gpu->uuid : instance->uuid));
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length)
{
    struct gpu *gpu;
    struct instance *instance;
    enter();
    nvmlReturn_t ret = find(device, CALL_NAME, &gpu, &instance);
    if (ret != OK)
        return unlock(ret);
    if (gpu->garbage[CALL_NAME]) {
        nonsense(name, length);
        return unlock(OK);
    }
    if (instance == NULL)
        return unlock(answer(name, length, "%s", gpu->name));
    if (strcmp(instance->profile, "-") == 0) /* as drivers before R470 */
        return unlock(answer(name, length, "%s", gpu->name));
    return unlock(answer(name, length, "%s MIG %s", gpu->name, instance->profile));
}

static struct use *use_of(struct gpu *gpu, struct instance *instance)
{
    return &gpu->use[instance == NULL ? 0 : instance - gpu->instances + 1];
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *rates)
{
    struct gpu *gpu;
    struct instance *instance;
    enter();
    nvmlReturn_t ret = find(device, CALL_USE, &gpu, &instance);
    if (ret != OK)
        return unlock(ret);
    struct use *use = use_of(gpu, instance);
    *rates = (nvmlUtilization_t){use->percent, use->percent};
    if (gpu->garbage[CALL_USE]) {
        memset(rates, 0xff, sizeof *rates);
        return unlock(OK);
    }
    return unlock(use->measured && gpu->mig != MIG_ON ? OK : NOT_SUPPORTED); /* as the real driver with MIG */
}

#ifndef OLD_DRIVER
nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
    struct gpu *gpu;
    struct instance *instance;
    enter();
    nvmlReturn_t ret = find(device, CALL_MEMORY, &gpu, &instance);
    if (ret != OK)
        return unlock(ret);
    if (memory->version != MEMORY_VERSION_2)
        return unlock(INVALID_ARGUMENT);
    unsigned long long total = instance == NULL ? gpu->memory : instance->mebibytes << 20, used = use_of(gpu, instance)->memory;
    *memory = (nvmlMemory_v2_t){MEMORY_VERSION_2, total, 0, total - used, used};
    if (gpu->garbage[CALL_MEMORY])
        memset(memory, 0xff, sizeof *memory);
    return unlock(OK);
}
#endif

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
    struct gpu *gpu;
    struct instance *instance;
    enter();
    nvmlReturn_t ret = find(device, CALL_MEMORY, &gpu, &instance);
    if (ret != OK)
        return unlock(ret);
    unsigned long long total = instance == NULL ? gpu->memory : instance->mebibytes << 20;
    unsigned long long used = use_of(gpu, instance)->memory;
    *memory = (nvmlMemory_t){total, total - used, used};
    if (gpu->garbage[CALL_MEMORY])
        memset(memory, 0xff, sizeof *memory);
    return unlock(OK);
}

static nvmlReturn_t pci_info(nvmlDevice_t device, nvmlPciInfo_t *pci, size_t size)
{
    struct gpu *gpu;
    struct instance *instance;
    nvmlPciInfo_t out = {0};
    nvmlReturn_t ret = find(device, CALL_PCI, &gpu, &instance);
    if (ret != OK)
        return ret;
    struct address a = gpu->pci;
    out.domain = a.domain;
    out.bus = a.bus;
    out.device = a.device;
    answer(out.busIdLegacy, sizeof out.busIdLegacy, "%04X:%02X:%02X.%X", a.domain & 0xffff, a.bus & 0xff, a.device & 0x1f, a.function & 7);
    answer(out.busId, sizeof out.busId, "%08X:%02X:%02X.%X", a.domain, a.bus, a.device, a.function);
    if (gpu->garbage[CALL_PCI])
        nonsense(&out, sizeof out);
    memcpy(pci, &out, size);
    return OK;
}

#ifdef OLD_DRIVER
/* Version 2 ends before busId. */
nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
    enter();
    return unlock(pci_info(device, pci, offsetof(nvmlPciInfo_t, busId)));
}
#else
nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
    enter();
    return unlock(pci_info(device, pci, sizeof *pci));
}
#endif

nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t a, nvmlDevice_t b, int *level)
{
    struct gpu *gpu_a, *gpu_b;
    struct instance *instance;
    enter();
    nvmlReturn_t ret = find(a, CALL_ANCESTOR, &gpu_a, &instance);
    if (ret == OK)
        ret = find(b, CALL_ANCESTOR, &gpu_b, &instance);
    if (ret != OK)
        return unlock(ret);
    if (gpu_a == gpu_b)
        return unlock(NOT_SUPPORTED); /* as driver 580 answers about one GPU and itself */
    *level = TOPOLOGY_SYSTEM;
    for (int i = 0; i < script.ancestors_len; i++) {
        struct ancestor *x = &script.ancestors[i];
        if ((same_address(x->a, gpu_a->pci) && same_address(x->b, gpu_b->pci)) ||
            (same_address(x->a, gpu_b->pci) && same_address(x->b, gpu_a->pci)))
            *level = x->level;
    }
    if (gpu_a->garbage[CALL_ANCESTOR] || gpu_b->garbage[CALL_ANCESTOR])
        *level = -4242;
    return unlock(OK);
}

static nvmlReturn_t find_link(nvmlDevice_t device, unsigned int index, struct link **link)
{
    struct gpu *gpu;
    struct instance *instance;
    nvmlReturn_t ret = find(device, CALL_NVLINK, &gpu, &instance);
    if (ret != OK)
        return ret;
    static struct link odd = {1, 4242, {0xffffffff, 0xff, 0xff, 0xff}};
    if (gpu->garbage[CALL_NVLINK]) {
        *link = &odd;
        return OK;
    }
    if (gpu->links_len == 0)
        return NOT_SUPPORTED;
    if (index >= (unsigned int)gpu->links_len)
        return INVALID_ARGUMENT;
    *link = &gpu->links[index];
    return OK;
}

nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned int index, int *active)
{
    struct link *link;
    enter();
    nvmlReturn_t ret = find_link(device, index, &link);
    if (ret == OK)
        *active = link->active;
    return unlock(ret);
}

#ifdef OLD_DRIVER
nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo(nvmlDevice_t device, unsigned int index, nvmlPciInfo_t *pci)
#else
nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned int index, nvmlPciInfo_t *pci)
#endif
{
    struct link *link;
    enter();
    nvmlReturn_t ret = find_link(device, index, &link);
    if (ret != OK || !link->active)
        return unlock(ret != OK ? ret : NOT_SUPPORTED);
    struct address a = link->peer;
    if (link->remote == REMOTE_SWITCH)
        a = (struct address){0xfffe, index % 6, 0, 0}; /* no GPU is there */
    memset(pci, 0, offsetof(nvmlPciInfo_t, busId));
    pci->domain = a.domain;
    pci->bus = a.bus;
    pci->device = a.device;
#ifndef OLD_DRIVER
    answer(pci->busId, sizeof pci->busId, "%08X:%02X:%02X.%X", a.domain, a.bus, a.device, a.function);
#endif
    return unlock(OK);
}

#ifndef OLD_DRIVER
typedef struct {
    unsigned char clusterUuid[16];
    nvmlReturn_t status;
    unsigned int cliqueId;
    unsigned char state;
} nvmlGpuFabricInfo_t;
_Static_assert(sizeof(nvmlGpuFabricInfo_t) == 28, "nvmlGpuFabricInfo_t");

typedef struct {
    unsigned int version;
    unsigned char clusterUuid[16];
    nvmlReturn_t status;
    unsigned int cliqueId;
    unsigned char state;
    unsigned int healthMask;
} nvmlGpuFabricInfo_v2_t;
_Static_assert(sizeof(nvmlGpuFabricInfo_v2_t) == 36, "nvmlGpuFabricInfo_v2_t");
enum { FABRIC_VERSION_2 = sizeof(nvmlGpuFabricInfo_v2_t) | 2 << 24, ARGUMENT_VERSION_MISMATCH = 25 };

nvmlReturn_t nvmlDeviceGetGpuFabricInfo(nvmlDevice_t device, nvmlGpuFabricInfo_t *info)
{
    struct gpu *gpu;
    struct instance *instance;
    enter();
    nvmlReturn_t ret = find(device, CALL_FABRIC, &gpu, &instance);
    if (ret != OK || (!gpu->fabric.told && !gpu->garbage[CALL_FABRIC]))
        return unlock(ret != OK ? ret : NOT_SUPPORTED);
    if (gpu->garbage[CALL_FABRIC]) {
        memset(info, 0xff, sizeof *info);
        return unlock(OK);
    }
    memset(info, 0, sizeof *info);
    memcpy(info->clusterUuid, gpu->fabric.cluster, sizeof info->clusterUuid);
    info->status = gpu->fabric.status;
    info->cliqueId = gpu->fabric.clique;
    info->state = gpu->fabric.state;
    return unlock(OK);
}

nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t device, nvmlGpuFabricInfo_v2_t *info)
{
    nvmlGpuFabricInfo_t older;
    if (info->version != FABRIC_VERSION_2)
        return ARGUMENT_VERSION_MISMATCH;
    nvmlReturn_t ret = nvmlDeviceGetGpuFabricInfo(device, &older);
    if (ret != OK)
        return ret;
    memcpy(info->clusterUuid, older.clusterUuid, sizeof info->clusterUuid);
    info->status = older.status;
    info->cliqueId = older.cliqueId;
    info->state = older.state;
    info->healthMask = 0;
    return OK;
}

nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t device, unsigned int index, int *type)
{
    struct link *link;
    enter();
    nvmlReturn_t ret = find_link(device, index, &link);
    if (ret == OK)
        *type = link->remote;
    return unlock(ret);
}

nvmlReturn_t nvmlDeviceGetMemoryAffinity(nvmlDevice_t device, unsigned int words, unsigned long *nodes, unsigned int scope)
{
    struct gpu *gpu;
    struct instance *instance;
    (void)scope;
    enter();
    nvmlReturn_t ret = find(device, CALL_NUMA, &gpu, &instance);
    if (ret == OK && gpu->garbage[CALL_NUMA]) {
        memset(nodes, 0xff, words * sizeof *nodes);
        return unlock(OK);
    }
    if (ret != OK || gpu->numa == NUMA_UNKNOWN)
        return unlock(ret != OK ? ret : NOT_SUPPORTED);
    memset(nodes, 0, words * sizeof *nodes);
    unsigned int bits = 8 * sizeof *nodes;
    if (gpu->numa == NUMA_ANY)
        nodes[0] = 3;
    else if ((unsigned int)gpu->numa / bits < words)
        nodes[gpu->numa / bits] = 1UL << (gpu->numa % bits);
    return unlock(OK);
}

nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int *current, unsigned int *pending)
{
    struct gpu *gpu;
    struct instance *instance;
    enter();
    nvmlReturn_t ret = find(device, CALL_MIG, &gpu, &instance);
    if (ret == OK && gpu->garbage[CALL_MIG]) {
        *current = *pending = 1;
        return unlock(OK);
    }
    if (ret != OK || gpu->mig == MIG_ABSENT)
        return unlock(ret != OK ? ret : NOT_SUPPORTED);
    *current = *pending = gpu->mig == MIG_ON;
    return unlock(OK);
}

nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned int *count)
{
    struct gpu *gpu;
    struct instance *instance;
    enter();
    nvmlReturn_t ret = find(device, CALL_MIG, &gpu, &instance);
    if (ret == OK)
        *count = gpu->garbage[CALL_MIG] ? 0xfffffff0 : gpu->mig == MIG_ON ? MAX_INSTANCES : 0;
    return unlock(ret);
}

nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned int index, nvmlDevice_t *out)
{
    struct gpu *gpu;
    struct instance *instance;
    enter();
    nvmlReturn_t ret = find(device, CALL_MIG, &gpu, &instance);
    if (ret != OK)
        return unlock(ret);
    if (instance != NULL || index >= MAX_INSTANCES)
        return unlock(INVALID_ARGUMENT);
    if (index >= (unsigned int)gpu->instances_len)
        return unlock(NOT_FOUND);
    *out = &handles[device->gpu][index + 1];
    return unlock(OK);
}

nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t device, nvmlDeviceAttributes_t *attributes)
{
    struct gpu *gpu;
    struct instance *instance;
    enter();
    nvmlReturn_t ret = find(device, CALL_MIG, &gpu, &instance);
    if (ret != OK || instance == NULL)
        return unlock(ret != OK ? ret : NOT_SUPPORTED);
    memset(attributes, 0, sizeof *attributes);
    attributes->gpuInstanceSliceCount = instance->gpu_slices;
    attributes->computeInstanceSliceCount = instance->compute_slices;
    attributes->memorySizeMB = instance->mebibytes;
    return unlock(OK);
}
#endif

/* Processes. Version 1 of the calls ends before the instances. */
typedef struct {
    unsigned int pid;
    unsigned long long usedGpuMemory;
} nvmlProcessInfo_v1_t;
typedef struct {
    unsigned int pid;
    unsigned long long usedGpuMemory;
    unsigned int gpuInstanceId, computeInstanceId;
} nvmlProcessInfo_t;
_Static_assert(sizeof(nvmlProcessInfo_v1_t) == 16 && sizeof(nvmlProcessInfo_t) == 24, "nvmlProcessInfo_t");

/* processes fills in those of one kind on a GPU, all its instances included, or
 * on one instance. */
static nvmlReturn_t processes(nvmlDevice_t device, int graphics, unsigned int *count, void *infos, size_t size)
{
    struct gpu *gpu;
    struct instance *instance;
    nvmlReturn_t ret = find(device, CALL_PROCESSES, &gpu, &instance);
    if (ret != OK)
        return ret;
    unsigned int room = *count, n = 0;
    if (gpu->garbage[CALL_PROCESSES]) {
        *count = 0xfffffff0;
        return OK;
    }
    for (int i = 0; i < gpu->processes_len; i++) {
        struct process *p = &gpu->processes[i];
        if (p->graphics != graphics || (instance != NULL && p->instance != (int)(instance - gpu->instances)))
            continue;
        nvmlProcessInfo_t info = {p->pid, 0, NO_INSTANCE, NO_INSTANCE};
        if (n < room)
            memcpy((char *)infos + n * size, &info, size);
        n++;
    }
    *count = n;
    return n > room ? INSUFFICIENT_SIZE : OK;
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_v1_t *infos)
{
    enter();
    return unlock(processes(device, 0, count, infos, sizeof *infos));
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_v1_t *infos)
{
    enter();
    return unlock(processes(device, 1, count, infos, sizeof *infos));
}

#ifndef OLD_DRIVER
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *infos)
{
    enter();
    return unlock(processes(device, 0, count, infos, sizeof *infos));
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *infos)
{
    enter();
    return unlock(processes(device, 1, count, infos, sizeof *infos));
}
#endif

#include "fakeevents.h"
