package devices

import (
	"fmt"
	"strconv"
	"strings"
)

// Link is how two GPUs reach each other: the NVLinks that connect them, and the
// PCIe relation that takes the traffic that goes by no NVLink. Greater is better, so links
// compare as numbers: by the NVLinks first, then by the relation.
type Link uint8

// The PCIe relations in the words of `nvidia-smi topo -m`, worst first. NVLink
// connections follow: NVLink(1) < NVLink(1).Over(LinkSYS) < … < NVLink(2) < …
const (
	LinkNone  Link = iota // the device itself; between two devices, not known
	LinkSYS               // across NUMA nodes' interconnect
	LinkNODE              // across PCIe host bridges of one NUMA node
	LinkPHB               // across one PCIe host bridge
	LinkPXB               // across several PCIe switches
	LinkPIX               // across at most one PCIe switch
	perNVLink             // the value that each NVLink adds
)

// MaxNVLinks is the greatest number of NVLinks between two GPUs.
const MaxNVLinks = 32

// NVLink returns the connection by n direct or switched NVLinks, of which no
// PCIe relation is known, 1 <= n <= MaxNVLinks. Other n are the caller's broken
// invariant and panic.
func NVLink(n int) Link {
	if n < 1 || n > MaxNVLinks {
		panic(fmt.Sprintf("devices: %d NVLinks outside 1..%d", n, MaxNVLinks))
	}
	return Link(n) * perNVLink
}

// NVLinks returns the number of NVLinks, 0 for a PCIe relation.
func (l Link) NVLinks() int { return int(l / perNVLink) }

// PCIe returns the PCIe relation, LinkNone where only the NVLinks are known.
func (l Link) PCIe() Link { return l % perNVLink }

// Over returns the same NVLinks over another PCIe relation. Where path has
// NVLinks itself, they do not count.
func (l Link) Over(path Link) Link { return l - l.PCIe() + path.PCIe() }

// Valid reports whether l is a connection that the functions above return.
func (l Link) Valid() bool { return l.NVLinks() <= MaxNVLinks }

var linkNames = [...]string{"X", "SYS", "NODE", "PHB", "PXB", "PIX"}

// String returns the name `nvidia-smi topo -m` uses: "X", "SYS", "NODE",
// "PHB", "PXB", "PIX", "NV12". Beside NVLinks it leaves the relation out.
func (l Link) String() string {
	if n := l.NVLinks(); n > 0 {
		return "NV" + strconv.Itoa(n)
	}
	return linkNames[l]
}

// ParseLink reads a name that String prints; NVLinks come without a relation.
func ParseLink(s string) (Link, error) {
	for i, n := range linkNames {
		if n == s {
			return Link(i), nil
		}
	}
	if digits, ok := strings.CutPrefix(s, "NV"); ok {
		if n, err := strconv.Atoi(digits); err == nil && n >= 1 && n <= MaxNVLinks && strconv.Itoa(n) == digits {
			return NVLink(n), nil
		}
	}
	return 0, fmt.Errorf("link %q: want SYS, NODE, PHB, PXB, PIX or NV1..NV%d", s, MaxNVLinks)
}
