package gossip_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/musterd/muster/gossip"
	"github.com/musterd/muster/gossip/digest"
	"github.com/musterd/muster/resource"
)

// TestMain fails when a goroutine outlives the tests. A probe of memberlist may
// outlast its ring by one probe interval, so it looks until patience ends.
func TestMain(m *testing.M) {
	code := m.Run()
	leaks := func() error {
		// serf starts this before it binds and forgets it when binding fails.
		return goleak.Find(goleak.IgnoreTopFunction("github.com/hashicorp/serf/serf.(*serfQueries).stream"))
	}
	err := leaks()
	for deadline := time.Now().Add(patience); err != nil && time.Now().Before(deadline); {
		err = leaks()
	}
	if err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// patience bounds every wait of these tests; reaching it is a failure.
const patience = 30 * time.Second

// eventually waits until want holds.
func eventually(t *testing.T, what string, want func() bool) {
	t.Helper()
	deadline, tick := time.After(patience), time.NewTicker(10*time.Millisecond)
	defer tick.Stop()
	for !want() {
		select {
		case <-deadline:
			t.Fatalf("not within %s: %s", patience, what)
		case <-tick.C:
		}
	}
}

func wait(t *testing.T, what string, ch <-chan struct{}) {
	t.Helper()
	select {
	case <-ch:
	case <-time.After(patience):
		t.Fatalf("not within %s: %s", patience, what)
	}
}

func config(id string, join ...string) gossip.Config {
	return gossip.Config{
		Cluster: "test",
		Tags: gossip.Tags{
			Role: gossip.RoleAgent, ID: id, Addr: "127.0.0.1:8472", Zone: "z1", Rack: "r1", Block: "b1",
			Model: "NVIDIA A100-SXM4-80GB", API: "v1",
		},
		SerfBind: "127.0.0.1:0", CapacityBind: "127.0.0.1:0", Join: join, Profile: gossip.Local,
	}
}

// start starts a member that the test's end closes.
func start(t *testing.T, cfg gossip.Config) *gossip.Rings {
	t.Helper()
	r, err := gossip.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Abandon(); err != nil {
			t.Errorf("end %s: %v", cfg.Tags.ID, err)
		}
	})
	return r
}

// ring starts n joined agents, node-1 to node-n.
func ring(t *testing.T, n int, edit func(i int, cfg *gossip.Config)) []*gossip.Rings {
	t.Helper()
	var all []*gossip.Rings
	for i := range n {
		var join []string
		if i > 0 {
			join = []string{all[0].Serf.Addr()}
		}
		cfg := config(fmt.Sprintf("node-%d", i+1), join...)
		if edit != nil {
			edit(i, &cfg)
		}
		all = append(all, start(t, cfg))
	}
	for i, r := range all {
		wait(t, fmt.Sprintf("member %d joins both rings", i+1), r.Joined())
	}
	eventually(t, "everybody sees everybody in both rings", func() bool {
		for _, r := range all {
			if alive(r) != n || r.Capacity.Members() != n {
				return false
			}
		}
		return true
	})
	return all
}

func alive(r *gossip.Rings) int {
	n := 0
	for _, m := range r.Serf.Members() {
		if m.Status == gossip.Alive {
			n++
		}
	}
	return n
}

func free(id string, revision resource.Revision, sequence uint64, mask uint64) digest.Digest {
	d := digest.Digest{NodeID: resource.NodeID(id), Cell: "0", Revision: revision, Sequence: sequence, FreeGPUs: mask}
	for i := range 8 {
		d.GPUs = append(d.GPUs, digest.GPU{FreeMilli: uint16(mask>>i&1) * 1000})
	}
	return d
}

// mask is the free GPUs that r believes the node to have, or -1.
func mask(r *gossip.Rings, id string) int {
	for _, d := range r.Capacity.Digests() {
		if string(d.NodeID) == id {
			return int(d.FreeGPUs)
		}
	}
	return -1
}
