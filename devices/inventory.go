package devices

import "fmt"

// Inventory is all GPUs of one host. It is immutable once built.
//
// Invariant: Devices[i].Index == i; UUIDs are distinct and not empty, those of
// MIG instances too; a device has at most MaxMIGInstances, and instances only
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

// Validate checks the type's invariants and names the first that is broken.
func (inv *Inventory) Validate() error {
	seen, instances := map[string]int{}, map[string]int{}
	for i, d := range inv.Devices {
		if d.Index != i {
			return fmt.Errorf("devices: device %d carries index %d", i, d.Index)
		}
		if d.UUID == "" {
			return fmt.Errorf("devices: device %d (%s) has no UUID", i, d.PCIBusID)
		}
		if j, dup := seen[d.UUID]; dup {
			return fmt.Errorf("devices: devices %d and %d share UUID %s", j, i, d.UUID)
		}
		seen[d.UUID] = i
		if d.Memory < 0 {
			return fmt.Errorf("devices: device %d has %d bytes of memory", i, d.Memory)
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
		if other, dup := seen[instance.UUID]; dup {
			return fmt.Errorf("devices: device %d: MIG instance %d shares UUID %s with one of device %d", device, k, instance.UUID, other)
		}
		seen[instance.UUID] = device
		if instance.Memory < 0 {
			return fmt.Errorf("devices: device %d: MIG instance %d has %d bytes of memory", device, k, instance.Memory)
		}
	}
	return nil
}
