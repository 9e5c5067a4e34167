package nvml

import "github.com/musterd/muster/devices"

// Found is the result of a discovery. It is immutable.
type Found struct {
	// Inventory holds the cards that answered; it passes Validate.
	Inventory *devices.Inventory
	// Running lists the processes on the devices and MIG instances whose driver
	// reports them.
	Running []devices.Running
	// Warnings are faults that were worked around, in the order found.
	Warnings []string
	// Unknown lists the cards that the driver counts and that are not in
	// Inventory.
	Unknown []devices.Unknown
	// Hung names the call that has not returned, "" where all have.
	Hung string
}
