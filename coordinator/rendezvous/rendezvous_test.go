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
			port, ok := rendezvous.Choose(tx, taken)
			if !ok || taken(port) || port < rendezvous.First || port >= rendezvous.First+rendezvous.Count {
				t.Fatalf("port %d, ok %v for %s beside %d live units", port, ok, tx, len(live))
			}
			live[port] = tx
		}
	})
}

func keys(m map[int]resource.TxID) (list []int) {
	for port := rendezvous.First; port < rendezvous.First+rendezvous.Count; port++ {
		if m[port] != "" {
			list = append(list, port)
		}
	}
	return list
}

func TestTheWholeRangeIsUsedBeforeAPortIsShared(t *testing.T) {
	live := map[int]bool{}
	taken := func(port int) bool { return live[port] }
	for n := range rendezvous.Count {
		port, ok := rendezvous.Choose("tx", taken)
		if !ok || live[port] {
			t.Fatalf("unit %d: port %d, ok %v", n, port, ok)
		}
		live[port] = true
	}
	if port, ok := rendezvous.Choose("tx", taken); ok || port != rendezvous.Preferred("tx") {
		t.Errorf("beyond the range: port %d, ok %v, want the preferred one and false", port, ok)
	}
}

func ExampleChoose() {
	others := map[int]bool{rendezvous.Preferred("tx"): true}
	port, ok := rendezvous.Choose("tx", func(port int) bool { return others[port] })
	fmt.Println(port-rendezvous.Preferred("tx"), ok)
	// Output: 1 true
}

func BenchmarkChoose(b *testing.B) {
	for b.Loop() {
		rendezvous.Choose("tx", func(int) bool { return false })
	}
}
