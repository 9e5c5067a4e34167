package record

import (
	"fmt"
	"slices"
	"strings"

	"github.com/musterd/muster/devices"
)

// NodeLost are devices of a node that work holds and that its agent reports as lost
// (NodeLostKey). It is for readers: what holds such a device shows that, and the
// resourceVersion of the holder is at least the revision of this key.
//
// Invariant: both lists are ascending, and no device is in both.
type NodeLost struct {
	Lost []string `json:"lost,omitempty"` // UUIDs
	// Returned are devices that were lost, are there again, and are still held.
	Returned []string `json:"returned,omitempty"`
}

// Names reports whether the record has a device.
func (r NodeLost) Names(uuid string) bool {
	return slices.Contains(r.Lost, uuid) || slices.Contains(r.Returned, uuid)
}

// Equal reports whether two records have the same devices.
func (r NodeLost) Equal(o NodeLost) bool {
	return slices.Equal(r.Lost, o.Lost) && slices.Equal(r.Returned, o.Returned)
}

// IsEmpty reports whether the record has no device: there is no key then.
func (r NodeLost) IsEmpty() bool { return len(r.Lost)+len(r.Returned) == 0 }

// Bounds of a NodeLost.
const (
	mostLost     = devices.MaxUses
	mostLostUUID = 128 // bytes
)

func (r NodeLost) check() error {
	if n := len(r.Lost) + len(r.Returned); n > mostLost {
		return fmt.Errorf("%d devices, want at most %d", n, mostLost)
	}
	for name, list := range map[string][]string{"lost": r.Lost, "returned": r.Returned} {
		for i, uuid := range list {
			switch {
			case uuid == "" || len(uuid) > mostLostUUID:
				return fmt.Errorf("%s[%d] has %d bytes, want 1 to %d", name, i, len(uuid), mostLostUUID)
			case i > 0 && strings.Compare(list[i-1], uuid) >= 0:
				return fmt.Errorf("%s[%d] %q follows %q: want ascending UUIDs", name, i, uuid, list[i-1])
			case name == "returned" && slices.Contains(r.Lost, uuid):
				return fmt.Errorf("returned[%d] %q is among the lost devices too", i, uuid)
			}
		}
	}
	return nil
}
