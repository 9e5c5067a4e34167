package gate_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterd/muster/coordinator/gate"
	"github.com/musterd/muster/coordinator/service"
)

var few = gate.Bound{Noun: "watches", User: 2, Tenant: 3, Next: "close some"}

func TestBoundsAreThoseOfUsersAndTenants(t *testing.T) {
	for name, c := range map[string]struct {
		open []service.Principal
		next service.Principal
		n    int64
		want string // "" is let in
	}{
		"the second of a user":               {[]service.Principal{of("a", "x")}, of("a", "x"), 1, ""},
		"the third of a user":                {[]service.Principal{of("a", "x"), of("a", "x")}, of("a", "x"), 1, "user x of tenant a has 2 watches, and 1 more are beyond the limit of 2: close some"},
		"the third of a tenant":              {[]service.Principal{of("a", "x"), of("a", "x")}, of("a", "y"), 1, ""},
		"the fourth of a tenant":             {[]service.Principal{of("a", "x"), of("a", "x"), of("a", "y")}, of("a", "y"), 1, "tenant a has 3 watches, and 1 more are beyond the limit of 3: close some"},
		"a user of the same name elsewhere":  {[]service.Principal{of("a", "x"), of("a", "x")}, of("b", "x"), 1, ""},
		"several at once":                    {nil, of("a", "x"), 3, "user x of tenant a has 0 watches, and 3 more are beyond the limit of 2: close some"},
		"a user without a tenant":            {[]service.Principal{of("", "x"), of("", "x")}, of("", "x"), 1, "user x has 2 watches, and 1 more are beyond the limit of 2: close some"},
		"another user without a tenant":      {[]service.Principal{of("", "x"), of("", "x")}, of("", "y"), 2, ""},
		"an administrator, who is not bound": {[]service.Principal{root, root, root}, root, 100, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var b gate.Bounds
			for _, p := range c.open {
				if _, status := b.Hold(p, few, 1); status != nil {
					t.Fatal(status)
				}
			}
			_, status := b.Hold(c.next, few, c.n)
			switch {
			case c.want == "" && status != nil:
				t.Error(status)
			case c.want != "" && (status == nil || status.Code != 429 || status.RetryAfterSeconds != 1 || status.Message != c.want):
				t.Errorf("got %v, want %q", status, c.want)
			}
		})
	}
}

// However callers open and close, nobody has more than the bound, nothing that was
// closed is counted, and no bound refuses what fits.
func TestBoundsCountExactly(t *testing.T) {
	type open struct {
		user    string
		n       int64
		release func()
	}
	rapid.Check(t, func(t *rapid.T) {
		var b gate.Bounds
		var all []open
		sum := func(prefix string) (n int64) {
			for _, o := range all {
				if strings.HasPrefix(o.user, prefix) {
					n += o.n
				}
			}
			return n
		}
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			if len(all) > 0 && rapid.Bool().Draw(t, "close") {
				at := rapid.IntRange(0, len(all)-1).Draw(t, "which")
				all[at].release()
				all = append(all[:at], all[at+1:]...)
				continue
			}
			tenant, user := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "tenant"), rapid.SampledFrom([]string{"x", "y"}).Draw(t, "user")
			n := rapid.Int64Range(1, 2).Draw(t, "n")
			name := tenant + "/" + user
			fits := sum(name)+n <= few.User && sum(tenant+"/")+n <= few.Tenant
			release, status := b.Hold(of(tenant, user), few, n)
			if (status == nil) != fits {
				t.Fatalf("%d more for %s beside %v: %v, want it to fit: %t", n, name, all, status, fits)
			}
			if status == nil {
				all = append(all, open{name, n, release})
			}
		}
	})
}

// However many tenants want all of a bound that all callers share, one that comes later
// finds the room that is for small tenants.
func TestASharedBoundLeavesRoomForTheNext(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const all, small = 1024, 16
		shared := gate.Bound{Noun: "bytes", User: 4 * all, Tenant: 4 * all, All: all, Small: small}
		var b gate.Bounds
		var releases []func()
		var taken int64
		piece := rapid.Int64Range(1, 2*all).Draw(t, "piece")
		hungry := rapid.IntRange(1, all/4/small-1).Draw(t, "hungry tenants")
		for i := range hungry {
			release, status, isShared := b.HoldShared(of(string(rune('a'+i)), "x"), shared, piece)
			for ; status == nil; release, status, isShared = b.HoldShared(of(string(rune('a'+i)), "x"), shared, piece) {
				taken += piece
				releases = append(releases, release)
			}
			if !isShared || status.Code != 429 || status.RetryAfterSeconds != 1 {
				t.Fatalf("got %v, shared: %t", status, isShared)
			}
		}
		if taken > all {
			t.Fatalf("%d of %d were given", taken, all)
		}
		if _, status := b.Hold(of("late", "x"), shared, small); status != nil {
			t.Fatalf("a tenant that comes late: %v", status)
		}
		for _, release := range releases {
			release()
		}
		if _, status := b.Hold(of("a", "x"), shared, all*3/4-small); status != nil {
			t.Fatalf("room was not given back: %v", status)
		}
	})
}

// An administrator has all that is free of a shared bound, and no more.
func TestAnAdministratorHasWhatIsFree(t *testing.T) {
	var b gate.Bounds
	shared := gate.Bound{Noun: "bytes", User: 1, Tenant: 1, All: 10, Small: 1}
	if _, status := b.Hold(root, shared, 10); status != nil {
		t.Error(status)
	}
	if _, status, isShared := b.HoldShared(root, shared, 1); status == nil || !isShared {
		t.Errorf("beyond all: %v, shared: %t", status, isShared)
	}
}
