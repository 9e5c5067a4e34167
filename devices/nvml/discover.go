//go:build cgo && linux

package nvml

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/resource"
)

// discovery is one pass over the cards.
type discovery struct {
	library  nvml.Interface
	has      func(symbol string) bool
	numaNode func(busID string) (int, bool)
	warnings []string
}

// card is a device while its index is not yet known.
type card struct {
	position int // NVML's index, for warnings
	handle   nvml.Device
	device   devices.Device
}

func (c card) String() string {
	if c.device.PCIBusID == "" {
		return fmt.Sprintf("GPU %d at an unknown PCI address", c.position)
	}
	return fmt.Sprintf("GPU %d at %s", c.position, c.device.PCIBusID)
}

func (d *discovery) warnf(format string, args ...any) {
	d.warnings = append(d.warnings, fmt.Sprintf(format, args...))
}

func (d *discovery) run() (*devices.Inventory, error) {
	inv := &devices.Inventory{}
	driver, ret := d.library.SystemGetDriverVersion()
	if ret != nvml.SUCCESS {
		d.warnf("driver version: %v", ret)
	}
	inv.Driver = strings.ToValidUTF8(driver, "?")
	count, ret := d.library.DeviceGetCount()
	if ret != nvml.SUCCESS {
		return nil, fmt.Errorf("count devices: %w", ret)
	}
	var cards []card
	for i := range count {
		if c, ok := d.read(i); ok {
			cards = append(cards, c)
		}
	}
	slices.SortFunc(cards, func(a, b card) int {
		return cmp.Or(devices.ComparePCIBusID(a.device.PCIBusID, b.device.PCIBusID), cmp.Compare(a.position, b.position))
	})
	cards = d.dropDuplicates(cards)
	inv.Devices = make([]devices.Device, len(cards))
	for i := range cards {
		cards[i].device.Index = i
		inv.Devices[i] = cards[i].device
	}
	inv.Links = d.links(cards)
	if err := inv.Validate(); err != nil {
		return nil, err
	}
	return inv, nil
}

// read asks for everything about the card at NVML's index. A card without
// identity, memory or presence is left out with a warning.
func (d *discovery) read(position int) (card, bool) {
	c := card{position: position}
	leaveOut := func(what string, reason any) (card, bool) {
		d.warnf("%v: left out: %s: %v", c, what, reason)
		return card{}, false
	}
	var ret nvml.Return
	if c.handle, ret = d.library.DeviceGetHandleByIndex(position); ret != nvml.SUCCESS {
		return leaveOut("handle", ret)
	}
	address, ret := c.handle.GetPciInfo()
	if ret != nvml.SUCCESS {
		return leaveOut("PCI address", ret)
	}
	var err error
	if c.device.PCIBusID, err = busID(address); err != nil {
		return leaveOut("PCI address", err)
	}
	uuid, ret := c.handle.GetUUID()
	switch {
	case ret != nvml.SUCCESS:
		return leaveOut("UUID", ret)
	case uuid == "":
		return leaveOut("UUID", "the driver reports an empty one")
	}
	c.device.UUID = strings.ToValidUTF8(uuid, "?")
	model, ret := c.handle.GetName()
	switch ret {
	case nvml.SUCCESS:
	case nvml.ERROR_GPU_IS_LOST:
		return leaveOut("model", ret)
	default:
		d.warnf("%v: model: %v", c, ret)
	}
	c.device.Model = strings.ToValidUTF8(model, "?")
	memory, ret := c.handle.GetMemoryInfo()
	switch {
	case ret != nvml.SUCCESS:
		return leaveOut("memory", ret)
	case memory.Total > math.MaxInt64:
		return leaveOut("memory", fmt.Sprintf("%d bytes are more than can be counted", memory.Total))
	}
	c.device.Memory = resource.Bytes(memory.Total)
	c.device.NUMANode = d.node(c)
	c.device.MIG = d.partitions(c)
	return c, true
}

// dropDuplicates keeps the first of the cards that share a UUID. Nothing can
// be granted twice that way: a UUID is handed out once, whichever of the cards
// answers to it.
func (d *discovery) dropDuplicates(cards []card) []card {
	owners := map[string]card{}
	return slices.DeleteFunc(cards, func(c card) bool {
		owner, duplicate := owners[c.device.UUID]
		if duplicate {
			d.warnf("%v: left out: UUID %s is also that of %v", c, c.device.UUID, owner)
			return true
		}
		owners[c.device.UUID] = c
		return false
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
func (d *discovery) node(c card) int {
	if d.has("nvmlDeviceGetMemoryAffinity") {
		if words, ret := c.handle.GetMemoryAffinity(affinityNodes, nvml.AFFINITY_SCOPE_NODE); ret == nvml.SUCCESS {
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
