package nvml

import (
	"fmt"
	"slices"

	"github.com/musterd/muster/devices"
)

// sighting is the result of one discovery.
type sighting struct {
	inventory *devices.Inventory
	warnings  []string
	// doubtful has the UUIDs of cards whose partitions could not be read.
	doubtful map[string]bool
	// leftOut says why the card at an address is not in the inventory.
	leftOut map[string]string
	// unknown are the cards that the driver counts and that are not in the inventory.
	unknown []devices.Unknown
	// silent has the UUIDs of known cards about which a call hangs.
	silent map[string]bool
	// relationsUnknown: the PCIe relations could not be asked.
	relationsUnknown bool
}

// flag is a yes or no that a driver may leave unknown.
type flag uint8

const (
	untold flag = iota
	no
	yes
)

// flagOf is the flag of an answer.
func flagOf(answer bool) flag {
	if answer {
		return yes
	}
	return no
}

// reading has the answers of one card at one poll. A value that it did not report is the zero
// value.
type reading struct {
	uuid string
	lost string // why the card is gone; "" where it answers
	gone string // why the driver is gone; "" where it answers

	corrected, uncorrected  *uint64 // errors since the driver took up the card
	pagesPending            flag
	rowsPending, rowsFailed flag
	rows                    uint64 // remapped so far
	mig                     *devices.MIG
	running                 []devices.Running
	use                     []devices.Use
	faults                  map[string]string // by question, its answer
}

// counter is a number of errors that begins anew when the driver takes up the
// card again.
type counter struct {
	known bool
	n     uint64
}

// rise takes the counter's present value and reports whether errors were added
// since the last. The first value is where counting begins.
func (c *counter) rise(n uint64) bool {
	if !c.known {
		*c = counter{true, n}
		return false
	}
	if n < c.n {
		c.n = 0
	}
	rose := n > c.n
	c.n = n
	return rose
}

// history has the reports about one card.
type history struct {
	lost                   bool
	corrected, uncorrected counter
	pages, rows, failed    bool
	faults                 map[string]string
	running                []devices.Running
	use                    []devices.Use
}

func (h *history) broken() bool { return h.pages || h.rows || h.failed }

// tracker turns observations of the devices into reports about them: each
// change once. It asks nothing itself.
type tracker struct {
	inventory *devices.Inventory
	cards     map[string]*history // by UUID
	gone      bool
	warnings  []string          // of the last sighting
	unknown   []devices.Unknown // likewise
}

// newTracker starts from the caller's inventory.
func newTracker(known *devices.Inventory, o outset) *tracker {
	t := &tracker{inventory: known, cards: map[string]*history{}, warnings: o.warnings, gone: o.gone, unknown: o.unknown}
	for _, d := range known.Devices {
		t.cards[d.UUID] = &history{lost: slices.Contains(o.absent, d.UUID)}
	}
	return t
}

// outset has the reports before a watch begins.
type outset struct {
	warnings []string // of the discovery
	absent   []string // devices, as lost
	gone     bool     // the driver
	unknown  []devices.Unknown
}

// addresses says where each known card was last.
func (t *tracker) addresses() map[string]string {
	at := make(map[string]string, len(t.inventory.Devices))
	for _, d := range t.inventory.Devices {
		at[d.UUID] = d.PCIBusID
	}
	return at
}

// driverGone takes that the driver does not answer any more.
func (t *tracker) driverGone(why string) devices.Change {
	if t.gone {
		return devices.Change{}
	}
	t.gone = true
	t.forgetUse("")
	return devices.Change{Events: []devices.Event{{Kind: devices.EventDriverGone, Detail: why}}}
}

// forgetUse has the use of a card, or of all cards for "", reported again with
// the next answer: the caller counts it as unknown from now on.
func (t *tracker) forgetUse(uuid string) {
	for of, h := range t.cards {
		if uuid == "" || of == uuid {
			h.use = nil
		}
	}
}

// knows reports whether a card is in the inventory.
func (t *tracker) knows(uuid string) bool { return t.cards[uuid] != nil }

// heard takes an event of a card, or of none.
func (t *tracker) heard(e devices.Event) devices.Change {
	if e.UUID != "" && !t.knows(e.UUID) {
		return devices.Change{}
	}
	return devices.Change{Events: []devices.Event{e}}
}

// found takes a discovery.
func (t *tracker) found(s sighting) devices.Change {
	var c devices.Change
	if t.gone {
		t.gone = false
		c.Events = append(c.Events, devices.Event{Kind: devices.EventDriverBack, Detail: "driver " + s.inventory.Driver})
	}
	there := map[string]bool{}
	for _, d := range s.inventory.Devices {
		there[d.UUID] = true
	}
	for _, d := range t.inventory.Devices {
		h := t.cards[d.UUID]
		if there[d.UUID] {
			c.Events = append(c.Events, h.returned(d.UUID)...)
			continue
		}
		if s.silent[d.UUID] {
			continue // whether it is there is not known
		}
		why := s.leftOut[d.PCIBusID]
		if why == "" {
			why = "the driver names no such GPU any more"
		}
		c.Events = append(c.Events, h.lose(d.UUID, why)...)
	}
	merged, warnings := merge(t.inventory, s)
	for _, d := range merged.Devices[len(t.inventory.Devices):] {
		t.cards[d.UUID] = &history{}
	}
	c.Inventory = t.replace(merged)
	warnings = append(slices.Clone(s.warnings), warnings...)
	for _, w := range warnings {
		if !slices.Contains(t.warnings, w) {
			c.Warnings = append(c.Warnings, w)
		}
	}
	t.warnings = warnings
	c.Unknown = t.missed(s)
	return c
}

// missed takes the cards that are not in the inventory, and returns them if they are
// others than before.
func (t *tracker) missed(s sighting) []devices.Unknown {
	known := map[string]bool{}
	for _, d := range t.inventory.Devices {
		known[d.PCIBusID] = true
	}
	now := []devices.Unknown{}
	for _, u := range s.unknown {
		if u.PCIBusID == "" || !known[u.PCIBusID] {
			now = append(now, u)
		}
	}
	same := slices.EqualFunc(now, t.unknown, func(a, b devices.Unknown) bool { return a.Position == b.Position && a.PCIBusID == b.PCIBusID })
	t.unknown = now
	if same {
		return nil
	}
	return now
}

// replace takes the inventory and returns it if it is another than before.
func (t *tracker) replace(inv *devices.Inventory) *devices.Inventory {
	if equalInventories(t.inventory, inv) {
		return nil
	}
	t.inventory = inv
	return inv
}

// read takes the answers of one card. A reading of a card that is not in the
// inventory, or without a driver, is not one of ours.
func (t *tracker) read(r reading) devices.Change {
	if r.gone != "" {
		return t.driverGone(r.gone)
	}
	h := t.cards[r.uuid]
	if h == nil {
		return devices.Change{}
	}
	if r.lost != "" {
		return devices.Change{Events: h.lose(r.uuid, r.lost)}
	}
	c := devices.Change{Events: h.returned(r.uuid)}
	c.Events = append(c.Events, h.count(r)...)
	c.Events = append(c.Events, h.memory(r)...)
	if r.mig != nil {
		c.Inventory = t.partition(r.uuid, *r.mig)
	}
	for _, question := range sortedKeys(r.faults) {
		if h.faults[question] != r.faults[question] {
			c.Warnings = append(c.Warnings, fmt.Sprintf("%s: %s: %s", r.uuid, question, r.faults[question]))
		}
	}
	h.faults = r.faults
	c.Running = h.runs(r.running)
	if !slices.Equal(h.use, r.use) {
		h.use, c.Use = r.use, r.use
	}
	return c
}

// runs takes the processes on a card's parts and returns the changes. Parts
// that are not named are forgotten: they are gone, or could not be asked.
func (h *history) runs(now []devices.Running) []devices.Running {
	var news []devices.Running
	for _, r := range now {
		if !slices.ContainsFunc(h.running, r.Equal) {
			news = append(news, r)
		}
	}
	h.running = now
	return news
}

// partition takes one card's partitions.
func (t *tracker) partition(uuid string, mig devices.MIG) *devices.Inventory {
	i := slices.IndexFunc(t.inventory.Devices, func(d devices.Device) bool { return d.UUID == uuid })
	fresh := *t.inventory
	fresh.Devices = slices.Clone(fresh.Devices)
	fresh.Devices[i].MIG = mig
	fresh.Devices, _ = distinctInstances(fresh.Devices)
	return t.replace(&fresh)
}

func (h *history) lose(uuid, why string) []devices.Event {
	if h.lost {
		return nil
	}
	h.lost, h.use = true, nil
	return []devices.Event{{UUID: uuid, Kind: devices.EventLost, Detail: why}}
}

func (h *history) returned(uuid string) []devices.Event {
	if !h.lost {
		return nil
	}
	h.lost = false
	return []devices.Event{{UUID: uuid, Kind: devices.EventReturned}}
}

// count reports that error counters have risen.
func (h *history) count(r reading) []devices.Event {
	var events []devices.Event
	if r.uncorrected != nil && h.uncorrected.rise(*r.uncorrected) {
		events = append(events, devices.Event{UUID: r.uuid, Kind: devices.EventECCUncorrected, Count: *r.uncorrected})
	}
	if r.corrected != nil && h.corrected.rise(*r.corrected) {
		events = append(events, devices.Event{UUID: r.uuid, Kind: devices.EventECCCorrected, Count: *r.corrected})
	}
	return events
}

// memory reports the repairs that wait for a reset, those that have become impossible, and that
// all of them are done. A value that the driver does not report stays as it was: it reports
// nothing of rows while a card has MIG instances.
func (h *history) memory(r reading) []devices.Event {
	var events []devices.Event
	before := h.broken()
	for _, part := range []struct {
		told *bool
		now  flag
		tell devices.Event
	}{
		{&h.pages, r.pagesPending, devices.Event{Kind: devices.EventPageRetirementPending, Detail: "memory pages wait for a reset to be retired"}},
		{&h.rows, r.rowsPending, devices.Event{Kind: devices.EventPageRetirementPending, Count: r.rows, Detail: "memory rows wait for a reset to be remapped"}},
		{&h.failed, r.rowsFailed, devices.Event{Kind: devices.EventRowRemapFailed, Count: r.rows, Detail: "a memory row could not be remapped"}},
	} {
		if part.now == yes && !*part.told {
			part.tell.UUID = r.uuid
			events = append(events, part.tell)
		}
		if part.now != untold {
			*part.told = part.now == yes
		}
	}
	if before && !h.broken() {
		events = append(events, devices.Event{UUID: r.uuid, Kind: devices.EventRepaired, Detail: "nothing waits for a reset any more"})
	}
	return events
}
