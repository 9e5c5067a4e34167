package fake

import (
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/musterd/muster/devices"
)

// Inventory returns the machine's GPUs as the host nodeName has them, a new
// value each time. UUIDs follow from the node's name and the GPU's index, so
// they stay over restarts and differ between nodes.
func (p Profile) Inventory(nodeName string) *devices.Inventory {
	m := p.Machine
	inv := &devices.Inventory{Driver: m.Driver, Devices: make([]devices.Device, len(m.GPUs)), Links: make([][]devices.Link, len(m.GPUs))}
	for i, g := range m.GPUs {
		inv.Devices[i] = devices.Device{
			Index: i, UUID: gpuUUID(nodeName, i), Model: g.Model, Memory: g.Memory.Bytes,
			PCIBusID: g.PCIBusID, NUMANode: g.NUMANode, Clique: g.Clique, MIG: g.Partition(nodeName, i), Health: devices.OK,
		}
		inv.Links[i] = make([]devices.Link, len(m.GPUs))
		for j := range m.GPUs {
			inv.Links[i][j] = p.Relations[i][j].link()
			if n := p.NVLinks[i][j]; n > 0 {
				inv.Links[i][j] = devices.NVLink(n).Over(inv.Links[i][j])
			}
		}
	}
	return inv
}

// Partition is the card's MIG mode and instances.
func (g GPU) Partition(nodeName string, index int) devices.MIG {
	if g.MIG == nil {
		return devices.MIG{}
	}
	state := devices.MIG{Enabled: g.MIG.Enabled}
	for i, m := range g.MIG.Instances {
		state.Instances = append(state.Instances, devices.MIGInstance{
			UUID: migUUID(nodeName, index, i), Profile: m.Profile, Memory: m.Memory.Bytes,
		})
	}
	return state
}

// relation is a PCIe relation in NVML's numbers (nvmlGpuTopologyLevel_t).
type relation int

const (
	same       relation = 0
	single     relation = 10 // below one PCIe switch
	multiple   relation = 20 // below several PCIe switches
	hostBridge relation = 30
	numaNode   relation = 40
	system     relation = 50
)

// link is the relation's name in the inventory.
func (r relation) link() devices.Link {
	switch r {
	case same:
		return devices.LinkNone
	case single:
		return devices.LinkPIX
	case multiple:
		return devices.LinkPXB
	case hostBridge:
		return devices.LinkPHB
	case numaNode:
		return devices.LinkNODE
	default:
		return devices.LinkSYS
	}
}

// relate derives every pair's PCIe relation from nodes and paths.
func (m *Machine) relate() [][]relation {
	rows := make([][]relation, len(m.GPUs))
	for i, a := range m.GPUs {
		rows[i] = make([]relation, len(m.GPUs))
		for j, b := range m.GPUs {
			if i != j {
				rows[i][j] = relationOf(a, b)
			}
		}
	}
	return rows
}

func relationOf(a, b GPU) relation {
	if a.NUMANode != b.NUMANode {
		return system
	}
	pathA, pathB := strings.Split(a.Path, "/"), strings.Split(b.Path, "/")
	shared := 0
	for shared < min(len(pathA), len(pathB)) && pathA[shared] == pathB[shared] {
		shared++
	}
	switch {
	case shared == 0:
		return numaNode
	case shared == 1:
		return hostBridge
	case shared == len(pathA) && shared == len(pathB):
		return single
	default:
		return multiple
	}
}

// countNVLinks is the number of NVLinks of every pair. Behind switches each
// pair reaches the other over all links.
func (m *Machine) countNVLinks() [][]int {
	rows := make([][]int, len(m.GPUs))
	for i := range rows {
		rows[i] = make([]int, len(m.GPUs))
		for j := range rows[i] {
			if i != j {
				rows[i][j] = m.NVLinks.Switched
			}
		}
	}
	for _, p := range m.NVLinks.Pairs {
		rows[p.A][p.B], rows[p.B][p.A] = p.Links, p.Links
	}
	return rows
}

func gpuUUID(nodeName string, index int) string {
	return "GPU-" + digest(fmt.Sprintf("%s\x00%d", nodeName, index))
}

func migUUID(nodeName string, index, instance int) string {
	return "MIG-" + digest(fmt.Sprintf("%s\x00%d\x00%d", nodeName, index, instance))
}

// digest shapes the first 16 bytes of text's SHA-256 as a UUID.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[0:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}
