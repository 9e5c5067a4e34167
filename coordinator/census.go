package coordinator

// DefaultNamespaceAllocations is how many allocations a namespace may have
// stored, where the configuration does not say: the members of jobs count one
// by one, whatever their phase. 10,000 is Slurm's default MaxJobCount; a queued
// job takes about 20 KiB of memory, so a namespace takes about 200 MiB.
const DefaultNamespaceAllocations = 10_000
