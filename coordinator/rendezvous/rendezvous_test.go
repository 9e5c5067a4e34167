package rendezvous_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterd/muster/coordinator/rendezvous"
	"github.com/musterd/muster/resource"
)

// Units come to and leave one host in any order: no two live ones share a port while
// the range lasts.
func TestNoTwoLiveUnitsShareAPort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		live := map[int]resource.TxID{}
		taken := func(port int) bool { return live[port] != "" }
		for n := range rapid.IntRange(1, 300).Draw(t, "steps") {
			// Few names: many transactions prefer the same port.
			tx := resource.TxID(fmt.Sprintf("tx-%d", rapid.IntRange(0, 20).Draw(t, "name")))
			if n%3 == 2 && len(live) > 0 {
				delete(live, rapid.SampledFrom(keys(live)).Draw(t, "ends"))
				continue
			}
			port, ok := rendezvous.Default.Choose(tx, taken)
			if !ok || taken(port) || port < rendezvous.Default.First || port >= rendezvous.Default.Last+1 {
				t.Fatalf("port %d, ok %v for %s beside %d live units", port, ok, tx, len(live))
			}
			live[port] = tx
		}
	})
}

func keys(m map[int]resource.TxID) (list []int) {
	for port := rendezvous.Default.First; port < rendezvous.Default.Last+1; port++ {
		if m[port] != "" {
			list = append(list, port)
		}
	}
	return list
}

func TestTheWholeRangeIsUsedBeforeAPortIsShared(t *testing.T) {
	live := map[int]bool{}
	taken := func(port int) bool { return live[port] }
	for n := range rendezvous.Default.Len() {
		port, ok := rendezvous.Default.Choose("tx", taken)
		if !ok || live[port] {
			t.Fatalf("unit %d: port %d, ok %v", n, port, ok)
		}
		live[port] = true
	}
	if port, ok := rendezvous.Default.Choose("tx", taken); ok || port != rendezvous.Default.Preferred("tx") {
		t.Errorf("beyond the range: port %d, ok %v, want the preferred one and false", port, ok)
	}
}

func TestParseRange(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want rendezvous.Range
		bad  bool
	}{
		"nothing is the default": {"", rendezvous.Default, false},
		"a range":                {"1024-65535", rendezvous.Range{First: 1024, Last: 65535}, false},
		"one port":               {"4000-4000", rendezvous.Range{First: 4000, Last: 4000}, false},
		"upside down":            {"4001-4000", rendezvous.Range{}, true},
		"too low":                {"1023-4000", rendezvous.Range{}, true},
		"too high":               {"4000-65536", rendezvous.Range{}, true},
		"a single number":        {"4000", rendezvous.Range{}, true},
		"a word":                 {"a-b", rendezvous.Range{}, true},
	} {
		got, err := rendezvous.ParseRange(c.text)
		if got != c.want || (err != nil) != c.bad {
			t.Errorf("%s: %v, %v", name, got, err)
		}
		if again, err := rendezvous.ParseRange(got.String()); err == nil && again != got {
			t.Errorf("%s: %v is read as %v", name, got, again)
		}
	}
}

func TestASmallRangeHoldsItsPortsAlone(t *testing.T) {
	r := rendezvous.Range{First: 4000, Last: 4002}
	live := map[int]bool{}
	for range r.Len() {
		port, ok := r.Choose("tx", func(p int) bool { return live[p] })
		if !ok || live[port] || port < 4000 || port > 4002 {
			t.Fatalf("port %d, ok %v", port, ok)
		}
		live[port] = true
	}
}

func ExampleRange_Choose() {
	others := map[int]bool{rendezvous.Default.Preferred("tx"): true}
	port, ok := rendezvous.Default.Choose("tx", func(port int) bool { return others[port] })
	fmt.Println(port-rendezvous.Default.Preferred("tx"), ok)
	// Output: 1 true
}

func BenchmarkChoose(b *testing.B) {
	for b.Loop() {
		rendezvous.Default.Choose("tx", func(int) bool { return false })
	}
}
