// Package fake describes hosts that do not exist: named or written machines
// (a Profile) from which come a numa.Topology and a devices.Inventory of one
// and the same host. Development mode and tests run on them. Package fakehost
// has such a host whose GPUs change, and the script of the fake NVML library.
// Package fake discovers nothing and decides nothing.
package fake

import (
	"embed"
	"fmt"
	"slices"
	"strings"
)

//go:embed profiles/*.json
var builtin embed.FS

// Profile is one valid machine; Lookup and ParseProfile make it. Nobody changes the fields:
// fakehost, which partitions cards, has copies. The zero value is a machine with nothing in
// it.
type Profile struct {
	Machine Machine
	// Relations[i][j] is the PCIe relation of GPUs i and j in NVML's numbers, 0 on the
	// diagonal; NVLinks[i][j] counts the NVLinks that connect them.
	Relations [][]relation
	NVLinks   [][]int
}

// Names lists the built-in profiles in alphabetical order.
func Names() []string {
	entries, err := builtin.ReadDir("profiles")
	if err != nil {
		panic(fmt.Sprintf("fake: embedded profiles: %v", err))
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".json"))
	}
	slices.Sort(names)
	return names
}

// Lookup returns a built-in profile. An unknown name is an error that lists
// the known ones.
//
// The machines: dgx-a100 (8 A100 behind NVSwitch, EPYC in NPS4; the node of
// each GPU as in https://github.com/NVIDIA/nccl/issues/1505), dgx-h100 (8 H100
// behind NVSwitch, 2 nodes), pcie-8x2 (8 cards in pairs below PCIe switches, 2
// sockets), gpu2 (2 cards on one host bridge), mig-a100 (4 cards: 7
// instances, 2, 4 and not partitioned), asym-3131 (3, 1, 3 and 1 GPUs on four nodes, as in
// https://github.com/sgl-project/sglang/issues/13973).
func Lookup(name string) (Profile, error) {
	if !slices.Contains(Names(), name) {
		return Profile{}, fmt.Errorf("no profile %q: the built-in ones are %s; others can be given as a JSON file",
			name, strings.Join(Names(), ", "))
	}
	text, err := builtin.ReadFile("profiles/" + name + ".json")
	if err != nil {
		return Profile{}, fmt.Errorf("read built-in profile %q: %w", name, err)
	}
	return ParseProfile(text)
}
