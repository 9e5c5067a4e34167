package sysfs

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/musterd/muster/numa"
	"github.com/musterd/muster/resource/bitset"
)

// kindLists are the event sources that x86 kernels register for each kind of
// core of a hybrid processor; their cpus files are lists
// (arch/x86/events/intel/core.c).
var kindLists = [...]struct {
	path string
	kind numa.CoreKind
}{
	{"sys/devices/cpu_core/cpus", numa.Performance},
	{"sys/devices/cpu_atom/cpus", numa.Efficiency},
	{"sys/devices/cpu_lowpower/cpus", numa.LowPower},
}

// setKinds distinguishes the kinds of cores: by the lists of a hybrid x86
// processor, or by the capacities that arm64 and riscv kernels show, or by the
// cores' own design. Where all are alike, or no file reports them, they stay unknown.
func (r *reader) setKinds(cpus []numa.CPU, sets cpuSets) {
	kinds := r.kindsByList()
	if kinds == nil {
		kinds = r.kindsByCapacity(sets)
	}
	if kinds == nil {
		kinds = r.kindsByDesign(sets)
	}
	var seen [numa.LowPower + 1]bool
	differ := 0
	for _, c := range cpus {
		if k := kinds[c.ID]; k != numa.UnknownKind && !seen[k] {
			seen[k] = true
			differ++
		}
	}
	if differ < 2 {
		return
	}
	for i := range cpus {
		cpus[i].Kind = kinds[cpus[i].ID]
	}
}

// kindsByList returns nil where the kernel has no such list.
func (r *reader) kindsByList() map[int]numa.CoreKind {
	var kinds map[int]numa.CoreKind
	var contested bitset.Set
	for _, l := range kindLists {
		cpus, err := r.list(l.path, maxCPU)
		if err != nil {
			if !absent(err) {
				r.warn(l.path, "%v; this kind of core is unknown", err)
			}
			continue
		}
		if kinds == nil {
			kinds = map[int]numa.CoreKind{}
		}
		for id := range cpus.All() {
			if _, taken := kinds[id]; taken {
				contested.Add(id)
			}
			kinds[id] = l.kind
		}
	}
	if !contested.IsEmpty() {
		r.warn("sys/devices", "several kinds of core list cpus %s; their kind is unknown", brief(contested))
	}
	for id := range contested.All() {
		delete(kinds, id)
	}
	return kinds
}

// kindsByCapacity parts cores where their capacities, relative to the host's
// greatest (1024), differ most: those above the widest gap perform. Cores
// within a quarter of each other are one design in several speeds, not kinds.
// Source: Documentation/scheduler/sched-capacity.rst.
func (r *reader) kindsByCapacity(sets cpuSets) map[int]numa.CoreKind {
	capacity := map[int]int{}
	for id := range sets.online.Intersect(sets.folders).All() {
		path := cpuPath(id, "/cpu_capacity")
		n, err := r.number(path)
		if absent(err) {
			return nil // all CPUs have it, or none
		}
		if err == nil && n < 1 {
			err = fmt.Errorf("%d is no capacity", n)
		}
		if err != nil {
			r.warn(path, "%v; the kinds of cores are unknown", err)
			return nil
		}
		capacity[id] = n
	}
	levels := make([]int, 0, len(capacity))
	for _, n := range capacity {
		levels = append(levels, n)
	}
	slices.SortFunc(levels, func(a, b int) int { return cmp.Compare(b, a) })
	threshold := 0 // the least capacity of a performance core
	var upper, lower int64 = 4, 3
	for i := 1; i < len(levels); i++ {
		// levels[i]/levels[i-1] is no more than lower/upper.
		if high, low := int64(levels[i-1]), int64(levels[i]); low*upper <= lower*high {
			threshold, upper, lower = levels[i-1], high, low
		}
	}
	if threshold == 0 {
		return nil
	}
	kinds := make(map[int]numa.CoreKind, len(capacity))
	for id, n := range capacity {
		kinds[id] = numa.Performance
		if n < threshold {
			kinds[id] = numa.Efficiency
		}
	}
	return kinds
}

// kindsByDesign is for trees without the kernel's own word, as most captures
// are. Cores whose level 1 data caches differ in size are of different designs;
// of two designs the one whose slowest core is faster than the fastest of the
// other performs. More than two, or speeds that overlap, report nothing.
func (r *reader) kindsByDesign(sets cpuSets) map[int]numa.CoreKind {
	designs := map[string]bitset.Set{}
	for id := range sets.online.Intersect(sets.folders).All() {
		// Index 0 is the data cache, or all of level 1, on every port.
		size, err := r.text(cpuPath(id, "/cache/index0/size"))
		if err != nil {
			return nil
		}
		set := designs[size]
		set.Add(id)
		designs[size] = set
	}
	if len(designs) != 2 {
		return nil
	}
	type speeds struct{ slowest, fastest int }
	var found []speeds
	var sides []bitset.Set
	for _, size := range slices.Sorted(maps.Keys(designs)) {
		s := speeds{slowest: math.MaxInt}
		for id := range designs[size].All() {
			kHz, err := r.number(cpuPath(id, "/cpufreq/cpuinfo_max_freq"))
			if err != nil || kHz < 1 {
				return nil
			}
			s.slowest, s.fastest = min(s.slowest, kHz), max(s.fastest, kHz)
		}
		found, sides = append(found, s), append(sides, designs[size])
	}
	switch {
	case found[0].slowest > found[1].fastest:
	case found[1].slowest > found[0].fastest:
		sides[0], sides[1] = sides[1], sides[0]
	default:
		return nil
	}
	kinds := make(map[int]numa.CoreKind, sides[0].Len()+sides[1].Len())
	for i, kind := range []numa.CoreKind{numa.Performance, numa.Efficiency} {
		for id := range sides[i].All() {
			kinds[id] = kind
		}
	}
	return kinds
}
