//go:build cgo && linux

package nvml

import (
	"time"

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
		for j := range i { // until the driver reports more
			rows[i][j], rows[j][i] = devices.LinkSYS, devices.LinkSYS
		}
	}
	frozen := frozenCards(cards)
	asked := len(cards)
	if d.skip.pairs {
		asked = 0
	}
	each(d.patience, asked, d.asking, func(i int, asking asker) *row {
		return d.relate(frozen, i, asking)
	}, func(i int, r *row) {
		d.adopt(r.from)
		for j, c := range r.cards {
			if c.lost != nvml.SUCCESS {
				cards[j].lost, cards[j].lostBy = c.lost, c.lostBy
			}
		}
		for j, link := range r.links {
			rows[i][j], rows[j][i] = link, link
		}
	}, func(i int, q *question) {
		d.linksUnknown(cards[i], q, "its PCIe relations are taken as SYS")
	})
	for i := range cards {
		for j := range i {
			if n := d.between(cards, wires, i, j); n > 0 {
				link := devices.NVLink(min(n, devices.MaxNVLinks)).Over(rows[i][j])
				rows[i][j], rows[j][i] = link, link
			}
		}
	}
	return rows
}

// frozenCards are copies that stay as they are, for jobs that may be left behind.
func frozenCards(cards []*card) []card {
	list := make([]card, len(cards))
	for i, c := range cards {
		list[i] = *c
	}
	return list
}

// row is the PCIe relations of one card to those before it.
type row struct {
	from  *discovery
	cards []*card // copies, of the card itself and those before it
	links []devices.Link
}

// relate asks for one row.
func (d *discovery) relate(cards []card, i int, asking asker) *row {
	r := &row{from: d.fork(asking)}
	for _, c := range cards[:i+1] {
		r.cards = append(r.cards, &c)
	}
	for _, b := range r.cards[:i] {
		r.links = append(r.links, r.from.pcie(r.cards[i], b))
	}
	return r
}

// linksUnknown warns of a call about a card's links that was left behind. The
// card is used all the same: links are a preference.
func (d *discovery) linksUnknown(c *card, q *question, effect string) {
	if q == unasked {
		d.warnf("%v: links not asked: the time for discovery was over: %s", c, effect)
		return
	}
	d.warnf("%v: links: %s: %s", c, q.silence(time.Now()), effect)
}

// wiring is where one card's active NVLinks lead.
type wiring struct {
	direct   []int // links to each card, by position among the cards
	switches int   // links to NVSwitches
}

// between is the number of NVLinks that join cards i and j: those wired
// directly, or the links that both have to the switches, since the switches of a host
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
	frozen := frozenCards(cards)
	each(d.patience, len(cards), d.asking, func(i int, asking asker) *wireCount {
		return d.wires(frozen[i], i, len(frozen), positions, asking)
	}, func(i int, w *wireCount) {
		d.adopt(w.from)
		if w.lost != nvml.SUCCESS {
			cards[i].lost, cards[i].lostBy = w.lost, "nvmlDeviceGetNvLinkState"
		}
		wires[i] = w.wiring
	}, func(i int, q *question) {
		d.linksUnknown(cards[i], q, "its NVLinks are not counted")
	})
	return wires
}

// wireCount is the NVLinks of one card.
type wireCount struct {
	wiring
	from *discovery
	lost nvml.Return
}

// wires counts the active NVLinks of the card at position self of n.
func (d *discovery) wires(own card, self, n int, positions map[string]int, asking asker) *wireCount {
	f, c := d.fork(asking), &own
	w := &wireCount{wiring: wiring{direct: make([]int, n)}, from: f}
	unexplained := 0
	for link := range nvml.NVLINK_MAX_LINKS {
		f.asking("nvmlDeviceGetNvLinkState", c)
		state, ret := c.handle.GetNvLinkState(link)
		if !f.ok(c, ret) && !isUnsupported(ret) && ret != nvml.ERROR_INVALID_ARGUMENT && !isLost(ret) && !isGone(ret) {
			f.warnf("%v: NVLinks: nvmlDeviceGetNvLinkState of link %d: %v: not counted further", c, link, answer(ret))
			break
		}
		if ret != nvml.SUCCESS || state != nvml.FEATURE_ENABLED {
			continue
		}
		if f.leadsToSwitch(c, link) {
			w.switches++
		} else if peer, ok := f.peer(c, link, positions); ok && peer != self {
			w.direct[peer]++
		} else {
			unexplained++
		}
	}
	if unexplained > 0 {
		f.warnf("%v: %d active NVLinks lead to nothing that the driver names as a GPU in use or a switch: not counted", c, unexplained)
	}
	w.lost = c.lost
	return w
}

// leadsToSwitch is false where the driver cannot know (before R450).
func (d *discovery) leadsToSwitch(c *card, link int) bool {
	if !d.has("nvmlDeviceGetNvLinkRemoteDeviceType") {
		return false
	}
	d.asking("nvmlDeviceGetNvLinkRemoteDeviceType", c)
	kind, ret := c.handle.GetNvLinkRemoteDeviceType(link)
	return d.ok(c, ret) && kind == nvml.NVLINK_DEVICE_TYPE_SWITCH
}

// peer finds the card at a link's other end.
func (d *discovery) peer(c *card, link int, positions map[string]int) (int, bool) {
	if !d.has("nvmlDeviceGetNvLinkRemotePciInfo_v2") && !d.has("nvmlDeviceGetNvLinkRemotePciInfo") {
		return 0, false
	}
	d.asking("nvmlDeviceGetNvLinkRemotePciInfo", c)
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

// pcie is the path between two cards without NVLink. A relation that the driver does
// not report is taken as the farthest, so that nothing is promised.
func (d *discovery) pcie(a, b *card) devices.Link {
	if !d.has(pairCall) {
		return devices.LinkSYS
	}
	d.asking(pairCall+" with "+b.String(), a)
	level, ret := a.handle.GetTopologyCommonAncestor(b.handle)
	if ret != nvml.SUCCESS {
		for _, c := range []*card{a, b} { // one of them may have gone
			d.present(c)
		}
		d.warnf("%v and %v: PCIe relation: nvmlDeviceGetTopologyCommonAncestor: %v: taken as SYS", a, b, answer(ret))
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
		d.warnf("%v and %v: PCIe relation: nvmlDeviceGetTopologyCommonAncestor: the driver's number %d is unknown: taken as SYS", a, b, level)
		return devices.LinkSYS
	}
}

// present asks whether a card is there: a card that is there reports its memory,
// or that it has none of its own. It reports whether the call succeeded.
func (d *discovery) present(c *card) bool {
	const call = "nvmlDeviceGetMemoryInfo"
	if d.lacks(call) {
		return true
	}
	d.asking(call, c)
	_, ret := c.handle.GetMemoryInfo()
	return d.ok(c, ret)
}
