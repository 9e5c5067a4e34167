// Package fakehost is a host of package fake whose GPUs change while it runs, and the host
// as a script of the fake NVML library (test/nvml). Tests run the watch of package nvml and
// the agent on such a host. Package fakehost judges no change: nvml and agent do.
package fakehost

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/devices/fake"
	"github.com/musterd/muster/resource"
)

// Host is a machine whose GPUs change while it runs: they log
// errors, fall off the bus, return, are plugged in, partitioned anew, and the
// driver comes and goes. Watch reports the changes at once, without a library; the
// fake NVML library acts them by NVMLScript, and a watch through the library reports the
// same. GPUs are numbered as in the profile. Methods may be called from any
// goroutine; a number outside of the profile panics.
type Host struct {
	node  string
	uuids []string      // of the GPUs
	woken chan struct{} // capacity 1: there is a change to report

	mu       sync.Mutex
	profile  fake.Profile // with the present partitions
	cards    []card
	unloaded bool
	told     told
	pending  []devices.Change
}

// card is the state of a GPU.
type card struct {
	plugged, lost, hung    bool
	xids                   []uint64
	pids                   []int
	use                    devices.Use // of the card as a whole
	measured               bool        // use is reported
	corrected, uncorrected uint64
	pages, rows, failed    bool // wait for a reset; cannot be repaired
}

// New returns the profile's machine as the host nodeName. The GPUs in
// absent are not plugged in yet.
func New(p fake.Profile, nodeName string, absent ...int) *Host {
	p.Machine.GPUs = slices.Clone(p.Machine.GPUs)
	h := &Host{node: nodeName, uuids: uuids(p, nodeName), profile: p, woken: make(chan struct{}, 1), cards: make([]card, len(p.Machine.GPUs))}
	for i := range h.cards {
		h.cards[i].plugged = !slices.Contains(absent, i)
	}
	h.told = newTold(len(h.cards))
	h.settle()
	h.pending = nil // the cards of the start are known
	return h
}

// GPUs is the number of GPUs of the profile, plugged in or not.
func (h *Host) GPUs() int { return len(h.uuids) }

// UUID names a GPU.
func (h *Host) UUID(gpu int) string { return h.uuids[gpu] }

// uuids are those of the machine's GPUs.
func uuids(p fake.Profile, nodeName string) []string {
	var all []string
	for _, d := range p.Inventory(nodeName).Devices {
		all = append(all, d.UUID)
	}
	return all
}

// change changes a card and reports the consequences.
func (h *Host) change(gpu int, what func(*card)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	what(&h.cards[gpu])
	h.settle()
}

// XID logs an XID error of the GPU.
func (h *Host) XID(gpu int, xid uint64) {
	h.change(gpu, func(c *card) { c.xids = append(c.xids, xid) })
}

// ECC adds memory errors to the GPU's counters.
func (h *Host) ECC(gpu int, corrected, uncorrected uint64) {
	h.change(gpu, func(c *card) { c.corrected, c.uncorrected = c.corrected+corrected, c.uncorrected+uncorrected })
}

// Run sets the processes on the GPU, in ascending order; an empty list ends
// all.
func (h *Host) Run(gpu int, pids ...int) {
	h.change(gpu, func(c *card) { c.pids = pids })
}

// Use sets the use of the GPU: percent of the time, and bytes of its memory.
// Before the first call no use is reported.
func (h *Host) Use(gpu int, percent int, memory resource.Bytes) {
	h.change(gpu, func(c *card) {
		c.use, c.measured = devices.Use{UUID: h.UUID(gpu), Percent: percent, Memory: memory}, true
	})
}

// Retire sets whether memory pages of the GPU wait for a reset.
func (h *Host) Retire(gpu int, pending bool) {
	h.change(gpu, func(c *card) { c.pages = pending })
}

// Remap sets whether memory rows of the GPU wait for a reset, and whether a row
// could not be remapped.
func (h *Host) Remap(gpu int, pending, failed bool) {
	h.change(gpu, func(c *card) { c.rows, c.failed = pending, failed })
}

// Lose has the GPU fall off the bus, Return has the GPU answer again.
func (h *Host) Lose(gpu int) { h.change(gpu, func(c *card) { c.lost = true }) }

// Return ends Lose.
func (h *Host) Return(gpu int) { h.change(gpu, func(c *card) { c.lost = false }) }

// Plug puts a GPU in, Unplug takes the GPU out.
func (h *Host) Plug(gpu int) { h.change(gpu, func(c *card) { c.plugged = true }) }

// Unplug ends Plug.
func (h *Host) Unplug(gpu int) { h.change(gpu, func(c *card) { c.plugged = false }) }

// Hang leaves questions about the GPU's state unanswered, Answer ends Hang.
func (h *Host) Hang(gpu int) { h.change(gpu, func(c *card) { c.hung = true }) }

// Answer ends Hang.
func (h *Host) Answer(gpu int) { h.change(gpu, func(c *card) { c.hung = false }) }

// Partition puts the GPU in MIG mode with these instances; their UUIDs follow
// from their places. An unknown profile name, and a GPU without MIG in
// the profile, panic.
func (h *Host) Partition(gpu int, instances ...devices.MIGInstance) {
	state := &fake.MIG{Enabled: true}
	for _, m := range instances {
		if _, _, err := fake.MIGSlices(m.Profile); err != nil {
			panic(fmt.Sprintf("fakehost: partition GPU %d: %v", gpu, err))
		}
		state.Instances = append(state.Instances, fake.Instance{Profile: m.Profile, Memory: fake.Quantity{Bytes: m.Memory}})
	}
	h.setMIG(gpu, state)
}

// Unpartition ends the GPU's MIG mode.
func (h *Host) Unpartition(gpu int) { h.setMIG(gpu, &fake.MIG{}) }

func (h *Host) setMIG(gpu int, state *fake.MIG) {
	h.change(gpu, func(*card) {
		g := &h.profile.Machine.GPUs[gpu]
		if g.MIG == nil {
			panic(fmt.Sprintf("fakehost: partition GPU %d: a %s cannot be partitioned", gpu, g.Model))
		}
		g.MIG = state
	})
}

// UnloadDriver takes the driver away, LoadDriver brings the driver back. Counters of
// memory errors begin anew.
func (h *Host) UnloadDriver() { h.load(false) }

// LoadDriver ends UnloadDriver.
func (h *Host) LoadDriver() { h.load(true) }

func (h *Host) load(there bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.unloaded = !there
	if h.unloaded {
		for i := range h.cards {
			h.cards[i].corrected, h.cards[i].uncorrected = 0, 0
		}
	}
	h.settle()
}

// Inventory is the sum of Watch's reports: the devices of the start by PCI address,
// also the lost, then the later plugged in.
func (h *Host) Inventory() *devices.Inventory {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.inventory()
}

// NVMLScript is the host as a script of the fake NVML library; nil where the
// driver is unloaded: there is no script then.
func (h *Host) NVMLScript() []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.unloaded {
		return nil
	}
	return script(h.profile, h.node, func(gpu int) bool { return h.cards[gpu].plugged }, func(out *bytes.Buffer, gpu int) {
		h.cards[gpu].script(out)
	})
}

func (c *card) script(out *bytes.Buffer) {
	pages, rows := "none", ""
	if c.pages {
		pages = "pending"
	}
	if c.rows {
		rows += " pending"
	}
	if c.failed {
		rows += " failed"
	}
	fmt.Fprintf(out, "  ecc %d %d\n  retired %s\n  rows 0 0%s\n", c.corrected, c.uncorrected, pages, rows)
	for _, xid := range c.xids {
		fmt.Fprintf(out, "  xid %d\n", xid)
	}
	for _, pid := range c.pids {
		fmt.Fprintf(out, "  process compute %d\n", pid)
	}
	if c.measured {
		fmt.Fprintf(out, "  use %d %d\n", c.use.Percent, c.use.Memory)
	}
	if c.lost {
		fmt.Fprintf(out, "  lost\n")
	}
	if c.hung {
		fmt.Fprintf(out, "  hang retired\n")
	}
}

// Watch hands every change to emit from the calling goroutine, those of before
// first, until ctx ends; then Watch returns nil. One Watch runs at a time.
func (h *Host) Watch(ctx context.Context, emit func(devices.Change)) error {
	for {
		for _, c := range h.take() {
			emit(c)
		}
		select {
		case <-h.woken:
		case <-ctx.Done():
			return nil
		}
	}
}

// take returns the changes to report.
func (h *Host) take() []devices.Change {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := h.pending
	h.pending = nil
	return list
}
