package sysfs

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/numa"
	"github.com/musterd/muster/resource/bitset"
)

// facts are what a capture's documentation says about it.
type facts struct {
	CPUs, Cores, Sockets, L3Groups int
	Performance, Efficiency        int            // CPUs of a hybrid processor
	Nodes                          map[int]string // present CPUs by node
	MemoryKiB                      map[int]int64
	MemoryOnly                     []int
	FirstRow                       []int
	WarnedPaths                    []string
}

const noIsolated = "sys/devices/system/cpu/isolated"

func TestReadsRealCapturesToTheirFacts(t *testing.T) {
	tests := map[string]*facts{
		"20em64t-hybrid-1p6c2t+2ca4co1t.tar.bz2": {
			CPUs: 20, Cores: 14, Sockets: 1, L3Groups: 1, Performance: 12, Efficiency: 8,
			Nodes: map[int]string{0: "0-19"}, MemoryKiB: map[int]int64{0: 32489480}, FirstRow: []int{10},
		},
		"40intel64-2g2n4c+pcilocality.tar.bz2": {
			CPUs: 40, Cores: 40, Sockets: 4, L3Groups: 4,
			Nodes: map[int]string{
				0: "0,4,8,12,16,20,24,28,32,36", 1: "1,5,9,13,17,21,25,29,33,37",
				2: "2,6,10,14,18,22,26,30,34,38", 3: "3,7,11,15,19,23,27,31,35,39",
			},
			MemoryKiB: map[int]int64{0: 134204252, 1: 134217728, 2: 134217728, 3: 134217728},
			FirstRow:  []int{10, 20, 20, 20}, WarnedPaths: []string{noIsolated},
		},
		"48amd64-4pa2n6c-sparse.tar.bz2": {
			CPUs: 48, Cores: 48, Sockets: 4, L3Groups: 8,
			Nodes: map[int]string{
				0: "0-5", 1: "6-11", 2: "12-17", 33: "18-23", 34: "24-29", 45: "30-35", 72: "36-41", 73: "42-47",
			},
			MemoryKiB: map[int]int64{
				0: 8386460, 1: 16777216, 2: 8388608, 33: 16777216, 34: 8388608, 45: 16777216, 72: 8388608, 73: 16777216,
			},
			FirstRow: []int{10, 16, 16, 22, 16, 22, 16, 22},
			// The capture's has_cpu is empty.
			WarnedPaths: []string{noIsolated, nodeDir + "/has_cpu"},
		},
		"64amd64-4s2n4ca2co.tar.bz2": {
			CPUs: 64, Cores: 32, Sockets: 4, L3Groups: 8,
			Nodes: map[int]string{
				0: "0-7", 1: "8-15", 2: "16-23", 3: "24-31", 4: "32-39", 5: "40-47", 6: "48-55", 7: "56-63",
			},
			MemoryKiB: map[int]int64{
				0: 16769836, 1: 16777216, 2: 16777216, 3: 16777216, 4: 16777216, 5: 8388608, 6: 16777216, 7: 16760832,
			},
			FirstRow: []int{10, 16, 16, 22, 16, 22, 16, 22}, WarnedPaths: []string{noIsolated},
		},
		"fakememinitiators-1np2c+1npp+gi.tar.bz2": {
			CPUs: 8, Cores: 8, Sockets: 2, L3Groups: 0,
			Nodes: map[int]string{
				0: "0-1", 1: "2-3", 2: "4-5", 3: "6-7", 4: "", 5: "", 6: "", 7: "", 8: "", 9: "", 10: "",
			},
			MemoryKiB: map[int]int64{
				0: 0, 1: 0, 2: 0, 3: 0, 4: 0, 5: 97447340, 6: 99090348, 7: 778043392, 8: 97542052, 9: 99051020, 10: 780140544,
			},
			MemoryOnly: []int{5, 6, 7, 8, 9, 10},
			FirstRow:   []int{10, 21, 13, 21, 12, 11, 14, 17, 21, 21, 28},
			// Its CPUs have no memory of their own.
			WarnedPaths: []string{nodeDir},
		},
		"memorysidecaches.tar.bz2": {
			CPUs: 80, Cores: 40, Sockets: 2, L3Groups: 2,
			Nodes: map[int]string{
				0: stride(0, 4, 80), 1: stride(1, 4, 80), 2: stride(2, 4, 80), 3: stride(3, 4, 80),
			},
			MemoryKiB: map[int]int64{0: 388492316, 1: 390163848, 2: 390163840, 3: 390162812},
			FirstRow:  []int{10, 21, 11, 21},
		},
		"nri-cpuallocator-2s4n40c-snc.tar.bz2": {
			// The capture was given the lists of a hybrid processor.
			CPUs: 80, Cores: 40, Sockets: 2, L3Groups: 2, Performance: 64, Efficiency: 16,
			Nodes: map[int]string{
				0: "0-2,5-6,10-12,15-16,40-42,45-46,50-52,55-56", 1: "3-4,7-9,13-14,17-19,43-44,47-49,53-54,57-59",
				2: "20-22,25-26,30-32,35-36,60-62,65-66,70-72,75-76", 3: "23-24,27-29,33-34,37-39,63-64,67-69,73-74,77-79",
			},
			MemoryKiB: map[int]int64{0: 48005604, 1: 49507804, 2: 49540688, 3: 49539172},
			FirstRow:  []int{10, 11, 21, 21},
		},
		"nvidiagpunumanodes.tar.bz2": {
			CPUs: 32, Cores: 8, Sockets: 2, L3Groups: 4,
			Nodes: map[int]string{0: "0-15", 8: "88-103", 250: "", 251: "", 252: "", 253: "", 254: "", 255: ""},
			MemoryKiB: map[int]int64{
				0: 129839104, 8: 133952000,
				250: 15360 << 10, 251: 15360 << 10, 252: 15360 << 10, 253: 15360 << 10, 254: 15360 << 10, 255: 15360 << 10,
			},
			MemoryOnly: []int{250, 251, 252, 253, 254, 255},
			FirstRow:   []int{10, 40, 80, 80, 80, 80, 80, 80},
			// The capture lacks most CPUs that its nodes list.
			WarnedPaths: []string{nodePath(0, "/cpulist"), nodePath(8, "/cpulist")},
		},
		"utillinux-x86_64-epyc_7451.tar.gz": {
			CPUs: 96, Cores: 48, Sockets: 2, L3Groups: 16,
			Nodes: map[int]string{
				0: "0-5,48-53", 1: "6-11,54-59", 2: "12-17,60-65", 3: "18-23,66-71",
				4: "24-29,72-77", 5: "30-35,78-83", 6: "36-41,84-89", 7: "42-47,90-95",
			},
			MemoryKiB: map[int]int64{0: 0, 1: 0, 2: 0, 3: 0, 4: 0, 5: 0, 6: 0, 7: 0},
			WarnedPaths: []string{
				nodeDir + "/online", nodeDir, nodePath(0, "/distance"),
			},
		},
	}
	archives, err := filepath.Glob(filepath.Join(captureDir(t), "*.tar.*"))
	if err != nil || len(archives) == 0 {
		t.Fatalf("no captures: %v", err)
	}
	for _, archive := range archives {
		name := filepath.Base(archive)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkCapture(t, archive, tests[name])
		})
	}
}

// checkCapture compares what is read with what is documented, if anything, and
// with what other programs and a naive reader make of the same tree.
func checkCapture(t *testing.T, archive string, documented *facts) {
	dir := extract(t, archive)
	topology, warnings, err := Read(os.DirFS(dir))
	if err != nil {
		t.Fatal(err)
	}
	if documented != nil {
		if diff := cmp.Diff(*documented, factsOf(topology, warnings)); diff != "" {
			t.Errorf("facts (-want +got):\n%s", diff)
		}
	}
	if diff := cmp.Diff(naive{dir}.read(), toldBy(topology)); diff != "" {
		t.Errorf("(-naive +sysfs):\n%s", diff)
	}
	checkAgainstHwloc(t, archive, topology)
	checkAgainstLscpu(t, archive, topology)
	if len(topology.CPUs) > 32 {
		return // such a tree is walked folder by folder for each file
	}
	fsys, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	confined, _, err := Read(fsys)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(topology, confined); diff != "" {
		t.Errorf("through Open (-DirFS +Open):\n%s", diff)
	}
}

// stride prints first, first+step, … below end.
func stride(first, step, end int) string {
	var s bitset.Set
	for i := first; i < end; i += step {
		s.Add(i)
	}
	return s.String()
}

func factsOf(t *numa.Topology, warnings []Warning) facts {
	f := facts{
		CPUs: len(t.CPUs), Cores: t.Cores(), Sockets: t.Sockets(),
		Nodes: map[int]string{}, MemoryKiB: map[int]int64{},
	}
	var l3 bitset.Set
	for _, c := range t.CPUs {
		if c.L3 != numa.Unknown {
			l3.Add(c.L3)
		}
		switch c.Kind {
		case numa.Performance:
			f.Performance++
		case numa.Efficiency:
			f.Efficiency++
		}
	}
	f.L3Groups = l3.Len()
	for _, n := range t.Nodes {
		f.Nodes[n.ID] = n.CPUs.String()
		f.MemoryKiB[n.ID] = int64(n.Memory >> 10)
		if n.MemoryOnly {
			f.MemoryOnly = append(f.MemoryOnly, n.ID)
		}
	}
	if t.Distances != nil {
		f.FirstRow = slices.Clone(t.Distances[0])
	}
	for _, w := range warnings {
		f.WarnedPaths = append(f.WarnedPaths, w.Path)
	}
	return f
}

func TestPCINodeOfARealCapture(t *testing.T) {
	dir := extract(t, filepath.Join(captureDir(t), "40intel64-2g2n4c+pcilocality.tar.bz2"))
	type answer struct {
		Node int
		OK   bool
	}
	for busID, want := range map[string]answer{
		"0000:02:00.0":     {numa.Unknown, true},
		"0000:43:00.0":     {2, true},
		"00000000:43:00.0": {2, true},
		"0000:44:00.0":     {numa.Unknown, false},
	} {
		node, ok := PCINode(os.DirFS(dir), busID)
		if got := (answer{node, ok}); got != want {
			t.Errorf("PCINode(%s) = %v, want %v", busID, got, want)
		}
	}
}

func BenchmarkReadOf96CPUs(b *testing.B) {
	fsys := os.DirFS(extract(b, filepath.Join(captureDir(b), "utillinux-x86_64-epyc_7451.tar.gz")))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := Read(fsys); err != nil {
			b.Fatal(err)
		}
	}
}
