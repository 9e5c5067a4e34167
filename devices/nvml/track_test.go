package nvml

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/musterd/muster/devices"
)

func number(n uint64) *uint64 { return &n }

// cardsOf is an inventory of cards with these UUIDs, joined by one link class.
func cardsOf(link devices.Link, uuids ...string) *devices.Inventory {
	inv := &devices.Inventory{Driver: "1"}
	for i, uuid := range uuids {
		inv.Devices = append(inv.Devices, devices.Device{Index: i, UUID: uuid, PCIBusID: "at " + uuid, Memory: 1 << 30})
		row := slices.Repeat([]devices.Link{link}, len(uuids))
		row[i] = devices.LinkNone
		inv.Links = append(inv.Links, row)
	}
	return inv
}

// words are what the events of changes come to.
func words(changes ...devices.Change) []string {
	var list []string
	for _, c := range changes {
		for _, e := range c.Events {
			e.Detail = ""
			list = append(list, e.String())
		}
		for _, w := range c.Warnings {
			list = append(list, "warning: "+w)
		}
		if c.Inventory != nil {
			list = append(list, fmt.Sprintf("inventory of %d", len(c.Inventory.Devices)))
		}
	}
	return list
}

func TestReadingsTellEachThingOnce(t *testing.T) {
	of := func(change func(*reading)) reading {
		r := reading{uuid: "a"}
		change(&r)
		return r
	}
	ecc := func(uncorrected, corrected uint64) reading {
		return of(func(r *reading) { r.uncorrected, r.corrected = number(uncorrected), number(corrected) })
	}
	memory := func(pages, rows, failed flag) reading {
		return of(func(r *reading) { r.pagesPending, r.rowsPending, r.rowsFailed, r.rows = pages, rows, failed, 3 })
	}
	lost := of(func(r *reading) { r.lost = "GPU is lost" })
	gone := of(func(r *reading) { r.gone = "Uninitialized" })
	faulty := func(text string) reading {
		return of(func(r *reading) { r.faults = map[string]string{"retired pages": text} })
	}
	partitioned := of(func(r *reading) {
		r.mig = &devices.MIG{Enabled: true, Instances: []devices.MIGInstance{{UUID: "MIG-1", Profile: "1g.10gb"}}}
	})
	for name, c := range map[string]struct {
		readings []reading
		want     []string
	}{
		"counting begins at the first reading":     {[]reading{ecc(7, 9), ecc(7, 9)}, nil},
		"a rise is told with the count":            {[]reading{ecc(0, 0), ecc(1, 5), ecc(1, 6)}, []string{"a: ecc-uncorrected (1)", "a: ecc-corrected (5)", "a: ecc-corrected (6)"}},
		"a counter that began anew counts from 0":  {[]reading{ecc(9, 9), ecc(0, 2), ecc(1, 2)}, []string{"a: ecc-corrected (2)", "a: ecc-uncorrected (1)"}},
		"a counter that is not told is not zero":   {[]reading{ecc(4, 4), {uuid: "a"}, ecc(4, 4)}, nil},
		"what waits from the start is told":        {[]reading{memory(yes, yes, no)}, []string{"a: page-retirement-pending", "a: page-retirement-pending (3)"}},
		"what waits is told once, and its end":     {[]reading{memory(yes, no, no), memory(yes, no, no), memory(no, no, no)}, []string{"a: page-retirement-pending", "a: repaired"}},
		"a failure outlasts the reset":             {[]reading{memory(no, yes, yes), memory(no, no, yes), memory(no, no, no)}, []string{"a: page-retirement-pending (3)", "a: row-remap-failed (3)", "a: repaired"}},
		"rows that are not told stay as they were": {[]reading{memory(no, yes, no), memory(no, untold, untold), memory(no, yes, no), memory(no, no, no)}, []string{"a: page-retirement-pending (3)", "a: repaired"}},
		"a card is lost once and returns":          {[]reading{lost, lost, {uuid: "a"}, {uuid: "a"}}, []string{"a: lost", "a: returned"}},
		"the driver is gone once":                  {[]reading{gone, gone}, []string{"driver: driver-gone"}},
		"a fault is told until it ends":            {[]reading{faulty("x"), faulty("x"), faulty("y"), {uuid: "a"}, faulty("y")}, []string{"warning: a: retired pages: x", "warning: a: retired pages: y", "warning: a: retired pages: y"}},
		"partitions are told when they change":     {[]reading{partitioned, partitioned, {uuid: "a"}}, []string{"inventory of 2"}},
		"a strange card tells nothing":             {[]reading{{uuid: "z", lost: "x"}, {uuid: "z", uncorrected: number(1)}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			tracker := newTracker(cardsOf(devices.LinkSYS, "a", "b"), outset{})
			var got []string
			for _, r := range c.readings {
				got = append(got, words(tracker.read(r))...)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSightingsTellWhatIsAnother(t *testing.T) {
	saw := func(uuids ...string) sighting { return sighting{inventory: cardsOf(devices.LinkPIX, uuids...)} }
	warned := func(list ...string) sighting { s := saw("a", "b"); s.warnings = list; return s }
	for name, c := range map[string]struct {
		sightings []sighting
		want      []string
	}{
		"nothing is another":                      {[]sighting{saw("a", "b"), saw("a", "b")}, nil},
		"the driver's order does not matter":      {[]sighting{saw("b", "a")}, nil},
		"a card vanishes and keeps its place":     {[]sighting{saw("b"), saw("b"), saw("a", "b")}, []string{"a: lost", "a: returned"}},
		"a card is added while another is lost":   {[]sighting{saw("0", "b"), saw("0", "a", "b")}, []string{"a: lost", "inventory of 3", "a: returned", "inventory of 3"}},
		"a warning is told until it ends":         {[]sighting{warned("x"), warned("x", "y"), warned(), warned("y")}, []string{"warning: x", "warning: y", "warning: y"}},
		"a warning of before is not told again":   {[]sighting{warned("before"), warned("before", "x")}, []string{"warning: x"}},
		"a link that goes down is another matrix": {[]sighting{{inventory: cardsOf(devices.LinkSYS, "a", "b")}}, []string{"inventory of 2"}},
	} {
		t.Run(name, func(t *testing.T) {
			tracker := newTracker(cardsOf(devices.LinkPIX, "a", "b"), outset{warnings: []string{"before"}})
			var got []string
			for _, s := range c.sightings {
				got = append(got, words(tracker.found(s))...)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWithoutADriverNothingIsToldUntilItIsBack(t *testing.T) {
	tracker := newTracker(cardsOf(devices.LinkPIX, "a", "b"), outset{})
	got := words(
		tracker.driverGone("why"), tracker.driverGone("why"),
		tracker.found(sighting{inventory: cardsOf(devices.LinkPIX, "b", "c")}),
		tracker.driverGone("again"),
	)
	want := []string{"driver: driver-gone", "driver: driver-back", "a: lost", "inventory of 3", "driver: driver-gone"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

func TestEventsOfCardsThatAreNotInTheInventoryAreDropped(t *testing.T) {
	tracker := newTracker(cardsOf(devices.LinkPIX, "a", "b"), outset{})
	for uuid, want := range map[string]int{"a": 1, "": 1, "c": 0} {
		if got := tracker.heard(devices.Event{Kind: devices.EventXID, UUID: uuid}); len(got.Events) != want {
			t.Errorf("an event of card %q: %d events, want %d", uuid, len(got.Events), want)
		}
	}
}

func TestADoubtfulSightingChangesNoFacts(t *testing.T) {
	known := cardsOf(devices.LinkPIX, "a", "b")
	known.Devices[0].MIG = devices.MIG{Enabled: true, Instances: []devices.MIGInstance{{UUID: "MIG-1"}}}
	known.Devices[0].Model, known.Devices[0].NUMANode, known.Devices[0].Health = "A100", 3, devices.Tainted
	s := sighting{inventory: cardsOf(devices.LinkPIX, "a", "b"), doubtful: map[string]bool{"a": true}}
	s.inventory.Devices[0].NUMANode = devices.UnknownNode
	s.inventory.Driver = ""
	merged, warnings := merge(known, s)
	if diff := cmp.Diff(known, merged); diff != "" || warnings != nil {
		t.Errorf("warnings %q, inventory (-known +merged):\n%s", warnings, diff)
	}
}

// drawInventory draws cards with UUIDs of a small set, and instances likewise.
func drawInventory(t *rapid.T, label string, most int) *devices.Inventory {
	uuids := rapid.SliceOfNDistinct(rapid.IntRange(0, 9), 0, most, rapid.ID[int]).Draw(t, label)
	var names []string
	for _, n := range uuids {
		names = append(names, fmt.Sprint("GPU-", n))
	}
	inv := cardsOf(rapid.SampledFrom([]devices.Link{devices.LinkSYS, devices.LinkPIX, devices.NVLink(4)}).Draw(t, "link"), names...)
	for i := range inv.Devices {
		for _, m := range rapid.SliceOfNDistinct(rapid.IntRange(0, 5), 0, 3, rapid.ID[int]).Draw(t, "instances") {
			inv.Devices[i].MIG.Enabled = true
			inv.Devices[i].MIG.Instances = append(inv.Devices[i].MIG.Instances, devices.MIGInstance{UUID: fmt.Sprint("MIG-", m)})
		}
	}
	inv.Devices, _ = distinctInstances(inv.Devices)
	return inv
}

func TestAMergedInventoryIsValidAndBeginsWithTheKnownDevices(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		known := drawInventory(t, "known", 6)
		for range 3 {
			seen := drawInventory(t, "seen", 6)
			merged, _ := merge(known, sighting{inventory: seen})
			if err := merged.Validate(); err != nil {
				t.Fatal(err)
			}
			all := map[string]bool{}
			for i, d := range merged.Devices {
				all[d.UUID] = true
				if i < len(known.Devices) && d.UUID != known.Devices[i].UUID {
					t.Fatalf("device %d was %s and is %s", i, known.Devices[i].UUID, d.UUID)
				}
			}
			for _, d := range seen.Devices {
				if !all[d.UUID] {
					t.Fatalf("%s was seen and is not there", d.UUID)
				}
			}
			if again, _ := merge(merged, sighting{inventory: seen}); !equalInventories(merged, again) {
				t.Fatalf("the same sighting changes the inventory again (-once +twice):\n%s", cmp.Diff(merged, again))
			}
			known = merged
		}
	})
}

func TestWatchOptionsHaveDefaultsAndRefuseNegativeTimes(t *testing.T) {
	o, err := WatchOptions{Poll: 1}.withDefaults()
	if err != nil || o.Poll != 1 || o.Rediscover <= 0 || o.HangAfter <= 0 {
		t.Errorf("%+v, %v", o, err)
	}
	if _, err := (WatchOptions{HangAfter: -1}).withDefaults(); err == nil || err.Error() != "HangAfter: -1ns is negative" {
		t.Errorf("a negative time: %v", err)
	}
}
