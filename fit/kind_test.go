package fit_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/musterd/muster/devices/fake"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/resource"
)

func TestNoHostHoldsMoreThanItsKind(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := drawHost(t, 4, 8)
		f := h.NewFree()
		kind := fit.NewKind(h)
		empty := f.Clone()
		empty.Unhealthy = 0
		drawHeld(t, h, f)
		for range 4 {
			req := drawRequest(t, h, 5)
			var a resource.Assignment
			may := kind.MayHold(req)
			if h.Assign(f, req, &a) && !may {
				t.Fatalf("a host has room for %+v, its kind has not", req)
			}
			if may != h.Assign(empty, req, &a) {
				t.Fatalf("%+v: the kind says %t, the empty host does not", req, may)
			}
		}
	})
}

// TestHostsOfOneKindHoldTheSame draws hosts that are small enough to be alike.
func TestHostsOfOneKindHoldTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := fit.NewKind(drawHost(t, 1, 2)), drawHost(t, 1, 2)
		if !a.Has(b) {
			return
		}
		other := fit.NewKind(b)
		for range 8 {
			if req := drawRequest(t, b, 2); a.MayHold(req) != other.MayHold(req) {
				t.Fatalf("hosts of one kind differ about %+v", req)
			}
		}
	})
}

func TestKinds(t *testing.T) {
	hostOf := func(profile, id string) *fit.Host {
		p, err := fake.Lookup(profile)
		if err != nil {
			t.Fatal(err)
		}
		h, err := fit.NewHost(p.Topology(), p.Inventory(id), fit.Reserved{})
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	for _, a := range fake.Names() {
		kind := fit.NewKind(hostOf(a, "first"))
		for _, b := range fake.Names() {
			if got := kind.Has(hostOf(b, "second")); got != (a == b) {
				t.Errorf("a host %s is of the kind %s: %t", b, a, got)
			}
		}
	}
}

// TestAtMostIsNeverTooLow fills hosts on which other requests hold a part already:
// no order of arrivals gets more members onto a host than AtMost says.
func TestAtMostIsNeverTooLow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := drawHost(t, 4, 8)
		f := h.NewFree()
		kind := fit.NewKind(h)
		drawHeld(t, h, f)
		req := drawRequest(t, h, 5)
		most, capacity := kind.AtMost(&req), kind.Capacity(&req)
		var a resource.Assignment
		for held := 0; h.Assign(f, req, &a); held++ {
			if held == most {
				t.Fatalf("a host holds more than %d members of %+v", most, req)
			}
			if err := h.Take(f, a); err != nil {
				t.Fatal(err)
			}
		}
		for name, want := range req.Vector() {
			if have, counted := capacity[name]; counted && most > 0 && have < want {
				t.Fatalf("%d members of %+v are held, and of %s are %d", most, req, name, have)
			}
		}
	})
}
