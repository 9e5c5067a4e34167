package devices

import "fmt"

// Event is a message of a device, or an observation of it, while the
// agent runs. devices/health decides the consequences.
type Event struct {
	// UUID names the device; "" means the driver as a whole.
	UUID string
	Kind EventKind
	// XID is the vendor's error number, of an EventXID alone.
	XID uint64
	// Count is how many errors there are now, of the ECC and row events.
	Count uint64
	// Detail says the rest in plain words; it may be "".
	Detail string
}

// EventKind is the sort of an event.
type EventKind uint8

// The kinds of events.
const (
	// EventXID: the driver logged an XID error for the device.
	EventXID EventKind = iota
	// EventECCUncorrected: the device's count of uncorrected memory errors
	// since the driver was loaded has risen.
	EventECCUncorrected
	// EventECCCorrected: the count of corrected memory errors has risen.
	EventECCCorrected
	// EventPageRetirementPending: memory pages or rows wait for a reset of the
	// device to be replaced.
	EventPageRetirementPending
	// EventRowRemapFailed: the device has no spare row left for a bad one.
	EventRowRemapFailed
	// EventLost: the device is gone: it fell off the bus, or was removed.
	EventLost
	// EventReturned: a lost device answers again.
	EventReturned
	// EventHung: the driver has not answered a question in time.
	EventHung
	// EventAnswered: a driver that hung answers again.
	EventAnswered
	// EventDriverGone: the driver has been unloaded or replaced.
	EventDriverGone
	// EventDriverBack: the driver is there again.
	EventDriverBack
	// EventRepaired: the device was reset, or the work that waited for a reset is done;
	// no memory waits to be replaced, and none could not be.
	EventRepaired
)

var eventNames = [...]string{
	"xid", "ecc-uncorrected", "ecc-corrected", "page-retirement-pending", "row-remap-failed",
	"lost", "returned", "hung", "answered", "driver-gone", "driver-back", "repaired",
}

// String returns the kind's name.
func (k EventKind) String() string {
	if int(k) < len(eventNames) {
		return eventNames[k]
	}
	return fmt.Sprintf("EventKind(%d)", uint8(k))
}

// String is e.g. `GPU-…: xid 79: GPU has fallen off the bus`.
func (e Event) String() string {
	s := e.UUID
	if s == "" {
		s = "driver"
	}
	s += ": " + e.Kind.String()
	switch {
	case e.Kind == EventXID:
		s += fmt.Sprintf(" %d", e.XID)
	case e.Count > 0:
		s += fmt.Sprintf(" (%d)", e.Count)
	}
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	return s
}
