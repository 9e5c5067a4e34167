package devices

import "fmt"

// Inventory is all GPUs of one host. It is immutable once built.
//
// Invariant: Devices[i].Index == i; UUIDs are distinct and not empty; Links is
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
	seen := map[string]int{}
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
