package fakehost_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/devices/fake"
	"github.com/musterd/muster/devices/fake/fakehost"
)

// told lists the reports of the host's watch so far.
func told(t *testing.T, h *fakehost.Host) []string {
	t.Helper()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	names := map[string]string{"": ""}
	for i := range h.GPUs() {
		names[h.UUID(i)] = fmt.Sprint("gpu", i)
	}
	var list []string
	if err := h.Watch(over, func(c devices.Change) {
		for _, e := range c.Events {
			e.UUID, e.Detail = names[e.UUID], ""
			list = append(list, e.String())
		}
		if c.Inventory != nil {
			if err := c.Inventory.Validate(); err != nil {
				t.Error(err)
			}
			var order []string
			for _, d := range c.Inventory.Devices {
				order = append(order, names[d.UUID])
			}
			list = append(list, strings.Join(order, " "))
		}
	}); err != nil {
		t.Error(err)
	}
	return list
}

func TestAHostTellsWhatHappensToIt(t *testing.T) {
	for name, c := range map[string]struct {
		profile string
		absent  []int
		do      func(*fakehost.Host)
		want    []string
	}{
		"nothing":              {"gpu2", nil, func(*fakehost.Host) {}, nil},
		"XIDs":                 {"gpu2", nil, func(h *fakehost.Host) { h.XID(0, 79); h.XID(0, 79) }, []string{"gpu0: xid 79", "gpu0: xid 79"}},
		"memory errors add up": {"gpu2", nil, func(h *fakehost.Host) { h.ECC(1, 1, 0); h.ECC(1, 2, 1) }, []string{"gpu1: ecc-corrected (1)", "gpu1: ecc-uncorrected (1)", "gpu1: ecc-corrected (3)"}},
		"a repair": {"gpu2", nil, func(h *fakehost.Host) {
			h.Retire(0, true)
			h.Remap(0, true, true)
			h.Retire(0, false)
			h.Remap(0, false, false)
		}, []string{"gpu0: page-retirement-pending", "gpu0: page-retirement-pending", "gpu0: row-remap-failed", "gpu0: repaired"}},
		"loss and return, once": {"gpu2", nil, func(h *fakehost.Host) { h.Lose(1); h.Lose(1); h.Return(1) }, []string{"gpu1: lost", "gpu1: returned"}},
		"a card plugged in":     {"dgx-a100", []int{0, 5}, func(h *fakehost.Host) { h.Plug(5); h.Unplug(5); h.Plug(0) }, []string{"gpu1 gpu2 gpu3 gpu4 gpu6 gpu7 gpu5", "gpu5: lost", "gpu1 gpu2 gpu3 gpu4 gpu6 gpu7 gpu5 gpu0"}},
		"a hang silences one":   {"gpu2", nil, func(h *fakehost.Host) { h.Hang(0); h.XID(1, 13); h.XID(0, 14); h.Answer(0) }, []string{"gpu0: hung", "gpu1: xid 13", "gpu0: answered", "gpu0: xid 14"}},
		"no driver, no news":    {"gpu2", nil, func(h *fakehost.Host) { h.UnloadDriver(); h.Lose(0); h.LoadDriver() }, []string{"driver: driver-gone", "driver: driver-back", "gpu0: lost"}},
		"a card partitioned anew": {"mig-a100", nil, func(h *fakehost.Host) {
			h.Partition(3, devices.MIGInstance{Profile: "7g.80gb", Memory: 80 << 30})
			h.Remap(3, true, false) // partitioned cards have no report
			h.Unpartition(3)
		}, []string{"gpu0 gpu1 gpu2 gpu3", "gpu3: page-retirement-pending", "gpu0 gpu1 gpu2 gpu3"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := fakehost.New(lookup(t, c.profile), "n1", c.absent...)
			c.do(h)
			if diff := cmp.Diff(c.want, told(t, h)); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAHostTellsAtOnceAndUntilItsWatchEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := fakehost.New(lookup(t, "gpu2"), "n1")
		ctx, cancel := context.WithCancel(t.Context())
		var kinds []devices.EventKind
		ended := make(chan error, 1)
		go func() {
			ended <- h.Watch(ctx, func(c devices.Change) { kinds = append(kinds, c.Events[0].Kind) })
		}()
		for _, do := range []func(){func() { h.XID(0, 1) }, func() { h.Lose(0) }, func() { h.Return(0) }} {
			do()
			synctest.Wait()
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]devices.EventKind{devices.EventXID, devices.EventLost, devices.EventReturned}, kinds); diff != "" {
			t.Errorf("told (-want +got):\n%s", diff)
		}
	})
}

func TestAHostsPartitionIsCheckedAndItsProfileIsNotTouched(t *testing.T) {
	p := lookup(t, "mig-a100")
	before := p.Inventory("n1")
	h := fakehost.New(p, "n1")
	h.Unpartition(0)
	if diff := cmp.Diff(before, p.Inventory("n1")); diff != "" {
		t.Errorf("the profile changed:\n%s", diff)
	}
	for name, do := range map[string]func(){
		"a profile that is none":        func() { h.Partition(0, devices.MIGInstance{Profile: "half"}) },
		"a card that has no partitions": func() { fakehost.New(lookup(t, "gpu2"), "n1").Partition(0) },
		"a card that is not there":      func() { h.XID(9, 1) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			do()
		}()
	}
}

func ExampleHost() {
	profile, err := fake.Lookup("gpu2")
	if err != nil {
		fmt.Println(err)
		return
	}
	host := fakehost.New(profile, "node-1")
	host.XID(1, 79)
	host.Lose(1)
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // earlier changes are reported nevertheless
	err = host.Watch(ctx, func(c devices.Change) {
		for _, e := range c.Events {
			fmt.Println(e.UUID == host.UUID(1), e.Kind, e.XID)
		}
	})
	fmt.Println(err)
	// Output:
	// true xid 79
	// true lost 0
	// <nil>
}

func lookup(t testing.TB, name string) fake.Profile {
	t.Helper()
	p, err := fake.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
