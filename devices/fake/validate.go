package fake

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/resource"
)

// The largest machine that a profile may describe. The fake NVML library holds
// as many GPUs, NVLinks and instances.
const (
	maxNodes        = 64
	maxCoresPerNode = 512
	maxThreads      = 8
	maxGPUs         = 64
	maxLinksPerGPU  = 36
	maxInstances    = 16
	mebibyte        = 1 << 20
	maxMemory       = 1 << 50 // of one node, card or instance
)

// between refuses a value outside low..high.
func between(field string, value, low, high int) error {
	if value < low || value > high {
		return fmt.Errorf("%s: %d is outside %d..%d", field, value, low, high)
	}
	return nil
}

// validate refuses text that is no amount, or more than any machine has.
func (q Quantity) validate(field string) error {
	if q.fault != "" {
		return fmt.Errorf("%s: %s", field, q.fault)
	}
	return between(field, int(q.Bytes), 0, maxMemory)
}

// plain refuses text that would not survive on one line of a script.
func plain(field, text string, longest int) error {
	if text == "" || len(text) > longest || strings.TrimSpace(text) != text {
		return fmt.Errorf("%s: %q is empty, longer than %d bytes, or begins or ends with a space", field, text, longest)
	}
	for _, r := range text {
		if r < ' ' || r > '~' {
			return fmt.Errorf("%s: %q holds %q, which is not printable ASCII", field, text, r)
		}
	}
	return nil
}

// first returns the first error among checks, so that the topmost fault of a
// profile is the named profile.
func first(checks ...error) error {
	for _, err := range checks {
		if err != nil {
			return err
		}
	}
	return nil
}

func (m *Machine) validate() error {
	if err := first(
		plain("name", m.Name, 64),
		between("threadsPerCore", m.ThreadsPerCore, 1, maxThreads),
		between("coresPerL3", m.CoresPerL3, 0, maxCoresPerNode),
		between("number of nodes", len(m.Nodes), 1, maxNodes),
		between("number of gpus", len(m.GPUs), 0, maxGPUs),
	); err != nil {
		return err
	}
	if len(m.GPUs) > 0 || m.Driver != "" {
		if err := plain("driver", m.Driver, 64); err != nil {
			return err
		}
	}
	cores := 0
	for i, n := range m.Nodes {
		field := fmt.Sprintf("nodes[%d].", i)
		if err := first(
			between(field+"socket", n.Socket, 0, maxNodes-1),
			between(field+"cores", n.Cores, 0, maxCoresPerNode),
			n.Memory.validate(field+"memory"),
			n.validateHugepages(field+"hugepages"),
		); err != nil {
			return err
		}
		cores += n.Cores
	}
	if cores == 0 {
		return fmt.Errorf("nodes: none of %d has cores", len(m.Nodes))
	}
	if err := m.validateDistances(); err != nil {
		return err
	}
	for i := range m.GPUs {
		if err := m.validateGPU(i); err != nil {
			return err
		}
	}
	return m.validateNVLinks()
}

// validateHugepages checks sizes and counts against the node's memory.
func (n node) validateHugepages(field string) error {
	left := int64(n.Memory.Bytes)
	for _, kB := range slices.Sorted(maps.Keys(n.Hugepages)) {
		count, size := n.Hugepages[kB], int64(kB)*1024
		if kB < 1 || kB > int(resource.MaxHugepageSize/1024) {
			return fmt.Errorf("%s[%d]: want a page size of 1..%d kB", field, kB, resource.MaxHugepageSize/1024)
		}
		if count < 0 || count > left/size {
			return fmt.Errorf("%s[%d]: %d pages is outside 0..%d, what the node's memory holds", field, kB, count, left/size)
		}
		left -= count * size
	}
	return nil
}

func (m *Machine) validateDistances() error {
	if len(m.Distances) == 0 {
		return nil
	}
	if len(m.Distances) != len(m.Nodes) {
		return fmt.Errorf("distances: %d rows for %d nodes", len(m.Distances), len(m.Nodes))
	}
	for i, row := range m.Distances {
		if len(row) != len(m.Nodes) {
			return fmt.Errorf("distances[%d]: %d columns for %d nodes", i, len(row), len(m.Nodes))
		}
		for j, d := range row {
			// ACPI: 10 is local, 255 unreachable, below 10 reserved.
			if err := between(fmt.Sprintf("distances[%d][%d]", i, j), d, 10, 255); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *Machine) validateGPU(i int) error {
	g, field := m.GPUs[i], fmt.Sprintf("gpus[%d].", i)
	if err := first(
		plain(field+"model", g.Model, 64),
		plain(field+"path", g.Path, 64),
		g.Memory.validate(field+"memory"),
		between(field+"numaNode", g.NUMANode, devices.UnknownNode, len(m.Nodes)-1),
	); err != nil {
		return err
	}
	if slices.Contains(strings.Split(g.Path, "/"), "") {
		return fmt.Errorf("%spath: %q has an empty step: want rc0/sw0", field, g.Path)
	}
	address, err := devices.NormalizePCIBusID(g.PCIBusID)
	if err != nil {
		return fmt.Errorf("%spciBusID: %w", field, err)
	}
	if i > 0 {
		before, _ := devices.NormalizePCIBusID(m.GPUs[i-1].PCIBusID)
		if devices.ComparePCIBusID(before, address) >= 0 {
			return fmt.Errorf("%spciBusID: %s does not follow %s: GPUs ascend by PCI address", field, address, before)
		}
	}
	if !devices.ValidClique(g.Clique) {
		return fmt.Errorf("%sclique: %.64q: want the UUID of a cluster, a dot and a number", field, g.Clique)
	}
	if g.MIG == nil {
		return nil
	}
	if !g.MIG.Enabled && len(g.MIG.Instances) > 0 {
		return fmt.Errorf("%smig: %d instances while enabled is false", field, len(g.MIG.Instances))
	}
	if err := between(field+"mig.instances", len(g.MIG.Instances), 0, maxInstances); err != nil {
		return err
	}
	for j, instance := range g.MIG.Instances {
		field := fmt.Sprintf("%smig.instances[%d].", field, j)
		if _, _, err := MIGSlices(instance.Profile); err != nil {
			return fmt.Errorf("%sprofile: %w", field, err)
		}
		if err := instance.Memory.validate(field + "memory"); err != nil {
			return err
		}
		if instance.Memory.Bytes%mebibyte != 0 {
			return fmt.Errorf("%smemory: %d bytes are not whole MiB, which is all that NVML tells", field, instance.Memory.Bytes)
		}
	}
	return nil
}

func (m *Machine) validateNVLinks() error {
	if m.NVLinks.Switched != 0 && len(m.NVLinks.Pairs) > 0 {
		return fmt.Errorf("nvlinks: switched %d and %d pairs: give one of the two", m.NVLinks.Switched, len(m.NVLinks.Pairs))
	}
	if err := between("nvlinks.switched", m.NVLinks.Switched, 0, devices.MaxNVLinks); err != nil {
		return err
	}
	perGPU := make([]int, len(m.GPUs))
	seen := map[[2]int]bool{}
	for i, p := range m.NVLinks.Pairs {
		field := fmt.Sprintf("nvlinks.pairs[%d]", i)
		if err := first(
			between(field+".a", p.A, 0, len(m.GPUs)-1),
			between(field+".b", p.B, 0, len(m.GPUs)-1),
			between(field+".links", p.Links, 1, devices.MaxNVLinks),
		); err != nil {
			return err
		}
		key := [2]int{min(p.A, p.B), max(p.A, p.B)}
		if p.A == p.B || seen[key] {
			return fmt.Errorf("%s: GPUs %d and %d are the same, or named before", field, p.A, p.B)
		}
		seen[key] = true
		for _, g := range key {
			perGPU[g] += p.Links
			if err := between(fmt.Sprintf("%s: NVLinks of GPU %d", field, g), perGPU[g], 0, maxLinksPerGPU); err != nil {
				return err
			}
		}
	}
	return nil
}

// MIGSlices reads how many GPU and compute slices a MIG profile has: "3g.40gb" is
// 3 and 3, "1c.3g.40gb" is 3 and 1.
func MIGSlices(profile string) (gpu, compute int, err error) {
	refusal := fmt.Errorf("%q is no MIG profile: want 1g.10gb or 1c.3g.40gb, with +me and the like behind", profile)
	name, attributes, _ := strings.Cut(profile, "+")
	if strings.ContainsAny(attributes, " \t") {
		return 0, 0, refusal
	}
	parts := strings.Split(name, ".")
	if len(parts) == 2 {
		parts = append([]string{strings.TrimSuffix(parts[0], "g") + "c"}, parts...)
	}
	if len(parts) != 3 {
		return 0, 0, refusal
	}
	var numbers [3]int
	for i, unit := range []string{"c", "g", "gb"} {
		digits, ok := strings.CutSuffix(parts[i], unit)
		n, err := strconv.ParseUint(digits, 10, 16)
		if !ok || err != nil || n == 0 {
			return 0, 0, refusal
		}
		numbers[i] = int(n)
	}
	return numbers[1], numbers[0], nil
}
