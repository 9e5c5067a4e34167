package sysfs

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/numa"
)

// six is a laptop of six CPUs on one socket.
func six(change tree) tree {
	return machine{cpus: 6, socket: div(6), core: div(1), threads: by(1), memory: map[int]int{-1: 8}, change: change}.tree()
}

// eachCPU writes a file of every CPU, a value for each.
func eachCPU(rest string, values ...string) tree {
	t := tree{}
	for cpu, value := range values {
		t[cpuPath(cpu, rest)] = value + "\n"
	}
	return t
}

func TestTellsTheKindsOfCoresApart(t *testing.T) {
	const core, atom, low = "sys/devices/cpu_core/cpus", "sys/devices/cpu_atom/cpus", "sys/devices/cpu_lowpower/cpus"
	capacities := func(values ...string) tree { return eachCPU("/cpu_capacity", values...) }
	tests := map[string]struct {
		change     tree
		want       string // a letter for each CPU
		wantWarned []string
	}{
		"all alike":                          {nil, "------", nil},
		"Intel's P and E cores":              {tree{core: "0-3\n", atom: "4-5\n"}, "PPPPEE", nil},
		"lists that do not ascend":           {tree{core: "2-3,0-1\n", atom: "5,4\n"}, "PPPPEE", nil},
		"LP E-cores beside them":             {tree{core: "0-1\n", atom: "2-3\n", low: "4-5\n"}, "PPEELL", nil},
		"one kind alone is none":             {tree{core: "0-5\n"}, "------", nil},
		"a CPU that no list names":           {tree{core: "0-3\n", atom: "4\n"}, "PPPPE-", nil},
		"a CPU that two lists name":          {tree{core: "0-3\n", atom: "3-5\n"}, "PPP-EE", []string{"sys/devices"}},
		"a list that is none":                {tree{core: "0-3\n", atom: "some\n"}, "------", []string{atom}},
		"big.LITTLE":                         {capacities("446", "446", "446", "446", "1024", "1024"), "EEEEPP", nil},
		"prime, big and little":              {capacities("1024", "890", "890", "300", "300", "300"), "PPPEEE", nil},
		"speed bins of one design":           {capacities("1024", "1024", "1000", "1000", "900", "800"), "------", nil},
		"one capacity for all":               {capacities("1024", "1024", "1024", "1024", "1024", "1024"), "------", nil},
		"a capacity of nothing":              {capacities("1024", "0", "1024", "1024", "1024", "1024"), "------", []string{cpuPath(1, "/cpu_capacity")}},
		"capacities that do not cover all":   {capacities("1024", "300"), "------", nil},
		"a capacity that is no number":       {capacities("1024", "low"), "------", []string{cpuPath(1, "/cpu_capacity")}},
		"lists win over capacities":          {tree{core: "0-3\n", atom: "4-5\n"}.with(capacities("1", "1", "1", "1", "9", "9")), "PPPPEE", nil},
		"designs that differ, and speeds":    {designs("5000000", "5200000", "3900000"), "PPPPEE", nil},
		"designs that differ, speeds do not": {designs("5000000", "3000000", "3900000"), "------", nil},
		"designs that differ, without speed": {designs("5000000", "x", "3900000"), "------", nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			topology, warnings, err := Read(six(test.change).fs())
			if err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			for _, c := range topology.CPUs {
				got.WriteByte("-PEL"[c.Kind])
			}
			if got.String() != test.want {
				t.Errorf("kinds %s, want %s", got.String(), test.want)
			}
			var warned []string
			for _, w := range warnings {
				warned = append(warned, w.Path)
			}
			if diff := cmp.Diff(test.wantWarned, warned); diff != "" {
				t.Errorf("warned paths (-want +got):\n%s\n%v", diff, warnings)
			}
		})
	}
}

// designs gives CPUs 4 and 5 another level 1 cache than the others, and the
// greatest frequencies of CPU 0, CPUs 1 to 3 and those two.
func designs(first, second, third string) tree {
	t := eachCPU("/cpufreq/cpuinfo_max_freq", first, second, second, second, third, third)
	for cpu := range 6 {
		t[cpuPath(cpu, "/cache/index0/size")] = []string{"48K\n", "32K\n"}[cpu/4]
	}
	return t
}

func TestTheKindOfAnOfflineCPUIsUnknown(t *testing.T) {
	m := machine{cpus: 4, offline: []int{3}, socket: div(4), core: div(1), threads: by(1), memory: map[int]int{-1: 8}}
	m.extra = func(t tree, cpu int) { t[cpuPath(cpu, "/cpu_capacity")] = strconv.Itoa(1024>>(cpu%2)) + "\n" }
	topology, _, err := Read(m.tree().fs())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := topology.CPUs[3].Kind, numa.UnknownKind; got != want || topology.CPUs[1].Kind != numa.Efficiency {
		t.Errorf("kinds %v and %v, want %v and %v", got, topology.CPUs[1].Kind, want, numa.Efficiency)
	}
}
