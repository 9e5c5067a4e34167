// Package devices describes a GPU: its identity, memory, place in the host,
// links to its neighbours, MIG instances and health. It does not find GPUs
// (devices/nvml and devices/fake do) and does not choose among them (fit does).
package devices

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/musterd/muster/resource"
)

// UnknownNode is the NUMA node of a device whose host does not report the node.
const UnknownNode = -1

// Device is one physical GPU.
type Device struct {
	Index    int    // position in the inventory: ascending by PCI address at agent start; hot-added ones follow
	UUID     string // "GPU-" and 36 characters
	Model    string // the vendor's product name, e.g. "NVIDIA A100-SXM4-80GB"
	Memory   resource.Bytes
	PCIBusID string // "0000:07:00.0"
	NUMANode int    // kernel node number, or UnknownNode
	// Clique is the group of GPUs, of this host and of others, that NVLink connects: the
	// cluster's UUID, a dot and the number of the clique; "" where there is none.
	Clique string
	MIG    MIG
	Health Health
}

// MaxClique is the most bytes of a clique: a UUID, a dot and a number of 32 bits.
const MaxClique = 36 + 1 + 10

// ValidClique reports whether text names a clique, or none. A clique is a value of a label.
func ValidClique(text string) bool {
	cluster, number, _ := strings.Cut(text, ".")
	_, err := strconv.ParseUint(number, 10, 32)
	return text == "" || len(text) <= MaxClique && validUUID(cluster) && strings.Trim(cluster, "0123456789abcdefABCDEF-") == "" && err == nil
}

// MIG is the state of multi-instance GPU mode of one device.
type MIG struct {
	Enabled   bool
	Instances []MIGInstance
}

// MaxDevices is the most devices of one host.
const MaxDevices = 64

// MaxMIGInstances is the most instances of one device, so that a set of them
// is a word of 16 bits. The vendor's most is 7, and 14 with compute instances
// of their own.
const MaxMIGInstances = 16

// MIGInstance is one partition of a device in MIG mode.
type MIGInstance struct {
	UUID    string // "MIG-" and 36 characters
	Profile string // e.g. "1g.10gb"
	Memory  resource.Bytes
}

// Slices is the number of GPU slices that the instance's profile takes, of
// seven on a whole device: 3 for "3g.40gb". It is 1 where the profile does not
// say.
func (m MIGInstance) Slices() int {
	at := strings.Index(m.Profile, "g.")
	if at < 1 {
		return 1
	}
	if d := m.Profile[at-1]; d >= '1' && d <= '9' {
		return int(d - '0')
	}
	return 1
}

// Health is a device's state, orthogonal to who owns it.
type Health uint8

const (
	// OK devices take new work.
	OK Health = iota
	// Suspect devices showed a fault once; they still take work.
	Suspect
	// Tainted devices take no new work.
	Tainted
	// Probation devices were tainted and are watched before they return.
	Probation
)

var healthNames = [...]string{"ok", "suspect", "tainted", "probation"}

// String returns the state's name.
func (h Health) String() string {
	if int(h) < len(healthNames) {
		return healthNames[h]
	}
	return fmt.Sprintf("Health(%d)", uint8(h))
}

// ParseHealth reads a state's name.
func ParseHealth(s string) (Health, error) {
	for i, n := range healthNames {
		if n == s {
			return Health(i), nil
		}
	}
	return 0, fmt.Errorf("health %q: want ok, suspect, tainted or probation", s)
}

// Allocatable reports whether a device in this state may be handed out.
func (h Health) Allocatable() bool { return h == OK || h == Suspect }
