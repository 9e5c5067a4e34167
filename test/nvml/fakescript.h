//go:build ignore

/*
 * The language of the fake library's scripts: what a script can say (struct
 * script) and how one line of it is read (parse_line). README.md beside this
 * file describes it for people. fakenvml.c includes this file once.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum {
    MAX_GPUS = 72, /* more than Muster takes */
    MAX_LINKS = 36,
    MAX_INSTANCES = 20, /* more than Muster takes */
    MAX_XIDS = 64,
    MAX_PROCESSES = 64,
    MAX_ANCESTORS = MAX_GPUS * (MAX_GPUS - 1) / 2,
    MAX_TEXT = 96,
};

/* Numbers of nvml.h, version 13. */
typedef int nvmlReturn_t;
enum {
    OK = 0,
    UNINITIALIZED = 1,
    INVALID_ARGUMENT = 2,
    NOT_SUPPORTED = 3,
    NOT_FOUND = 6,
    INSUFFICIENT_SIZE = 7,
    DRIVER_NOT_LOADED = 9,
    TIMEOUT = 10,
    GPU_IS_LOST = 15,
    UNKNOWN = 999,
};
enum { REMOTE_GPU = 0, REMOTE_SWITCH = 2 };

/* What a script says. */
enum call {
    CALL_HANDLE, CALL_PCI, CALL_UUID, CALL_NAME, CALL_MEMORY, CALL_NUMA, CALL_NVLINK, CALL_ANCESTOR, CALL_MIG,
    CALL_ECC, CALL_RETIRED, CALL_ROWS, CALL_EVENTS, CALL_PROCESSES, CALL_USE, CALL_FABRIC, CALLS
};
static const char *const call_names[CALLS] = {
    "handle", "pci", "uuid", "name", "memory", "numa", "nvlink", "ancestor", "mig", "ecc", "retired", "rows", "events",
    "processes", "use", "fabric",
};
/* Calls that are about no GPU. */
enum driver_call { DRIVER_INIT, DRIVER_SHUTDOWN, DRIVER_COUNT, DRIVER_WAIT, DRIVER_VERSION, DRIVER_CALLS };
static const char *const driver_call_names[DRIVER_CALLS] = {"init", "shutdown", "count", "wait", "version"};

enum { NUMA_UNKNOWN = -1, NUMA_ANY = -2 };
enum { MIG_ABSENT, MIG_OFF, MIG_ON };
enum { RETIRED_ABSENT, RETIRED_NONE, RETIRED_PENDING };
enum { NO_INSTANCE = -1 };

struct address { unsigned int domain, bus, device, function; };

struct link {
    int active, remote;
    struct address peer;
};

struct instance {
    char uuid[MAX_TEXT], profile[MAX_TEXT];
    unsigned long long mebibytes;
    unsigned int gpu_slices, compute_slices;
};

struct xid {
    unsigned long long code;
    int instance; /* GPU instance, or NO_INSTANCE */
};

/* What runs on a GPU, or on one of its instances. */
struct process {
    unsigned int pid;
    int graphics;
    int instance; /* place of the MIG instance, or NO_INSTANCE */
};

/* The use of a GPU, or of one of its instances. */
struct use {
    int measured; /* whether the library knows percent */
    unsigned int percent;
    unsigned long long memory;
};

/* Remapped rows. */
struct rows {
    int told, pending, failed;
    unsigned int corrected, uncorrected;
};

/* The registration with the NVLink fabric. */
struct fabric {
    int told;
    unsigned char cluster[16];
    unsigned int clique, state, status;
};

struct gpu {
    struct address pci;
    char uuid[MAX_TEXT], name[MAX_TEXT];
    unsigned long long memory;
    int numa, mig, links_len, instances_len;
    nvmlReturn_t fail[CALLS];
    int hang[CALLS];
    int garbage[CALLS];
    int lost, ecc, retired, xids_len;
    unsigned long long corrected, uncorrected; /* of ecc */
    struct rows rows;
    struct fabric fabric;
    struct xid xids[MAX_XIDS];
    int processes_len;
    struct process processes[MAX_PROCESSES];
    struct use use[MAX_INSTANCES + 1]; /* of the GPU, then of its instances */
    struct link links[MAX_LINKS];
    struct instance instances[MAX_INSTANCES];
};

struct ancestor {
    struct address a, b;
    int level;
};

struct script {
    char driver[MAX_TEXT];
    nvmlReturn_t init;
    int hang[DRIVER_CALLS];
    int garbage[DRIVER_CALLS];
    int gpus_len, ancestors_len;
    struct gpu gpus[MAX_GPUS];
    struct ancestor ancestors[MAX_ANCESTORS];
};

static int same_address(struct address a, struct address b)
{
    return a.domain == b.domain && a.bus == b.bus && a.device == b.device && a.function == b.function;
}

static int parse_address(const char *text, struct address *out)
{
    int end = 0;
    return sscanf(text, "%x:%x:%x.%x%n", &out->domain, &out->bus, &out->device, &out->function, &end) == 4 && text[end] == '\0';
}

static int copy(char *to, size_t size, const char *from)
{
    if (strlen(from) >= size)
        return 0;
    strcpy(to, from);
    return 1;
}

/* Lines within a GPU's section. They return 0 on a line they cannot read. */
static int parse_nvlink(struct gpu *g, const char *rest)
{
    char peer[MAX_TEXT];
    int count;
    struct link link = {1, REMOTE_GPU, {0}};
    if (sscanf(rest, "%95s %d", peer, &count) != 2 || count < 0 || g->links_len + count > MAX_LINKS)
        return 0;
    if (strcmp(peer, "down") == 0)
        link.active = 0;
    else if (strcmp(peer, "switch") == 0)
        link.remote = REMOTE_SWITCH;
    else if (!parse_address(peer, &link.peer))
        return 0;
    while (count-- > 0)
        g->links[g->links_len++] = link;
    return 1;
}

static int parse_mig(struct gpu *g, const char *rest)
{
    g->mig = strcmp(rest, "on") == 0 ? MIG_ON : MIG_OFF;
    return g->mig == MIG_ON || strcmp(rest, "off") == 0;
}

static int parse_instance(struct gpu *g, const char *rest)
{
    struct instance *m = &g->instances[g->instances_len];
    if (g->mig != MIG_ON || g->instances_len == MAX_INSTANCES)
        return 0;
    g->instances_len++;
    return sscanf(rest, "%95s %95s %llu %u %u", m->uuid, m->profile, &m->mebibytes, &m->gpu_slices, &m->compute_slices) == 5;
}

/* index_of is the place of a name, or -1. */
static int index_of(const char *name, const char *const names[], int len)
{
    for (int i = 0; i < len; i++) {
        if (strcmp(name, names[i]) == 0)
            return i;
    }
    return -1;
}

static int parse_fail(struct gpu *g, const char *rest)
{
    char call[MAX_TEXT];
    int code;
    if (sscanf(rest, "%95s %d", call, &code) != 2)
        return 0;
    int i = index_of(call, call_names, CALLS);
    if (i >= 0)
        g->fail[i] = code;
    return i >= 0;
}

static int parse_hang(int hang[], const char *rest, const char *const names[], int len)
{
    int call = index_of(rest, names, len);
    if (call >= 0)
        hang[call] = 1;
    return call >= 0;
}

static int parse_xid(struct gpu *g, const char *rest)
{
    if (g->xids_len == MAX_XIDS)
        return 0;
    struct xid *x = &g->xids[g->xids_len++];
    x->instance = NO_INSTANCE;
    return sscanf(rest, "%llu %d", &x->code, &x->instance) >= 1;
}

static int parse_process(struct gpu *g, const char *rest)
{
    char kind[MAX_TEXT];
    if (g->processes_len == MAX_PROCESSES)
        return 0;
    struct process *p = &g->processes[g->processes_len++];
    p->instance = NO_INSTANCE;
    if (sscanf(rest, "%95s %u %d", kind, &p->pid, &p->instance) < 2)
        return 0;
    p->graphics = strcmp(kind, "graphics") == 0;
    return p->graphics || strcmp(kind, "compute") == 0;
}

static int parse_use(struct gpu *g, const char *rest)
{
    char percent[MAX_TEXT];
    unsigned long long memory;
    int instance = NO_INSTANCE;
    if (sscanf(rest, "%95s %llu %d", percent, &memory, &instance) < 2 || instance < NO_INSTANCE || instance >= MAX_INSTANCES)
        return 0;
    struct use *u = &g->use[instance + 1];
    u->memory = memory;
    u->measured = strcmp(percent, "-") != 0;
    return !u->measured || sscanf(percent, "%u", &u->percent) == 1;
}

static int parse_ecc(struct gpu *g, const char *rest)
{
    g->ecc = 1;
    return sscanf(rest, "%llu %llu", &g->corrected, &g->uncorrected) == 2;
}

static int parse_retired(struct gpu *g, const char *rest)
{
    g->retired = strcmp(rest, "pending") == 0 ? RETIRED_PENDING : RETIRED_NONE;
    return g->retired == RETIRED_PENDING || strcmp(rest, "none") == 0;
}

static int parse_rows(struct gpu *g, const char *rest)
{
    char first[MAX_TEXT] = "", second[MAX_TEXT] = "";
    g->rows.told = 1;
    if (sscanf(rest, "%u %u %95s %95s", &g->rows.corrected, &g->rows.uncorrected, first, second) < 2)
        return 0;
    g->rows.pending = strcmp(first, "pending") == 0;
    g->rows.failed = strcmp(g->rows.pending ? second : first, "failed") == 0;
    return (first[0] == '\0' || g->rows.pending || g->rows.failed) && (second[0] == '\0' || (g->rows.pending && g->rows.failed));
}

/* fabric CLUSTER-UUID CLIQUE [STATE [STATUS]] */
static int parse_fabric(struct gpu *g, const char *rest)
{
    char text[MAX_TEXT];
    struct fabric f = {.told = 1, .state = 3};
    if (sscanf(rest, "%95s %u %u %u", text, &f.clique, &f.state, &f.status) < 2)
        return 0;
    size_t digits = 0;
    for (const char *c = text; *c != '\0'; c++) {
        unsigned int digit;
        if (*c == '-')
            continue;
        if (digits == 2 * sizeof f.cluster || !isxdigit((unsigned char)*c))
            return 0;
        digit = isdigit((unsigned char)*c) ? *c - '0' : tolower((unsigned char)*c) - 'a' + 10;
        f.cluster[digits / 2] = f.cluster[digits / 2] << 4 | digit;
        digits++;
    }
    g->fabric = f;
    return digits == 2 * sizeof f.cluster;
}

static int parse_lost(struct gpu *g)
{
    g->lost = 1;
    for (int i = CALL_UUID; i < CALLS; i++)
        g->fail[i] = GPU_IS_LOST;
    return 1;
}

static int parse_numa(struct gpu *g, const char *rest)
{
    if (strcmp(rest, "any") == 0) {
        g->numa = NUMA_ANY;
        return 1;
    }
    return sscanf(rest, "%d", &g->numa) == 1 && g->numa >= NUMA_UNKNOWN;
}

static int parse_gpu_line(struct gpu *g, const char *word, const char *rest)
{
    if (strcmp(word, "uuid") == 0)
        return copy(g->uuid, sizeof g->uuid, rest);
    if (strcmp(word, "name") == 0)
        return copy(g->name, sizeof g->name, rest);
    if (strcmp(word, "memory") == 0)
        return sscanf(rest, "%llu", &g->memory) == 1;
    if (strcmp(word, "numa") == 0)
        return parse_numa(g, rest);
    if (strcmp(word, "nvlink") == 0)
        return parse_nvlink(g, rest);
    if (strcmp(word, "mig") == 0)
        return parse_mig(g, rest);
    if (strcmp(word, "instance") == 0)
        return parse_instance(g, rest);
    if (strcmp(word, "fail") == 0)
        return parse_fail(g, rest);
    if (strcmp(word, "lost") == 0)
        return parse_lost(g);
    if (strcmp(word, "hang") == 0)
        return parse_hang(g->hang, rest, call_names, CALLS);
    if (strcmp(word, "garbage") == 0)
        return parse_hang(g->garbage, rest, call_names, CALLS);
    if (strcmp(word, "xid") == 0)
        return parse_xid(g, rest);
    if (strcmp(word, "process") == 0)
        return parse_process(g, rest);
    if (strcmp(word, "use") == 0)
        return parse_use(g, rest);
    if (strcmp(word, "fabric") == 0)
        return parse_fabric(g, rest);
    if (strcmp(word, "ecc") == 0)
        return parse_ecc(g, rest);
    if (strcmp(word, "retired") == 0)
        return parse_retired(g, rest);
    if (strcmp(word, "rows") == 0)
        return parse_rows(g, rest);
    return 0;
}

static int parse_gpu(struct script *s, const char *rest)
{
    if (s->gpus_len == MAX_GPUS)
        return 0;
    struct gpu *g = &s->gpus[s->gpus_len++];
    g->numa = NUMA_UNKNOWN;
    return parse_address(rest, &g->pci);
}

static int parse_ancestor(struct script *s, const char *rest)
{
    char a[MAX_TEXT], b[MAX_TEXT];
    if (s->ancestors_len == MAX_ANCESTORS)
        return 0;
    struct ancestor *out = &s->ancestors[s->ancestors_len++];
    return sscanf(rest, "%95s %95s %d", a, b, &out->level) == 3 && parse_address(a, &out->a) && parse_address(b, &out->b);
}

static int parse_line(struct script *s, char *line)
{
    char *word = line + strspn(line, " \t");
    char *end = word + strlen(word);
    while (end > word && isspace((unsigned char)end[-1]))
        *--end = '\0';
    if (*word == '\0' || *word == '#')
        return 1;
    char *rest = word + strcspn(word, " \t");
    if (*rest != '\0') {
        *rest++ = '\0';
        rest += strspn(rest, " \t");
    }
    if (strcmp(word, "driver") == 0)
        return copy(s->driver, sizeof s->driver, rest);
    if (strcmp(word, "init") == 0)
        return sscanf(rest, "%d", &s->init) == 1;
    if (strcmp(word, "gpu") == 0)
        return parse_gpu(s, rest);
    if (strcmp(word, "ancestor") == 0)
        return parse_ancestor(s, rest);
    if (s->gpus_len == 0)
        return parse_hang(strcmp(word, "hang") == 0 ? s->hang : s->garbage, rest, driver_call_names, DRIVER_CALLS) &&
               (strcmp(word, "hang") == 0 || strcmp(word, "garbage") == 0);
    return parse_gpu_line(&s->gpus[s->gpus_len - 1], word, rest);
}
