//go:build cgo && linux

package nvml

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
	"unicode"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/resource"
)

// maxCards bounds what is read of a driver that is out of its mind.
const maxCards = 4 * devices.MaxDevices

// discovery is one pass over the cards.
type discovery struct {
	library  nvml.Interface
	has      func(symbol string) bool
	numaNode func(busID string) (int, bool)
	// known says at which address a UUID was before.
	known map[string]string
	// asking is told of which card the next questions are; "" is the driver.
	asking func(question, uuid string)

	warnings []string
	doubtful map[string]bool   // by UUID: partitions could not be read
	leftOut  map[string]string // by PCI address: why
	gone     nvml.Return       // what a call answered that no driver answers
}

// card is a device while its index is not yet known.
type card struct {
	position int // NVML's index, for warnings
	handle   nvml.Device
	device   devices.Device
	lost     nvml.Return // what a call answered of a card that is gone
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
	d.warnf("%v: left out: %s", c, why)
}

// ok reports whether a call about the card succeeded, and keeps what it says
// about the presence of the card and of the driver.
func (d *discovery) ok(c *card, ret nvml.Return) bool {
	switch {
	case isGone(ret) && d.gone == nvml.SUCCESS:
		d.gone = ret
	case isLost(ret):
		c.lost = ret
	}
	return ret == nvml.SUCCESS
}

// isLost tells the answers of a card that is gone, or that needs a reset
// before it can be used again.
func isLost(ret nvml.Return) bool {
	return ret == nvml.ERROR_GPU_IS_LOST || ret == nvml.ERROR_RESET_REQUIRED || ret == nvml.ERROR_GPU_NOT_FOUND
}

// isGone tells the answers without a driver, or with another than the library's.
func isGone(ret nvml.Return) bool {
	return ret == nvml.ERROR_UNINITIALIZED || ret == nvml.ERROR_DRIVER_NOT_LOADED || ret == nvml.ERROR_LIB_RM_VERSION_MISMATCH
}

// run returns what was seen and the cards behind it, in the same order. An
// error means that nothing can be said of any card.
func (d *discovery) run() (sighting, []*card, error) {
	d.doubtful, d.leftOut = map[string]bool{}, map[string]string{}
	d.asking("the number of GPUs", "")
	inv := &devices.Inventory{}
	driver, ret := d.library.SystemGetDriverVersion()
	if ret != nvml.SUCCESS {
		d.warnf("driver version: %v", ret)
	}
	inv.Driver = printable(driver)
	count, ret := d.library.DeviceGetCount()
	switch {
	case ret != nvml.SUCCESS:
		return sighting{}, nil, d.failure("count devices", ret)
	case count > maxCards:
		return sighting{}, nil, fmt.Errorf("the driver names %d GPUs: no host has more than %d", count, maxCards)
	}
	var cards []*card
	for i := range count {
		if c, ok := d.read(i); ok {
			cards = append(cards, c)
		}
	}
	slices.SortFunc(cards, func(a, b *card) int {
		return cmp.Or(devices.ComparePCIBusID(a.device.PCIBusID, b.device.PCIBusID), cmp.Compare(a.position, b.position))
	})
	cards = d.dropDuplicates(cards)
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
	return sighting{inv, d.warnings, d.doubtful, d.leftOut}, cards, nil
}

func (d *discovery) failure(what string, ret nvml.Return) error {
	if ret == nvml.ERROR_DRIVER_NOT_LOADED || ret == nvml.ERROR_UNINITIALIZED {
		return fmt.Errorf("%w: %s: %w", ErrNoDriver, what, ret)
	}
	return fmt.Errorf("%s: %w", what, ret)
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
		d.warnings = d.warnings[:warned] // what follows from the loss
		for _, c := range cards {
			if !isThere(c) {
				d.leaveOut(c, "while its links were read: %v", c.lost)
			}
		}
		cards = slices.DeleteFunc(cards, func(c *card) bool { return !isThere(c) })
	}
}

// read asks for everything about the card at NVML's index but its links. A
// card without identity, memory or presence is left out with a warning.
func (d *discovery) read(position int) (*card, bool) {
	c := &card{position: position}
	d.asking("the identity of a GPU", "")
	var ret nvml.Return
	if c.handle, ret = d.library.DeviceGetHandleByIndex(position); !d.ok(c, ret) {
		d.leaveOut(c, "handle: %v", ret)
		return nil, false
	}
	address, ret := c.handle.GetPciInfo()
	if !d.ok(c, ret) {
		d.leaveOut(c, "PCI address: %v", ret)
		return nil, false
	}
	var err error
	if c.device.PCIBusID, err = busID(address); err != nil {
		d.leaveOut(c, "%v", err)
		return nil, false
	}
	uuid, ret := c.handle.GetUUID()
	switch {
	case !d.ok(c, ret):
		d.leaveOut(c, "UUID: %v", ret)
		return nil, false
	case uuidFault(uuid) != "":
		d.leaveOut(c, "UUID: %s", uuidFault(uuid))
		return nil, false
	}
	c.device.UUID = uuid
	d.asking("the properties of a GPU", uuid)
	warned := len(d.warnings)
	if !d.describe(c) {
		return nil, false
	}
	c.device.NUMANode = d.node(c)
	var doubtful bool
	c.device.MIG, doubtful = d.partitions(c)
	if c.lost != nvml.SUCCESS {
		d.warnings = d.warnings[:warned] // what follows from the loss
		d.leaveOut(c, "while it was read: %v", c.lost)
		return nil, false
	}
	if doubtful {
		d.doubtful[uuid] = true
	}
	return c, true
}

// describe reads model and memory.
func (d *discovery) describe(c *card) bool {
	model, ret := c.handle.GetName()
	if !d.ok(c, ret) {
		if c.lost != nvml.SUCCESS {
			d.leaveOut(c, "model: %v", ret)
			return false
		}
		d.warnf("%v: model: %v", c, ret)
	}
	c.device.Model = printable(model)
	memory, ret := c.handle.GetMemoryInfo()
	switch {
	case !d.ok(c, ret):
		d.leaveOut(c, "memory: %v", ret)
		return false
	case memory.Total > math.MaxInt64:
		d.leaveOut(c, "memory: %d bytes are more than can be counted", memory.Total)
		return false
	}
	c.device.Memory = resource.Bytes(memory.Total)
	return true
}

// uuidFault says why text cannot name a device, "" if it can: it is handed on
// in environment variables, lists and files, as plain characters without spaces
// and commas.
func uuidFault(text string) string {
	switch {
	case text == "":
		return "the driver reports an empty one"
	case strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' || r == ',' }):
		return fmt.Sprintf("the driver reports %q, which cannot be handed on", text)
	}
	return ""
}

// printable is the text as one line that a terminal shows.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
}

// dropDuplicates keeps one of the cards that share a UUID: the one at the
// address where it was known, else the first. Nothing can be granted twice
// that way: a UUID is handed out once, whichever of the cards answers to it.
func (d *discovery) dropDuplicates(cards []*card) []*card {
	owners := map[string]*card{}
	for _, c := range cards {
		if _, taken := owners[c.device.UUID]; !taken || d.known[c.device.UUID] == c.device.PCIBusID {
			owners[c.device.UUID] = c
		}
	}
	return slices.DeleteFunc(cards, func(c *card) bool {
		owner := owners[c.device.UUID]
		if owner != c {
			d.leaveOut(c, "UUID %s is also that of %v", c.device.UUID, owner)
		}
		return owner != c
	})
}

// busID is the address from what the driver fills in: drivers before R384
// leave the text empty. A GPU is function 0 of its device.
func busID(info nvml.PciInfo) (string, error) {
	text := make([]byte, 0, len(info.BusId))
	for _, c := range info.BusId {
		if c == 0 {
			break
		}
		text = append(text, byte(c))
	}
	if len(text) == 0 {
		text = fmt.Appendf(nil, "%x:%x:%x.0", info.Domain, info.Bus, info.Device)
	}
	return devices.NormalizePCIBusID(string(text))
}

// affinityNodes asks GetMemoryAffinity for 16 words, so nodes 0 to 1023: it
// divides its argument by the bytes, not the bits, of a word.
const affinityNodes = 16 * 8

// node is the NUMA node next to the card. NVML's "memory affinity" is that
// node; its "NUMA node id" is another thing, the node of the card's own memory
// where the host's memory and the card's are one space (Grace Hopper).
func (d *discovery) node(c *card) int {
	if d.has("nvmlDeviceGetMemoryAffinity") {
		if words, ret := c.handle.GetMemoryAffinity(affinityNodes, nvml.AFFINITY_SCOPE_NODE); d.ok(c, ret) {
			if node, ok := onlyMember(words); ok {
				return node
			}
		}
	}
	if d.numaNode != nil {
		if node, ok := d.numaNode(c.device.PCIBusID); ok && node >= 0 {
			return node
		}
	}
	return devices.UnknownNode
}

// onlyMember is the position of the only bit that is set. Several nodes mean
// that the driver knows no nearest one.
func onlyMember(words []uint) (int, bool) {
	member, found := 0, false
	for i, w := range words {
		if w == 0 {
			continue
		}
		if found || w&(w-1) != 0 {
			return 0, false
		}
		member, found = i*bits.UintSize+bits.TrailingZeros(w), true
	}
	return member, found
}
