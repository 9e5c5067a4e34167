//go:build cgo && linux

package nvml

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/musterd/muster/devices"
)

// maxCards bounds the cards that are read of a broken driver.
const maxCards = 4 * devices.MaxDevices

// discovery is one pass over the cards.
type discovery struct {
	library  nvml.Interface
	has      func(symbol string) bool
	numaNode func(busID string) (int, bool)
	// known says at which address a UUID was before.
	known map[string]string
	// note takes each call before it is made; last is the last one.
	note asker
	last string
	// patience bounds the discovery; nil waits for every call.
	patience *patience
	// skip has the calls that hang: nothing is asked about their cards.
	skip skips

	warnings []string
	doubtful map[string]bool   // by UUID: partitions could not be read
	leftOut  map[string]string // by PCI address: why
	unknown  []devices.Unknown // cards that the driver counts and that are not used
	gone     nvml.Return       // the answer of a call that no driver answers
}

// fork is a discovery of its own for one card, so that a call that is left
// behind writes nothing that others read.
func (d *discovery) fork(asking asker) *discovery {
	return &discovery{
		library: d.library, has: d.has, numaNode: d.numaNode, known: d.known, note: asking,
		doubtful: map[string]bool{}, leftOut: map[string]string{},
	}
}

// asking notes a call that begins.
func (d *discovery) asking(call string, c *card) {
	d.last = call
	d.note(call, c)
}

// adopt takes over the results of a fork.
func (d *discovery) adopt(f *discovery) {
	d.warnings = append(d.warnings, f.warnings...)
	d.unknown = append(d.unknown, f.unknown...)
	maps.Copy(d.doubtful, f.doubtful)
	maps.Copy(d.leftOut, f.leftOut)
	if d.gone == nvml.SUCCESS {
		d.gone = f.gone
	}
}

// lacks reports whether the library has none of the functions, which are
// versions of one. A call of an absent function would end the process.
func (d *discovery) lacks(versions ...string) bool {
	return !slices.ContainsFunc(versions, d.has)
}

// card is a device while its index is not yet known.
type card struct {
	position int // NVML's index, for warnings
	handle   nvml.Device
	device   devices.Device
	lost     nvml.Return // the answer of a call about a card that is gone
	lostBy   string      // that call
	stuck    bool        // a call about it hangs; the watch's goroutine's alone
}

func (c *card) String() string {
	if c.device.PCIBusID == "" {
		return fmt.Sprintf("GPU %d at an unknown PCI address", c.position)
	}
	return fmt.Sprintf("GPU %d at %s", c.position, c.device.PCIBusID)
}

func (d *discovery) warnf(format string, args ...any) {
	d.warnings = append(d.warnings, fmt.Sprintf(format, args...))
}

// leaveOut warns that the card is not used.
func (d *discovery) leaveOut(c *card, format string, args ...any) {
	why := fmt.Sprintf(format, args...)
	d.leftOut[c.device.PCIBusID] = why
	d.unknown = append(d.unknown, devices.Unknown{Position: c.position, PCIBusID: c.device.PCIBusID, Why: why})
	d.warnf("%v: left out: %s", c, why)
}

// ok reports whether a call about the card succeeded, and keeps its answer
// about the presence of the card and of the driver.
func (d *discovery) ok(c *card, ret nvml.Return) bool {
	switch {
	case isGone(ret) && d.gone == nvml.SUCCESS:
		d.gone = ret
	case isLost(ret):
		c.lost, c.lostBy = ret, d.last
	}
	return ret == nvml.SUCCESS
}

// isLost recognizes the answers of a card that is gone, or that needs a reset
// before it can be used again.
func isLost(ret nvml.Return) bool {
	return ret == nvml.ERROR_GPU_IS_LOST || ret == nvml.ERROR_RESET_REQUIRED || ret == nvml.ERROR_GPU_NOT_FOUND
}

// isGone recognizes the answers without a driver, or with another than the library's.
func isGone(ret nvml.Return) bool {
	return ret == nvml.ERROR_UNINITIALIZED || ret == nvml.ERROR_DRIVER_NOT_LOADED || ret == nvml.ERROR_LIB_RM_VERSION_MISMATCH
}

// run returns the sightings and the cards behind them, in the same order. An
// error means that no card is known.
func (d *discovery) run() (sighting, []*card, error) {
	d.doubtful, d.leftOut = map[string]bool{}, map[string]string{}
	inv := &devices.Inventory{Driver: d.driverVersion()}
	count, err := d.count()
	if err != nil {
		return sighting{}, nil, err
	}
	cards := d.readAll(count)
	slices.SortFunc(cards, func(a, b *card) int {
		return cmp.Or(devices.ComparePCIBusID(a.device.PCIBusID, b.device.PCIBusID), cmp.Compare(a.position, b.position))
	})
	cards = d.dropDuplicates(cards)
	d.warnOfSharedAddresses(cards)
	cards, inv.Links = d.connect(cards)
	if d.gone != nvml.SUCCESS {
		return sighting{}, nil, d.failure("read devices", d.gone)
	}
	inv.Devices = make([]devices.Device, len(cards))
	for i, c := range cards {
		c.device.Index = i
		inv.Devices[i] = c.device
	}
	var more []string
	inv.Devices, more = distinctInstances(inv.Devices)
	d.warnings = append(d.warnings, more...)
	if err := inv.ValidateSeen(); err != nil {
		return sighting{}, nil, err
	}
	return sighting{inventory: inv, warnings: d.warnings, doubtful: d.doubtful, leftOut: d.leftOut, unknown: d.unknown}, cards, nil
}

// driverVersion is "" where the driver does not report it.
func (d *discovery) driverVersion() string {
	const call = "nvmlSystemGetDriverVersion"
	if d.lacks(call) {
		d.warnf("driver version: the library has no %s", call)
		return ""
	}
	d.asking(call, nil)
	version, ret := d.library.SystemGetDriverVersion()
	if ret != nvml.SUCCESS {
		d.warnf("driver version: %s: %v", call, answer(ret))
		return ""
	}
	return printable(version)
}

// count is the number of cards to ask about.
func (d *discovery) count() (int, error) {
	d.asking("nvmlDeviceGetCount_v2", nil)
	count, ret := d.library.DeviceGetCount()
	switch {
	case ret != nvml.SUCCESS:
		return 0, d.failure("nvmlDeviceGetCount_v2", ret)
	case count > maxCards || count < 0:
		d.warnf("nvmlDeviceGetCount_v2: the driver counts %d GPUs, and no host has more than %d: asked until one has no handle", uint32(count), maxCards)
		return d.handles(), nil
	}
	return count, nil
}

// handles counts the cards that have a handle, up to the first that has none.
func (d *discovery) handles() int {
	for i := range maxCards {
		d.asking("nvmlDeviceGetHandleByIndex_v2", &card{position: i})
		if _, ret := d.library.DeviceGetHandleByIndex(i); ret != nvml.SUCCESS {
			return i
		}
	}
	return maxCards
}

// readAll reads the cards at NVML's indices below count.
func (d *discovery) readAll(count int) []*card {
	type result struct {
		from *discovery
		card *card // nil if it was left out
	}
	var cards []*card
	var positions []int
	for i := range count {
		if q := d.skip.cards[i]; q != nil {
			d.unknown = append(d.unknown, devices.Unknown{Position: i, Why: q.silence(time.Now())})
			continue
		}
		positions = append(positions, i)
	}
	each(d.patience, len(positions), d.asking, func(i int, asking asker) result {
		from := d.fork(asking)
		c, _ := from.read(positions[i])
		return result{from, c}
	}, func(_ int, r result) {
		d.adopt(r.from)
		if r.card != nil {
			cards = append(cards, r.card)
		}
	}, func(i int, q *question) { d.passOver(positions[i], q) })
	return cards
}

// passOver lists a card whose call was left behind.
func (d *discovery) passOver(i int, q *question) {
	c := card{position: i}
	about, why := c.String(), "not asked: the time for discovery was over"
	if q != unasked {
		why = q.silence(time.Now())
		if q.about != "" {
			about = q.about
		}
	}
	d.unknown = append(d.unknown, devices.Unknown{Position: i, Why: why})
	d.warnf("%s: unknown: %s; it is looked for again", about, why)
}

// warnOfSharedAddresses names cards that are at one PCI address. They are used
// all the same: a card is known by its UUID.
func (d *discovery) warnOfSharedAddresses(cards []*card) {
	for i, c := range cards {
		if i > 0 && c.device.PCIBusID == cards[i-1].device.PCIBusID {
			d.warnf("%v: nvmlDeviceGetPciInfo: the driver names the same address for GPU %d (%s): both are used, by their UUIDs",
				c, cards[i-1].position, cards[i-1].device.UUID)
		}
	}
}

func (d *discovery) failure(what string, ret nvml.Return) error {
	if ret == nvml.ERROR_DRIVER_NOT_LOADED || ret == nvml.ERROR_UNINITIALIZED {
		return fmt.Errorf("%w: %s: %w", ErrNoDriver, what, answer(ret))
	}
	return fmt.Errorf("%s: %w", what, answer(ret))
}

// connect returns the cards that are there once the links of all have been
// read, and the links.
func (d *discovery) connect(cards []*card) ([]*card, [][]devices.Link) {
	for {
		warned := len(d.warnings)
		links := d.links(cards)
		isThere := func(c *card) bool { return c.lost == nvml.SUCCESS }
		if !slices.ContainsFunc(cards, func(c *card) bool { return !isThere(c) }) {
			return cards, links
		}
		d.warnings = d.warnings[:warned] // the consequences of the loss
		for _, c := range cards {
			if !isThere(c) {
				d.leaveOut(c, "while its links were read: %s: %v", c.lostBy, answer(c.lost))
			}
		}
		cards = slices.DeleteFunc(cards, func(c *card) bool { return !isThere(c) })
	}
}
