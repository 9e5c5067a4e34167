package sysfs

import (
	"bufio"
	"encoding/xml"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/numa"
)

// placement is what another program says about one CPU. Core and L3 name the
// least CPU of the group, since every program counts groups in its own way.
type placement struct{ Socket, Core, L3 int }

// placements gathers, from the open groups at each CPU, what a program said.
type placements struct {
	cpus       map[int]placement
	socket     int
	coreSerial int // groups of the program's text, in order
	l3Serial   int
	firstOf    map[[2]int]int // the first CPU of (kind, serial)
}

func newPlacements() *placements {
	return &placements{cpus: map[int]placement{}, socket: numa.Unknown, l3Serial: numa.Unknown, firstOf: map[[2]int]int{}}
}

const (
	coreKind = iota
	l3Kind
)

func (p *placements) add(cpu int) {
	least := func(kind, serial int) {
		key := [2]int{kind, serial}
		if first, ok := p.firstOf[key]; !ok || cpu < first {
			p.firstOf[key] = cpu
		}
	}
	least(coreKind, p.coreSerial)
	if p.l3Serial != numa.Unknown {
		least(l3Kind, p.l3Serial)
	}
	p.cpus[cpu] = placement{Socket: p.socket, Core: p.coreSerial, L3: p.l3Serial}
}

// done replaces serials by least CPUs.
func (p *placements) done() map[int]placement {
	for cpu, at := range p.cpus {
		at.Core = p.firstOf[[2]int{coreKind, at.Core}]
		if at.L3 != numa.Unknown {
			at.L3 = p.firstOf[[2]int{l3Kind, at.L3}]
		}
		p.cpus[cpu] = at
	}
	return p.cpus
}

// placementsOf says the same of a Topology.
func placementsOf(t *numa.Topology) map[int]placement {
	least := map[int]int{}
	for _, c := range t.CPUs {
		if _, ok := least[c.L3]; !ok {
			least[c.L3] = c.ID
		}
	}
	cpus := map[int]placement{}
	for _, c := range t.CPUs {
		at := placement{Socket: c.Socket, Core: c.Siblings.Min(), L3: numa.Unknown}
		if c.L3 != numa.Unknown {
			at.L3 = least[c.L3]
		}
		cpus[c.ID] = at
	}
	return cpus
}

var consoleObject = regexp.MustCompile(`^(Package|L3Cache|Core|PU) L#\d+ \(`)

// lstopo reads hwloc's console output.
func lstopo(t *testing.T, path string) map[int]placement {
	t.Helper()
	number := regexp.MustCompile(`P#(\d+)`)
	p := newPlacements()
	for _, line := range lines(t, path) {
		line = strings.TrimSpace(line)
		match := consoleObject.FindStringSubmatch(line)
		if match == nil {
			continue
		}
		physical := numa.Unknown
		if m := number.FindStringSubmatch(line); m != nil {
			physical, _ = strconv.Atoi(m[1])
		}
		switch match[1] {
		case "Package":
			p.socket = physical
		case "L3Cache":
			p.l3Serial++
		case "Core":
			p.coreSerial++
		case "PU":
			p.add(physical)
		}
	}
	return p.done()
}

// lstopoXML reads hwloc's XML output.
func lstopoXML(t *testing.T, path string) map[int]placement {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p := newPlacements()
	decoder := xml.NewDecoder(f)
	decoder.Strict = false
	for {
		token, err := decoder.Token()
		if token == nil {
			if len(p.cpus) == 0 {
				t.Fatalf("%s: no PU: %v", path, err)
			}
			return p.done()
		}
		start, ok := token.(xml.StartElement)
		if !ok || start.Name.Local != "object" {
			continue
		}
		attributes := map[string]string{}
		for _, a := range start.Attr {
			attributes[a.Name.Local] = a.Value
		}
		index, _ := strconv.Atoi(attributes["os_index"])
		switch attributes["type"] {
		case "Package":
			p.socket = index
		case "L3Cache":
			p.l3Serial++
		case "Core":
			p.coreSerial++
		case "PU":
			p.add(index)
		}
	}
}

func lines(t *testing.T, path string) []string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []string
	scanner := bufio.NewScanner(f)
	for scanner.Scan() {
		all = append(all, scanner.Text())
	}
	if err := scanner.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// checkAgainstHwloc compares socket, core and L3 group of each CPU with
// hwloc's output for the capture, where there is one.
func checkAgainstHwloc(t *testing.T, capture string, topology *numa.Topology) {
	t.Helper()
	base := strings.TrimSuffix(capture, ".tar.bz2")
	var want map[int]placement
	switch {
	case exists(base + ".xml"):
		want = lstopoXML(t, base+".xml")
	case exists(base + ".console"):
		want = lstopo(t, base+".console")
	default:
		return
	}
	got := placementsOf(topology)
	if filepath.Base(base) == "64amd64-4s2n4ca2co" {
		// hwloc tells the two halves of a Bulldozer module apart by core_id;
		// the kernel calls them sibling threads of a core.
		want, got = withoutCores(want), withoutCores(got)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-hwloc +sysfs):\n%s", diff)
	}
}

func withoutCores(cpus map[int]placement) map[int]placement {
	for cpu, at := range cpus {
		at.Core = 0
		cpus[cpu] = at
	}
	return cpus
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// checkAgainstLscpu compares socket, node and L3 group of each CPU with
// lscpu's output for the capture, where there is one.
func checkAgainstLscpu(t *testing.T, capture string, topology *numa.Topology) {
	t.Helper()
	output := strings.TrimSuffix(capture, ".tar.gz") + ".expected-lscpu.txt"
	if !exists(output) {
		return
	}
	// CPU,Core,Socket,Node,,L1d,L1i,L2,L3; its core numbers repeat within a
	// socket on this host, so they tell nothing about siblings.
	type row struct{ Socket, Node, L3 int }
	want, got := map[int]row{}, map[int]row{}
	for _, line := range lines(t, output) {
		fields := strings.Split(line, ",")
		if len(fields) != 9 || strings.HasPrefix(line, "#") {
			continue
		}
		var n [9]int
		for i, field := range fields {
			n[i], _ = strconv.Atoi(field)
		}
		want[n[0]] = row{Socket: n[2], Node: n[3], L3: n[8]}
	}
	if len(want) != 96 {
		t.Fatalf("%d CPUs in lscpu's output, want 96", len(want))
	}
	for _, c := range topology.CPUs {
		got[c.ID] = row{Socket: c.Socket, Node: c.NUMA, L3: c.L3}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-lscpu +sysfs):\n%s", diff)
	}
}
