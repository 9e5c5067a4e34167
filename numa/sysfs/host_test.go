package sysfs

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/numa"
)

func TestReadsTheHostsIdentity(t *testing.T) {
	healthy := Host{Hostname: "node-7", BootID: "0d8f2c6e-6a0b-4f0e-9d5b-6b1c7c3f2a10", Kernel: "6.1.0-28-amd64"}
	without := func(change func(*Host)) Host { h := healthy; change(&h); return h }
	const hostname, bootID, kernel = "proc/sys/kernel/hostname", "proc/sys/kernel/random/boot_id", "proc/sys/kernel/osrelease"
	tests := map[string]struct {
		put        tree
		gone       []string
		want       Host
		wantWarned string
	}{
		"all three":                             {want: healthy},
		"no hostname":                           {gone: []string{hostname}, want: without(func(h *Host) { h.Hostname = "" }), wantWarned: hostname},
		"a hostname with an ESC":                {put: tree{hostname: "a\x1b[2Jb\n"}, want: without(func(h *Host) { h.Hostname = "" }), wantWarned: hostname},
		"a hostname without end":                {put: tree{hostname: strings.Repeat("a", 300)}, want: without(func(h *Host) { h.Hostname = "" }), wantWarned: hostname},
		"a boot id that is none":                {put: tree{bootID: "yesterday\n"}, want: without(func(h *Host) { h.BootID = "" }), wantWarned: bootID},
		"a boot id of other parts":              {put: tree{bootID: "0d8f2c6e6-a0b-4f0e-9d5b-6b1c7c3f2a10\n"}, want: without(func(h *Host) { h.BootID = "" }), wantWarned: bootID},
		"a release in the version's text alone": {put: tree{"proc/version": "Linux version 6.1.0-28-amd64 (gcc) #1\n"}, gone: []string{kernel}, want: healthy},
		"a version of something else": {
			put: tree{"proc/version": "Linux 6.1.0-28-amd64\n"}, gone: []string{kernel}, want: without(func(h *Host) { h.Kernel = "" }), wantWarned: kernel,
		},
		"an empty release": {put: tree{kernel: "\n"}, want: without(func(h *Host) { h.Kernel = "" }), wantWarned: kernel},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			host, warnings := ReadHost(twoNodes().with(test.put, test.gone...).fs())
			if host != test.want {
				t.Errorf("host %+v, want %+v", host, test.want)
			}
			var warned string
			for _, w := range warnings {
				warned += w.Path
			}
			if warned != test.wantWarned {
				t.Errorf("warnings %v, want one for %q", warnings, test.wantWarned)
			}
		})
	}
}

func TestPCINode(t *testing.T) {
	const devices = "sys/bus/pci/devices/"
	fsys := tree{
		devices + "0000:07:00.0":                        "-> ../../../devices/pci0000:00/0000:07:00.0",
		"sys/devices/pci0000:00/0000:07:00.0/numa_node": "1\n",
		devices + "0000:4e:00.0/numa_node":              "-1\n",
		devices + "10000:01:00.0/numa_node":             "0\n",
		devices + "0000:4f:00.0/numa_node":              "many\n",
		// A card whose own node is unknown, behind a bridge on node 1.
		"sys/devices/pci0000:60/0000:60:01.0/numa_node":              "1\n",
		"sys/devices/pci0000:60/0000:60:01.0/0000:61:00.0/numa_node": "-1\n",
		devices + "0000:61:00.0":                                     "-> ../../../devices/pci0000:60/0000:60:01.0/0000:61:00.0",
		devices + "0000:63:00.0/name":                                "without a node\n",
		devices + "0000:64:00.0/numa_node":                           "1\n0\n",
		devices + "0000:50:00.0/numa_node":                           "5000\n",
	}.fs()
	type answer struct {
		Node int
		OK   bool
	}
	tests := map[string]struct {
		busID string
		want  answer
	}{
		"a device behind a link":            {"0000:07:00.0", answer{1, true}},
		"NVML's eight digits of a domain":   {"00000000:07:00.0", answer{1, true}},
		"a bridge's node is not its card's": {"0000:61:00.0", answer{numa.Unknown, true}},
		"another function of a card":        {"0000:07:00.1", answer{numa.Unknown, false}},
		"a kernel without NUMA":             {"0000:63:00.0", answer{numa.Unknown, false}},
		"two numbers":                       {"0000:64:00.0", answer{numa.Unknown, false}},
		"a host that knows no node":         {"0000:4E:00.0", answer{numa.Unknown, true}},
		"a domain of five digits":           {"10000:01:00.0", answer{0, true}},
		"a node that is no number":          {"0000:4f:00.0", answer{numa.Unknown, false}},
		"a node out of all bounds":          {"0000:50:00.0", answer{numa.Unknown, false}},
		"an absent device":                  {"0000:99:00.0", answer{numa.Unknown, false}},
		"a path in place of an address":     {"../../../x:07:00.0", answer{numa.Unknown, false}},
		"an address without a domain":       {"07:00.0", answer{1, true}},
		"nothing":                           {"", answer{numa.Unknown, false}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			node, ok := PCINode(fsys, test.busID)
			if got := (answer{node, ok}); got != test.want {
				t.Errorf("PCINode(%q) = %v, want %v", test.busID, got, test.want)
			}
		})
	}
}

func TestCPUsOutsideTheCgroupAreIsolated(t *testing.T) {
	host := twoNodes()
	allowed, ok, warnings := AllowedCPUs(host.fs())
	if !ok || warnings != nil || allowed.String() != "0-3" {
		t.Fatalf("AllowedCPUs = %q, %t, %v, want 0-3", allowed, ok, warnings)
	}
	topology, _, err := Read(host.with(tree{cpuDir + "/isolated": "3\n"}).fs())
	if err != nil {
		t.Fatal(err)
	}
	var got []int
	for _, c := range Restrict(topology, allowed).CPUs {
		if c.Usable() {
			got = append(got, c.ID)
		}
	}
	if diff := cmp.Diff([]int{0, 1, 2}, got); diff != "" {
		t.Errorf("usable CPUs (-want +got):\n%s", diff)
	}
	if topology.CPUs[7].Isolated {
		t.Error("Restrict changed its argument")
	}
}

func TestAllowedCPUsOfATreeThatDoesNotTell(t *testing.T) {
	if _, ok, warnings := AllowedCPUs(tree{}.fs()); ok || warnings != nil {
		t.Errorf("absent status: ok %t, warnings %v", ok, warnings)
	}
	if _, ok, warnings := AllowedCPUs(tree{"proc/self/status": "Name:\tx\n"}.fs()); ok || len(warnings) != 1 {
		t.Errorf("broken status: ok %t, warnings %v, want one", ok, warnings)
	}
}
