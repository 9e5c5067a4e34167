package devices

// Change is one report of a watch over a host's devices. Its parts
// belong together: events name devices of Inventory where that is set.
type Change struct {
	// Events are in the order in which they happened or were seen.
	Events []Event
	// Inventory is set where it is another than the one before: a device was
	// added, a device was partitioned anew, links went up or down. Devices never
	// leave it and never change their index: a lost one stays, and a hot-added
	// one stands behind all others. It is immutable.
	Inventory *Inventory
	// Warnings are faults of the driver's answers that were worked around, each
	// reported once until it has ended.
	Warnings []string
	// Running lists the processes on the devices and instances that it names, wherever
	// those differ from the ones before; the first time in any case. Of a device
	// whose driver does not report them, nothing is reported.
	Running []Running
	// Use is the use of a card and its instances, wherever a value is another than
	// before; the first time in any case. The use of a device that is lost, that
	// hangs, or whose driver is gone is unknown from that event on.
	Use []Use
	// Unknown lists the cards that the driver counts and that are not in the
	// inventory, because a call about them hangs or they cannot be used. It is set
	// where these are others than before, empty where there are none any more; nil is
	// no news.
	Unknown []Unknown
	// Hangs is the call about the driver as a whole that has not returned in time, in
	// words, and "" once it has returned. nil is no news.
	Hangs *string
}

// IsZero reports whether the change is empty.
func (c Change) IsZero() bool {
	return len(c.Events) == 0 && c.Inventory == nil && len(c.Warnings) == 0 && len(c.Running) == 0 && len(c.Use) == 0 && c.Unknown == nil && c.Hangs == nil
}
