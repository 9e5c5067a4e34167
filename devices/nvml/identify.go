//go:build cgo && linux

package nvml

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"unicode"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/resource"
)

// read asks for everything about the card at NVML's index but its links. A
// card without identity or presence is left out with a warning.
func (d *discovery) read(position int) (*card, bool) {
	c := &card{position: position}
	if !d.identify(c) {
		return nil, false
	}
	warned := len(d.warnings)
	if !d.describe(c) {
		return nil, false
	}
	c.device.NUMANode = d.node(c)
	c.device.Clique = d.clique(c)
	var doubtful bool
	c.device.MIG, doubtful = d.partitions(c)
	if c.lost != nvml.SUCCESS {
		d.warnings = d.warnings[:warned] // the consequences of the loss
		d.leaveOut(c, "while it was read: %s: %v", c.lostBy, answer(c.lost))
		return nil, false
	}
	if doubtful {
		d.doubtful[c.device.UUID] = true
	}
	return c, true
}

// identify reads the card's handle, address and UUID.
func (d *discovery) identify(c *card) bool {
	var ret nvml.Return
	d.asking("nvmlDeviceGetHandleByIndex_v2", c)
	if c.handle, ret = d.library.DeviceGetHandleByIndex(c.position); !d.ok(c, ret) {
		d.leaveOut(c, "handle: nvmlDeviceGetHandleByIndex_v2: %v", answer(ret))
		return false
	}
	if d.lacks("nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetPciInfo_v2") {
		d.leaveOut(c, "PCI address: the library has no nvmlDeviceGetPciInfo_v3")
		return false
	}
	d.asking("nvmlDeviceGetPciInfo", c)
	address, ret := c.handle.GetPciInfo()
	if !d.ok(c, ret) {
		d.leaveOut(c, "PCI address: nvmlDeviceGetPciInfo: %v", answer(ret))
		return false
	}
	var err error
	if c.device.PCIBusID, err = busID(address); err != nil {
		d.leaveOut(c, "nvmlDeviceGetPciInfo: %v", err)
		return false
	}
	if d.lacks("nvmlDeviceGetUUID") {
		d.leaveOut(c, "UUID: the library has no nvmlDeviceGetUUID")
		return false
	}
	d.asking("nvmlDeviceGetUUID", c)
	uuid, ret := c.handle.GetUUID()
	switch {
	case !d.ok(c, ret):
		d.leaveOut(c, "UUID: nvmlDeviceGetUUID: %v", answer(ret))
		return false
	case uuidFault(uuid, "") != "":
		d.leaveOut(c, "UUID: nvmlDeviceGetUUID: %s", uuidFault(uuid, ""))
		return false
	}
	c.device.UUID = uuid
	return true
}

// describe reads model and memory.
func (d *discovery) describe(c *card) bool {
	if c.device.Model = d.model(c); c.lost != nvml.SUCCESS {
		d.leaveOut(c, "model: nvmlDeviceGetName: %v", answer(c.lost))
		return false
	}
	const call = "nvmlDeviceGetMemoryInfo"
	if d.lacks(call) {
		d.warnf("%v: memory: the library has no %s: its size is unknown", c, call)
		return true
	}
	d.asking(call, c)
	memory, ret := c.handle.GetMemoryInfo()
	switch {
	case isUnsupported(ret): // a GPU that shares the host's memory (GB10)
		d.warnf("%v: memory: %s: %v: its size is unknown", c, call, answer(ret))
	case !d.ok(c, ret):
		d.leaveOut(c, "memory: %s: %v", call, answer(ret))
		return false
	case memory.Total == 0:
		d.warnf("%v: memory: %s: the driver reports 0 bytes: its size is unknown", c, call)
	case memory.Total > uint64(resource.MaxMemory):
		d.warnf("%v: memory: %s: the driver reports %d bytes, and no GPU has more than %d: its size is unknown", c, call, memory.Total, resource.MaxMemory)
	default:
		c.device.Memory = resource.Bytes(memory.Total)
	}
	return true
}

// model is the product's name, "" where the driver does not report it.
func (d *discovery) model(c *card) string {
	const call = "nvmlDeviceGetName"
	if d.lacks(call) {
		d.warnf("%v: model: the library has no %s", c, call)
		return ""
	}
	d.asking(call, c)
	text, ret := c.handle.GetName()
	if !d.ok(c, ret) {
		d.warnf("%v: model: %s: %v", c, call, answer(ret))
		return ""
	}
	shown := printable(text)
	switch {
	case text == "":
		d.warnf("%v: model: %s: the driver reports an empty one", c, call)
	case shown != text:
		d.warnf("%v: model: %s: the driver reports %.96q: shown as %q", c, call, text, shown)
	}
	return shown
}

// uuidFault says why text cannot name a device, "" if it can. A UUID is handed
// on in environment variables, lists and files: letters, digits, "-", "_", "."
// and ":" name a GPU, and more names a MIG instance. No path is ever made of
// one, and none that looks like a path is taken.
func uuidFault(text, more string) string {
	isPlain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.:"+more, r)
	}
	switch {
	case text == "":
		return "the driver reports an empty one"
	case len(text) > devices.MaxUUID, strings.Contains(text, ".."), strings.ContainsFunc(text, func(r rune) bool { return !isPlain(r) }):
		return fmt.Sprintf("the driver reports %.96q, which cannot be handed on", text)
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
			d.leaveOut(c, "nvmlDeviceGetUUID: UUID %s is also that of %v", c.device.UUID, owner)
		}
		return owner != c
	})
}

// busID is the address from the driver's fields: drivers before R384
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
// node; its "NUMA node id" has another meaning, the node of the card's own memory
// where the host's memory and the card's are one space (Grace Hopper).
func (d *discovery) node(c *card) int {
	if d.has("nvmlDeviceGetMemoryAffinity") {
		d.asking("nvmlDeviceGetMemoryAffinity", c)
		words, ret := c.handle.GetMemoryAffinity(affinityNodes, nvml.AFFINITY_SCOPE_NODE)
		if d.ok(c, ret) {
			if node, ok := onlyMember(words); ok {
				return node
			}
		} else if !isUnsupported(ret) && !isLost(ret) && !isGone(ret) {
			d.warnf("%v: NUMA node: nvmlDeviceGetMemoryAffinity: %v: the host's files are asked", c, answer(ret))
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
