package devices_test

import (
	"strings"
	"testing"

	"github.com/musterd/muster/devices"
)

func TestEventKindNames(t *testing.T) {
	names := map[devices.EventKind]string{
		devices.EventXID: "xid", devices.EventECCUncorrected: "ecc-uncorrected", devices.EventECCCorrected: "ecc-corrected",
		devices.EventPageRetirementPending: "page-retirement-pending", devices.EventRowRemapFailed: "row-remap-failed",
		devices.EventLost: "lost", devices.EventReturned: "returned", devices.EventHung: "hung", devices.EventAnswered: "answered",
		devices.EventDriverGone: "driver-gone", devices.EventDriverBack: "driver-back", devices.EventRepaired: "repaired",
	}
	for kind, name := range names {
		if kind.String() != name {
			t.Errorf("%d prints as %s, want %s", uint8(kind), kind, name)
		}
	}
	named := 0
	for k := range 256 {
		if !strings.HasPrefix(devices.EventKind(k).String(), "EventKind(") {
			named++
		}
	}
	if named != len(names) {
		t.Errorf("%d kinds have a name, want %d", named, len(names))
	}
	if got := devices.EventKind(200).String(); got != "EventKind(200)" {
		t.Errorf("an unknown kind prints as %s", got)
	}
}

func TestEventsReadAsASentence(t *testing.T) {
	const card = "GPU-5b6f3c2e-0000-4000-8000-000000000000"
	for name, c := range map[string]struct {
		event devices.Event
		want  string
	}{
		"an XID names its number": {
			devices.Event{UUID: card, Kind: devices.EventXID, XID: 79, Detail: "GPU has fallen off the bus"}, card + ": xid 79: GPU has fallen off the bus",
		},
		"an XID has no count":            {devices.Event{UUID: card, Kind: devices.EventXID, XID: 13, Count: 4}, card + ": xid 13"},
		"errors are counted":             {devices.Event{UUID: card, Kind: devices.EventECCCorrected, Count: 1200}, card + ": ecc-corrected (1200)"},
		"a count and what it is":         {devices.Event{UUID: card, Kind: devices.EventRowRemapFailed, Count: 2, Detail: "bank 3"}, card + ": row-remap-failed (2): bank 3"},
		"no count is not told":           {devices.Event{UUID: card, Kind: devices.EventECCUncorrected}, card + ": ecc-uncorrected"},
		"without a device, the driver's": {devices.Event{Kind: devices.EventDriverGone}, "driver: driver-gone"},
		"of the driver, with words":      {devices.Event{Kind: devices.EventDriverBack, Detail: "driver 550.54.15"}, "driver: driver-back: driver 550.54.15"},
		"an unknown kind":                {devices.Event{UUID: "GPU-a", Kind: 99}, "GPU-a: EventKind(99)"},
		"nothing at all":                 {devices.Event{}, "driver: xid 0"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.event.String(); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
