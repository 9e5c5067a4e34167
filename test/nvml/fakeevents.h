//go:build ignore

/*
 * What happens to the GPUs of the fake library while it is up: memory errors,
 * pages and rows that wait for a reset, and events. fakenvml.c includes this
 * file once, at its end.
 */
#include <time.h>

/* What an event set delivers. Version 1 of the call ends before the instances. */
typedef struct {
    struct handle *device;
    unsigned long long eventType, eventData;
    unsigned int gpuInstanceId, computeInstanceId;
} nvmlEventData_t;
_Static_assert(sizeof(nvmlEventData_t) == 32, "nvmlEventData_t");
_Static_assert(offsetof(nvmlEventData_t, gpuInstanceId) == 24, "nvmlEventData_t.gpuInstanceId");

typedef struct {
    struct set *handle;
} nvmlEventSet_t;

enum { EVENT_DOUBLE_BIT_ECC = 2, EVENT_XID = 8 };

/* What was delivered of a GPU's events, for as long as the process lives. */
struct delivered {
    struct address pci;
    int xids;
    unsigned long long uncorrected;
};
static struct delivered delivered[4 * MAX_GPUS];
static int delivered_len;

/* Errors. */
nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, int error, int counter, unsigned long long *count)
{
    struct gpu *gpu;
    struct instance *instance;
    enter();
    nvmlReturn_t ret = find(device, CALL_ECC, &gpu, &instance);
    if (ret != OK || instance != NULL || !gpu->ecc)
        return unlock(ret != OK ? ret : NOT_SUPPORTED);
    if (error < 0 || error > 1 || counter != 0) /* counted since the driver was loaded alone */
        return unlock(INVALID_ARGUMENT);
    if (gpu->garbage[CALL_ECC]) {
        static unsigned long long odd = 1ULL << 63;
        *count = odd = ~odd;
        return unlock(OK);
    }
    *count = error == 0 ? gpu->corrected : gpu->uncorrected;
    return unlock(OK);
}

nvmlReturn_t nvmlDeviceGetRetiredPagesPendingStatus(nvmlDevice_t device, int *pending)
{
    struct gpu *gpu;
    struct instance *instance;
    enter();
    nvmlReturn_t ret = find(device, CALL_RETIRED, &gpu, &instance);
    if (ret != OK || gpu->retired == RETIRED_ABSENT)
        return unlock(ret != OK ? ret : NOT_SUPPORTED);
    *pending = gpu->garbage[CALL_RETIRED] ? 4242 : gpu->retired == RETIRED_PENDING;
    return unlock(OK);
}

#ifndef OLD_DRIVER
/* As with the real library, a GPU with MIG instances does not tell its rows. */
nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned int *corrected, unsigned int *uncorrected, unsigned int *pending,
                                       unsigned int *failed)
{
    struct gpu *gpu;
    struct instance *instance;
    enter();
    nvmlReturn_t ret = find(device, CALL_ROWS, &gpu, &instance);
    if (ret != OK || !gpu->rows.told || gpu->instances_len > 0)
        return unlock(ret != OK ? ret : NOT_SUPPORTED);
    *corrected = gpu->rows.corrected;
    *uncorrected = gpu->rows.uncorrected;
    *pending = gpu->rows.pending;
    *failed = gpu->rows.failed;
    if (gpu->garbage[CALL_ROWS])
        *corrected = *uncorrected = *pending = *failed = 0xffffffff;
    return unlock(OK);
}
#endif

/* Events. */

/* delivered_of is the account of a GPU's events, new where there is none. */
static struct delivered *delivered_of(struct gpu *gpu)
{
    for (int i = 0; i < delivered_len; i++) {
        if (same_address(delivered[i].pci, gpu->pci))
            return &delivered[i];
    }
    if (delivered_len == (int)(sizeof delivered / sizeof delivered[0]))
        delivered_len = 0;
    struct delivered *d = &delivered[delivered_len++];
    *d = (struct delivered){gpu->pci, 0, gpu->uncorrected};
    return d;
}

nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set)
{
    enter();
    nvmlReturn_t ret = up();
    if (ret != OK || set == NULL)
        return unlock(ret != OK ? ret : INVALID_ARGUMENT);
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++) {
        if (!sets[i].used) {
            sets[i].used = 1;
            set->handle = &sets[i];
            return unlock(OK);
        }
    }
    return unlock(UNKNOWN);
}

/* known_set refuses what nvmlEventSetCreate did not make, or was freed. */
static int known_set(nvmlEventSet_t set)
{
    return set.handle >= sets && set.handle < sets + sizeof sets / sizeof sets[0] && set.handle->used;
}

nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set)
{
    enter();
    if (hanging_waits > 0)
        fprintf(stderr, "fake NVML: an event set was freed while a wait for events hangs\n");
    if (references == 0 || !known_set(set))
        return unlock(references == 0 ? UNINITIALIZED : INVALID_ARGUMENT);
    memset(set.handle, 0, sizeof *set.handle);
    return unlock(OK);
}

static unsigned long long event_types(struct gpu *gpu) { return EVENT_XID | (gpu->ecc ? EVENT_DOUBLE_BIT_ECC : 0); }

nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, unsigned long long *types)
{
    struct gpu *gpu;
    struct instance *instance;
    enter();
    nvmlReturn_t ret = find(device, CALL_EVENTS, &gpu, &instance);
    if (ret == OK)
        *types = gpu->garbage[CALL_EVENTS] ? ~0ULL : event_types(gpu);
    return unlock(ret);
}

nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set)
{
    struct gpu *gpu;
    struct instance *instance;
    enter();
    nvmlReturn_t ret = find(device, CALL_EVENTS, &gpu, &instance);
    if (ret != OK)
        return unlock(ret);
    if (!known_set(set) || types == 0)
        return unlock(INVALID_ARGUMENT);
    if (instance != NULL || (types & ~event_types(gpu)) != 0)
        return unlock(NOT_SUPPORTED);
    delivered_of(gpu)->uncorrected = gpu->uncorrected; /* errors before are not recorded */
    set.handle->types[device->gpu] |= types;
    return unlock(OK);
}

/* next_event takes an event of one GPU that was not delivered yet. */
static int next_event(int index, unsigned long long types, nvmlEventData_t *data)
{
    struct gpu *gpu = gpu_at(attached[index]);
    if (gpu == NULL || gpu->lost)
        return 0;
    struct delivered *d = delivered_of(gpu);
    *data = (nvmlEventData_t){&handles[index][0], 0, 0, NO_INSTANCE, NO_INSTANCE};
    if (d->xids > gpu->xids_len)
        d->xids = gpu->xids_len;
    if ((types & EVENT_XID) && d->xids < gpu->xids_len) {
        struct xid *x = &gpu->xids[d->xids++];
        data->eventType = EVENT_XID;
        data->eventData = x->code;
        data->gpuInstanceId = x->instance;
        return 1;
    }
    int rose = gpu->uncorrected > d->uncorrected;
    d->uncorrected = gpu->uncorrected;
    data->eventType = EVENT_DOUBLE_BIT_ECC;
    return (types & EVENT_DOUBLE_BIT_ECC) && rose;
}

/* look is one look at the set: an event, a lost GPU, or TIMEOUT. */
static nvmlReturn_t look(struct set *set, nvmlEventData_t *data)
{
    nvmlReturn_t ret = up();
    for (int i = 0; ret == OK && i < attached_len; i++) {
        if (set->types[i] != 0 && next_event(i, set->types[i], data))
            return OK;
    }
    for (int i = 0; ret == OK && i < attached_len; i++) {
        struct gpu *gpu = gpu_at(attached[i]);
        if (set->types[i] != 0 && (gpu == NULL || gpu->lost))
            return GPU_IS_LOST;
    }
    return ret != OK ? ret : TIMEOUT;
}

static long long now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

static nvmlReturn_t wait_for_event(nvmlEventSet_t set, nvmlEventData_t *data, size_t size, unsigned int timeout_ms)
{
    nvmlEventData_t event;
    long long end = now_ms() + timeout_ms;
    if (hanging_waits > 0)
        fprintf(stderr, "fake NVML: a wait for events began while another hangs\n");
    hold(DRIVER_WAIT);
    if (script_state == OK && script.garbage[DRIVER_WAIT]) {
        memset(&event, 0xff, sizeof event);
        event.eventType = EVENT_XID;
        memcpy(data, &event, size);
        return OK;
    }
    for (;;) {
        if (references == 0)
            return UNINITIALIZED;
        if (!known_set(set))
            return INVALID_ARGUMENT;
        nvmlReturn_t ret = look(set.handle, &event);
        if (ret == OK)
            memcpy(data, &event, size);
        long long left = end - now_ms();
        if (ret != TIMEOUT || left <= 0)
            return ret;
        doze((int)left);
    }
}

/* Version 1 ends before the instances. */
nvmlReturn_t nvmlEventSetWait(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeout_ms)
{
    enter();
    return unlock(wait_for_event(set, data, offsetof(nvmlEventData_t, gpuInstanceId), timeout_ms));
}

#ifndef OLD_DRIVER
nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeout_ms)
{
    enter();
    return unlock(wait_for_event(set, data, sizeof *data, timeout_ms));
}
#endif
