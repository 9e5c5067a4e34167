package devices

import (
	"fmt"
	"strings"

	"github.com/musterd/muster/resource"
)

// MaxUUID is the most bytes of a UUID. The vendor's have 40, those of MIG
// instances under old drivers about 55.
const MaxUUID = 256

const uuidRule = "want 1 to %d visible ASCII characters without \"..\""

func validUUID(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return s != "" && len(s) <= MaxUUID && !strings.Contains(s, "..")
}

// Inventory is all GPUs of one host. It is immutable once built.
//
// Invariant: Devices[i].Index == i; a Clique is "" or CLUSTER.NUMBER; there are at most MaxDevices; UUIDs are
// distinct, those of MIG instances too, and have 1 to MaxUUID visible ASCII
// characters and no ".."; memory is at most resource.MaxMemory bytes; a device has at most MaxMIGInstances, and instances only
// in MIG mode; Links is
// a symmetric square over Devices with LinkNone on the diagonal and nowhere
// else.
type Inventory struct {
	// Driver is the driver's version, "" where there is none.
	Driver  string
	Devices []Device
	Links   [][]Link
}

// Link returns the connection of two devices by index.
func (inv *Inventory) Link(a, b int) Link { return inv.Links[a][b] }

// Clique is the clique of all devices; "" where they have none, or not the same.
func (inv *Inventory) Clique() string {
	if len(inv.Devices) == 0 {
		return ""
	}
	for i := range inv.Devices {
		if inv.Devices[i].Clique != inv.Devices[0].Clique {
			return ""
		}
	}
	return inv.Devices[0].Clique
}

// Validate checks the type's invariants and names the first that is broken.
func (inv *Inventory) Validate() error {
	if len(inv.Devices) > MaxDevices {
		return fmt.Errorf("devices: %d devices, more than %d", len(inv.Devices), MaxDevices)
	}
	return inv.ValidateSeen()
}

// ValidateSeen checks the invariants of an inventory as a driver names it: all
// but the greatest number of devices, which discovery handles by itself.
func (inv *Inventory) ValidateSeen() error {
	seen, instances := map[string]int{}, map[string]int{}
	for i, d := range inv.Devices {
		if d.Index != i {
			return fmt.Errorf("devices: device %d carries index %d", i, d.Index)
		}
		if d.UUID == "" {
			return fmt.Errorf("devices: device %d (%s) has no UUID", i, d.PCIBusID)
		}
		if !validUUID(d.UUID) {
			return fmt.Errorf("devices: device %d (%s): UUID %.64q: "+uuidRule, i, d.PCIBusID, d.UUID, MaxUUID)
		}
		if j, dup := seen[d.UUID]; dup {
			return fmt.Errorf("devices: devices %d and %d share UUID %s", j, i, d.UUID)
		}
		seen[d.UUID] = i
		if !ValidClique(d.Clique) {
			return fmt.Errorf("devices: device %d has the clique %.64q: want the UUID of a cluster, a dot and a number", i, d.Clique)
		}
		if d.Memory < 0 || d.Memory > resource.MaxMemory {
			return fmt.Errorf("devices: device %d has %d bytes of memory, outside 0..%d", i, d.Memory, resource.MaxMemory)
		}
		if err := d.MIG.validate(i, instances); err != nil {
			return err
		}
	}
	if len(inv.Links) != len(inv.Devices) {
		return fmt.Errorf("devices: %d link rows for %d devices", len(inv.Links), len(inv.Devices))
	}
	for i, row := range inv.Links {
		if len(row) != len(inv.Devices) {
			return fmt.Errorf("devices: link row %d has %d columns for %d devices", i, len(row), len(inv.Devices))
		}
	}
	for i, row := range inv.Links {
		for j, l := range row {
			switch {
			case i == j && l != LinkNone:
				return fmt.Errorf("devices: device %d is linked to itself by %s, want %s", i, l, LinkNone)
			case i != j && l == LinkNone:
				return fmt.Errorf("devices: link %d-%d is %s, which only a device and itself may be", i, j, l)
			case l != inv.Links[j][i]:
				return fmt.Errorf("devices: link %d-%d is %s, its mirror %s", i, j, l, inv.Links[j][i])
			}
		}
	}
	return nil
}

// validate checks the instances of a device; seen says which device has a UUID.
func (m MIG) validate(device int, seen map[string]int) error {
	switch {
	case !m.Enabled && len(m.Instances) > 0:
		return fmt.Errorf("devices: device %d has %d MIG instances and is not in MIG mode", device, len(m.Instances))
	case len(m.Instances) > MaxMIGInstances:
		return fmt.Errorf("devices: device %d has %d MIG instances, at most %d are supported", device, len(m.Instances), MaxMIGInstances)
	}
	for k, instance := range m.Instances {
		if instance.UUID == "" {
			return fmt.Errorf("devices: device %d: MIG instance %d has no UUID", device, k)
		}
		if !validUUID(instance.UUID) {
			return fmt.Errorf("devices: device %d: MIG instance %d: UUID %.64q: "+uuidRule, device, k, instance.UUID, MaxUUID)
		}
		if other, dup := seen[instance.UUID]; dup {
			return fmt.Errorf("devices: device %d: MIG instance %d shares UUID %s with one of device %d", device, k, instance.UUID, other)
		}
		seen[instance.UUID] = device
		if instance.Memory < 0 || instance.Memory > resource.MaxMemory {
			return fmt.Errorf("devices: device %d: MIG instance %d has %d bytes of memory, outside 0..%d", device, k, instance.Memory, resource.MaxMemory)
		}
	}
	return nil
}
