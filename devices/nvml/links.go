//go:build cgo && linux

package nvml

import (
	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/musterd/muster/devices"
)

// links is the connection of every pair: the PCIe relation, and NVLinks where
// there are any.
func (d *discovery) links(cards []*card) [][]devices.Link {
	wires := d.countNVLinks(cards)
	rows := make([][]devices.Link, len(cards))
	for i := range rows {
		rows[i] = make([]devices.Link, len(cards))
	}
	for i, a := range cards {
		d.asking("the links of a GPU", a.device.UUID)
		for j, b := range cards[:i] {
			link := d.pcie(a, b)
			if n := d.between(cards, wires, i, j); n > 0 {
				link = devices.NVLink(min(n, devices.MaxNVLinks)).Over(link)
			}
			rows[i][j], rows[j][i] = link, link
		}
	}
	return rows
}

// wiring is where one card's active NVLinks lead.
type wiring struct {
	direct   []int // links to each card, by position among the cards
	switches int   // links to NVSwitches
}

// between is the number of NVLinks that join cards i and j: those wired
// directly, or what both have to the switches, since the switches of a host
// join every card with every other.
func (d *discovery) between(cards []*card, wires []wiring, i, j int) int {
	there, back := wires[i].direct[j], wires[j].direct[i]
	if there != back {
		d.warnf("%v counts %d NVLinks to %v, which counts %d: the smaller number is used", cards[i], there, cards[j], back)
	}
	return max(min(there, back), min(wires[i].switches, wires[j].switches))
}

func (d *discovery) countNVLinks(cards []*card) []wiring {
	positions := make(map[string]int, len(cards))
	wires := make([]wiring, len(cards))
	for i, c := range cards {
		positions[c.device.PCIBusID] = i
		wires[i].direct = make([]int, len(cards))
	}
	if !d.has("nvmlDeviceGetNvLinkState") {
		return wires
	}
	for i, c := range cards {
		d.asking("the NVLinks of a GPU", c.device.UUID)
		unexplained := 0
		for link := range nvml.NVLINK_MAX_LINKS {
			if state, ret := c.handle.GetNvLinkState(link); !d.ok(c, ret) || state != nvml.FEATURE_ENABLED {
				continue
			}
			if d.leadsToSwitch(c, link) {
				wires[i].switches++
			} else if peer, ok := d.peer(c, link, positions); ok && peer != i {
				wires[i].direct[peer]++
			} else {
				unexplained++
			}
		}
		if unexplained > 0 {
			d.warnf("%v: %d active NVLinks lead to nothing that the driver names as a GPU in use or a switch: not counted", c, unexplained)
		}
	}
	return wires
}

// leadsToSwitch is false where the driver cannot tell (before R450).
func (d *discovery) leadsToSwitch(c *card, link int) bool {
	if !d.has("nvmlDeviceGetNvLinkRemoteDeviceType") {
		return false
	}
	kind, ret := c.handle.GetNvLinkRemoteDeviceType(link)
	return d.ok(c, ret) && kind == nvml.NVLINK_DEVICE_TYPE_SWITCH
}

// peer finds the card at a link's other end.
func (d *discovery) peer(c *card, link int, positions map[string]int) (int, bool) {
	if !d.has("nvmlDeviceGetNvLinkRemotePciInfo_v2") && !d.has("nvmlDeviceGetNvLinkRemotePciInfo") {
		return 0, false
	}
	info, ret := c.handle.GetNvLinkRemotePciInfo(link)
	if !d.ok(c, ret) {
		return 0, false
	}
	address, err := busID(info)
	if err != nil {
		return 0, false
	}
	position, ok := positions[address]
	return position, ok
}

// pcie is how two cards reach each other without NVLink. What the driver does
// not tell is taken as the farthest relation, so that nothing is promised.
func (d *discovery) pcie(a, b *card) devices.Link {
	if !d.has("nvmlDeviceGetTopologyCommonAncestor") {
		return devices.LinkSYS
	}
	level, ret := a.handle.GetTopologyCommonAncestor(b.handle)
	if ret != nvml.SUCCESS {
		for _, c := range []*card{a, b} { // one of them may have gone
			_, ret := c.handle.GetMemoryInfo()
			d.ok(c, ret)
		}
		d.warnf("%v and %v: PCIe relation: %v: taken as SYS", a, b, ret)
		return devices.LinkSYS
	}
	switch level {
	case nvml.TOPOLOGY_INTERNAL, nvml.TOPOLOGY_SINGLE:
		return devices.LinkPIX
	case nvml.TOPOLOGY_MULTIPLE:
		return devices.LinkPXB
	case nvml.TOPOLOGY_HOSTBRIDGE:
		return devices.LinkPHB
	case nvml.TOPOLOGY_NODE:
		return devices.LinkNODE
	case nvml.TOPOLOGY_SYSTEM:
		return devices.LinkSYS
	default:
		d.warnf("%v and %v: PCIe relation: the driver's number %d is unknown: taken as SYS", a, b, level)
		return devices.LinkSYS
	}
}
