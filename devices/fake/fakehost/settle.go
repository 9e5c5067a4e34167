package fakehost

import (
	"slices"

	"github.com/musterd/muster/devices"
)

// told has the reports of a host's watch so far.
type told struct {
	gone  bool
	hung  []bool
	cards []card
	known []bool
	mig   []devices.MIG
	links [][]devices.Link
	order []int // the inventory's devices, by number in the profile
}

func newTold(gpus int) told {
	t := told{
		hung: make([]bool, gpus), cards: make([]card, gpus), known: make([]bool, gpus), mig: make([]devices.MIG, gpus),
		links: make([][]devices.Link, gpus),
	}
	for i := range t.links {
		t.links[i] = slices.Repeat([]devices.Link{devices.LinkSYS}, gpus)
		t.links[i][i] = devices.LinkNone
	}
	return t
}

// settle reports the difference between the state and the reports so far. No report comes without
// a driver, nor about a card while a question about the card goes unanswered.
func (h *Host) settle() {
	var c devices.Change
	c.Events = h.settleHangs()
	switch {
	case h.unloaded && !h.told.gone:
		h.told.gone = true
		for i := range h.told.cards {
			h.told.cards[i].measured = false
		}
		c.Events = append(c.Events, devices.Event{Kind: devices.EventDriverGone})
	case !h.unloaded:
		if h.told.gone {
			h.told.gone = false
			c.Events = append(c.Events, devices.Event{Kind: devices.EventDriverBack})
		}
		h.settleDevices(&c)
	}
	if c.IsZero() {
		return
	}
	h.pending = append(h.pending, c)
	select {
	case h.woken <- struct{}{}:
	default:
	}
}

func (h *Host) settleHangs() []devices.Event {
	var events []devices.Event
	for i, c := range h.cards {
		hangs := c.hung && c.plugged && !h.unloaded
		if hangs == h.told.hung[i] {
			continue
		}
		h.told.hung[i] = hangs
		kind := devices.EventAnswered
		if hangs {
			h.told.cards[i].measured = false
			kind = devices.EventHung
		}
		events = append(events, devices.Event{UUID: h.UUID(i), Kind: kind})
	}
	return events
}

func (h *Host) settleDevices(c *devices.Change) {
	before := h.inventory()
	for i := range h.cards {
		if !h.told.hung[i] {
			h.settleCard(i, c)
		}
	}
	full := h.profile.Inventory(h.node)
	for i := range h.cards {
		for j := range h.cards {
			if h.present(i) && h.present(j) {
				h.told.links[i][j] = full.Link(i, j)
			}
		}
	}
	if after := h.inventory(); !sameInventory(before, after) {
		c.Inventory = after
	}
}

// present reports whether a discovery would find the card.
func (h *Host) present(gpu int) bool { return h.cards[gpu].plugged && !h.cards[gpu].lost }

func (h *Host) settleCard(i int, c *devices.Change) {
	now, before := h.cards[i], &h.told.cards[i]
	tell := func(e devices.Event) { e.UUID = h.UUID(i); c.Events = append(c.Events, e) }
	switch {
	case !h.present(i):
		if h.told.known[i] && !before.lost {
			before.lost, before.measured = true, false
			tell(devices.Event{Kind: devices.EventLost})
		}
		return
	case !h.told.known[i]:
		h.told.known[i] = true
		h.told.order = append(h.told.order, i)
		before.corrected, before.uncorrected = now.corrected, now.uncorrected
	case before.lost:
		before.lost = false
		tell(devices.Event{Kind: devices.EventReturned})
	}
	h.told.mig[i] = h.profile.Machine.GPUs[i].Partition(h.node, i)
	for _, xid := range now.xids[len(before.xids):] {
		tell(devices.Event{Kind: devices.EventXID, XID: xid})
	}
	before.xids = now.xids
	if !slices.Equal(now.pids, before.pids) {
		before.pids = now.pids
		c.Running = append(c.Running, devices.Running{UUID: h.UUID(i), PIDs: slices.Clone(now.pids)})
	}
	use := h.useOf(i)
	if now.measured && (!before.measured || use != before.use) {
		before.use, before.measured = use, true
		c.Use = append(c.Use, use)
	}
	if now.uncorrected > before.uncorrected {
		tell(devices.Event{Kind: devices.EventECCUncorrected, Count: now.uncorrected})
	}
	if now.corrected > before.corrected {
		tell(devices.Event{Kind: devices.EventECCCorrected, Count: now.corrected})
	}
	before.corrected, before.uncorrected = now.corrected, now.uncorrected
	h.settleMemory(now, before, len(h.told.mig[i].Instances) > 0, tell)
}

// useOf is the use of a card as a driver reports it: in MIG mode without the
// percentage.
func (h *Host) useOf(i int) devices.Use {
	use := h.cards[i].use
	if h.told.mig[i].Enabled {
		use.Percent = devices.UnknownUse
	}
	return use
}

// settleMemory reports pages and rows; no row is reported while there are
// MIG instances.
func (h *Host) settleMemory(now card, before *card, partitioned bool, tell func(devices.Event)) {
	if partitioned {
		now.rows, now.failed = before.rows, before.failed
	}
	broken := before.pages || before.rows || before.failed
	if now.pages && !before.pages {
		tell(devices.Event{Kind: devices.EventPageRetirementPending})
	}
	if now.rows && !before.rows {
		tell(devices.Event{Kind: devices.EventPageRetirementPending})
	}
	if now.failed && !before.failed {
		tell(devices.Event{Kind: devices.EventRowRemapFailed})
	}
	before.pages, before.rows, before.failed = now.pages, now.rows, now.failed
	if broken && !now.pages && !now.rows && !now.failed {
		tell(devices.Event{Kind: devices.EventRepaired})
	}
}

// inventory has the reported devices, as reported.
func (h *Host) inventory() *devices.Inventory {
	full := h.profile.Inventory(h.node)
	inv := &devices.Inventory{
		Driver: full.Driver, Devices: make([]devices.Device, len(h.told.order)), Links: make([][]devices.Link, len(h.told.order)),
	}
	for i, from := range h.told.order {
		d := full.Devices[from]
		d.Index, d.MIG = i, h.told.mig[from]
		inv.Devices[i] = d
		inv.Links[i] = make([]devices.Link, len(h.told.order))
		for j, to := range h.told.order {
			inv.Links[i][j] = h.told.links[from][to]
		}
	}
	return inv
}

// sameInventory compares the changing properties of a host's devices.
func sameInventory(a, b *devices.Inventory) bool {
	return slices.EqualFunc(a.Devices, b.Devices, func(x, y devices.Device) bool {
		return x.UUID == y.UUID && x.MIG.Enabled == y.MIG.Enabled && slices.Equal(x.MIG.Instances, y.MIG.Instances)
	}) && slices.EqualFunc(a.Links, b.Links, slices.Equal[[]devices.Link])
}
