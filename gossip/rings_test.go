package gossip_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/gossip"
	"github.com/musterd/muster/resource"
)

func TestMembersSeeEachOthersTags(t *testing.T) {
	t.Parallel()
	all := ring(t, 4, func(i int, cfg *gossip.Config) {
		if i == 0 {
			cfg.Tags = gossip.Tags{Role: gossip.RoleCoordinator, ID: "coordinator-1", Addr: "127.0.0.1:8471", API: "v1"}
		}
	})
	for i, r := range all {
		members := r.Serf.Members()
		if len(members) != 4 {
			t.Fatalf("member %d sees %d members, want 4", i+1, len(members))
		}
		want := gossip.Member{
			Name: "coordinator-1", Addr: all[0].Serf.Addr(), Status: gossip.Alive,
			Tags: gossip.Tags{
				Role: gossip.RoleCoordinator, ID: "coordinator-1", Addr: "127.0.0.1:8471", API: "v1",
				Cell: "0", Capacity: all[0].Capacity.Addr(),
			},
		}
		if diff := cmp.Diff(want, members[0]); diff != "" {
			t.Errorf("the coordinator as member %d sees it (-want +got):\n%s", i+1, diff)
		}
		if got := members[3].Tags; got.Rack != "r1" || got.Model != "NVIDIA A100-SXM4-80GB" || got.Role != gossip.RoleAgent {
			t.Errorf("the tags of node-4 as member %d sees them: %+v", i+1, got)
		}
	}
}

func TestMemberChangesReachTheCallback(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	newest := make(map[string]gossip.Status)
	all := ring(t, 3, func(i int, cfg *gossip.Config) {
		if i == 0 {
			cfg.OnMember = func(m gossip.Member) {
				mu.Lock()
				defer mu.Unlock()
				newest[m.Name] = m.Status
			}
		}
	})
	status := func(name string) gossip.Status {
		mu.Lock()
		defer mu.Unlock()
		return newest[name]
	}
	eventually(t, "the callback hears of all joins", func() bool {
		return status("node-2") == gossip.Alive && status("node-3") == gossip.Alive
	})
	if err := all[2].Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the callback hears that node-3 left", func() bool { return status("node-3") == gossip.Left })
}

func TestDigestsReachAllAndTheNewestWins(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	events := make(map[string]gossip.DigestEvent)
	all := ring(t, 3, func(i int, cfg *gossip.Config) {
		if i == 0 {
			cfg.OnDigest = func(e gossip.DigestEvent) {
				mu.Lock()
				defer mu.Unlock()
				events[string(e.Digest.NodeID)] = e
			}
		}
	})
	if err := all[0].Capacity.Publish(free("node-3", 1, 1, 0)); err == nil {
		t.Fatal("a member may publish for another one")
	}
	elsewhere := free("node-1", 1, 1, 0)
	elsewhere.Cell = "another"
	if err := all[0].Capacity.Publish(elsewhere); err == nil {
		t.Fatal("a member may publish for another cell")
	}
	publish := func(revision resource.Revision, sequence, mask uint64) {
		t.Helper()
		if err := all[2].Capacity.Publish(free("node-3", revision, sequence, mask)); err != nil {
			t.Fatal(err)
		}
	}
	publish(1, 8, 0xff)
	for _, r := range all {
		eventually(t, "the first digest reaches everyone", func() bool { return mask(r, "node-3") == 0xff })
	}
	publish(2, 5, 0x0f)
	publish(2, 4, 0xf0) // older than the one before: ignored
	publish(3, 1, 0x03)
	for _, r := range all {
		eventually(t, "the newest digest reaches everyone", func() bool { return mask(r, "node-3") == 0x03 })
	}
	if err := all[2].Close(); err != nil {
		t.Fatal(err)
	}
	for _, r := range all[:2] {
		eventually(t, "the digest of a node that left is dropped", func() bool { return mask(r, "node-3") == -1 })
	}
	eventually(t, "the callback hears that it is gone", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return events["node-3"].Gone
	})
}

func TestALateJoinerGetsTheTableAtOnce(t *testing.T) {
	t.Parallel()
	all := ring(t, 3, nil)
	for i, r := range all {
		if err := r.Capacity.Publish(free(fmt.Sprintf("node-%d", i+1), 1, 1, uint64(i+1))); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the first member knows all three", func() bool { return len(all[0].Capacity.Digests()) == 3 })
	late := start(t, config("node-4", all[0].Serf.Addr()))
	eventually(t, "the late joiner knows all three", func() bool { return len(late.Capacity.Digests()) == 3 })
}

func TestANodeReturnsUnderItsNameAtAnotherPort(t *testing.T) {
	t.Parallel()
	all := ring(t, 3, nil)
	before := all[2].Serf.Addr()
	if err := all[2].Capacity.Publish(free("node-3", 7, 9, 0xff)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "its digest is known", func() bool { return mask(all[0], "node-3") == 0xff })
	if err := all[2].Close(); err != nil {
		t.Fatal(err)
	}
	again := start(t, config("node-3", all[0].Serf.Addr(), all[1].Serf.Addr()))
	if again.Serf.Addr() == before {
		t.Fatalf("the second run has the first one's address %s", before)
	}
	for _, r := range all[:2] {
		eventually(t, "the others see the new address", func() bool {
			m := r.Serf.Members()[2]
			return m.Name == "node-3" && m.Status == gossip.Alive && m.Addr == again.Serf.Addr() && r.Capacity.Members() == 3
		})
	}
	if err := again.Capacity.Publish(free("node-3", 8, 1, 0x01)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "its new digest is known", func() bool { return mask(all[0], "node-3") == 0x01 })
}

func TestACrashedNodeReturnsAtAnotherPort(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("short mode: failure detection takes ten seconds")
	}
	all := ring(t, 3, func(_ int, cfg *gossip.Config) { cfg.Profile = gossip.LAN })
	if err := all[2].Abandon(); err != nil {
		t.Fatal(err)
	}
	cfg := config("node-3", all[0].Serf.Addr())
	cfg.Profile = gossip.LAN
	again := start(t, cfg)
	for _, r := range all[:2] {
		eventually(t, "the others see the new address", func() bool {
			m := r.Serf.Members()[2]
			return m.Name == "node-3" && m.Status == gossip.Alive && m.Addr == again.Serf.Addr() && r.Capacity.Members() == 3
		})
	}
}

func TestAnotherClusterCannotJoin(t *testing.T) {
	t.Parallel()
	home := start(t, config("node-1"))
	cfg := config("stranger", home.Serf.Addr())
	cfg.Cluster, cfg.CapacityJoin = "other", []string{home.Capacity.Addr()}
	stranger := start(t, cfg)
	eventually(t, "both rings refuse", func() bool {
		return stranger.Serf.JoinError() != nil && stranger.Capacity.JoinError() != nil
	})
	if !strings.Contains(stranger.Serf.JoinError().Error(), home.Serf.Addr()) {
		t.Errorf("the error does not name the address: %v", stranger.Serf.JoinError())
	}
	if alive(home) != 1 || home.Capacity.Members() != 1 || alive(stranger) != 1 {
		t.Errorf("a stranger is in: %d and %d members at home, %d at the stranger's", alive(home), home.Capacity.Members(), alive(stranger))
	}
}

func TestAnotherCellHasItsOwnCapacityRing(t *testing.T) {
	t.Parallel()
	first := start(t, config("node-1"))
	cfg := config("node-2", first.Serf.Addr())
	cfg.Cell, cfg.CapacityJoin = "b", []string{first.Capacity.Addr()}
	second := start(t, cfg)
	eventually(t, "they meet in the serf ring", func() bool { return alive(first) == 2 && alive(second) == 2 })
	eventually(t, "the capacity ring refuses", func() bool { return second.Capacity.JoinError() != nil })
	if first.Capacity.Members() != 1 {
		t.Errorf("cell 0 has %d members, want 1", first.Capacity.Members())
	}
}

func TestOneKeyringGuardsBothRings(t *testing.T) {
	t.Parallel()
	key := []byte("0123456789abcdef")
	all := ring(t, 2, func(_ int, cfg *gossip.Config) {
		keyring, err := gossip.NewKeyring([][]byte{key})
		if err != nil {
			t.Fatal(err)
		}
		cfg.Keyring = keyring
	})
	cfg := config("keyless", all[0].Serf.Addr())
	cfg.CapacityJoin = []string{all[0].Capacity.Addr()}
	keyless := start(t, cfg)
	eventually(t, "both rings refuse who has no key", func() bool {
		return keyless.Serf.JoinError() != nil && keyless.Capacity.JoinError() != nil
	})
	if err := all[1].Capacity.Publish(free("node-2", 1, 1, 0x0f)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "digests travel encrypted", func() bool { return mask(all[0], "node-2") == 0x0f })
}

func TestHintsReachOtherMembers(t *testing.T) {
	t.Parallel()
	heard := make(chan gossip.Hint, 64) // more than are sent
	all := ring(t, 2, func(i int, cfg *gossip.Config) {
		if i == 1 {
			cfg.OnHint = func(h gossip.Hint) { heard <- h }
		}
	})
	var h gossip.Hint
	for came, deadline := false, time.Now().Add(patience); !came; { // one may be lost, as to a member that joins just then
		if err := all[0].Serf.SendHint(gossip.Hint{Name: "queue-changed", Payload: []byte("42")}); err != nil {
			t.Fatal(err)
		}
		select {
		case h = <-heard:
			came = true
		case <-time.After(time.Second):
			if time.Now().After(deadline) {
				t.Fatal("the hint never came")
			}
		}
	}
	if h.Name != "queue-changed" || string(h.Payload) != "42" {
		t.Errorf("heard %+v", h)
	}
	if err := all[0].Serf.SendHint(gossip.Hint{Name: "big", Payload: make([]byte, 600)}); err == nil {
		t.Error("a hint of 600 bytes is accepted")
	}
}

func TestManyMembersOfOneProcessEndTogether(t *testing.T) {
	t.Parallel()
	var all []*gossip.Rings
	first := start(t, config("node-1"))
	for i := range 12 {
		all = append(all, start(t, config(fmt.Sprintf("node-%d", i+2), first.Serf.Addr())))
	}
	for _, r := range all {
		wait(t, "a member joins", r.Joined())
	}
	began := time.Now()
	var wg sync.WaitGroup
	for _, r := range all {
		wg.Go(func() {
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	left := make(chan struct{})
	go func() { defer close(left); wg.Wait() }()
	wait(t, "all leave", left)
	t.Logf("%d members left in %s", len(all), time.Since(began))
}

func TestStartRefusesBadInput(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		edit      func(*gossip.Config)
		wantError string
	}{
		"no cluster":                {func(c *gossip.Config) { c.Cluster = "" }, `cluster name ""`},
		"a cluster with a slash":    {func(c *gossip.Config) { c.Cluster = "a/b" }, `cluster name "a/b"`},
		"a cell with a space":       {func(c *gossip.Config) { c.Cell = "a b" }, `cell: "a b"`},
		"an open serf address":      {func(c *gossip.Config) { c.SerfBind = "0.0.0.0:7946" }, `serf bind address "0.0.0.0:7946": not a loopback address`},
		"an open capacity address":  {func(c *gossip.Config) { c.CapacityBind = "10.0.0.1:0" }, `capacity bind address "10.0.0.1:0": not a loopback address`},
		"an open RPC address":       {func(c *gossip.Config) { c.RPC = gossip.RPC{Addr: "0.0.0.0:0", Token: "t"} }, `serf RPC address "0.0.0.0:0": not a loopback address`},
		"RPC without a token":       {func(c *gossip.Config) { c.RPC.Addr = "127.0.0.1:0" }, `serf RPC address "127.0.0.1:0": no token`},
		"a bind without a port":     {func(c *gossip.Config) { c.SerfBind = "127.0.0.1" }, `serf bind address "127.0.0.1": want host:port`},
		"a join without a port":     {func(c *gossip.Config) { c.Join = []string{"127.0.0.1:1", "x"} }, `join address 2 "x": want host:port`},
		"a join at port zero":       {func(c *gossip.Config) { c.Join = []string{"127.0.0.1:0"} }, `join address 1 "127.0.0.1:0"`},
		"an unknown role":           {func(c *gossip.Config) { c.Tags.Role = "king" }, `tag role "king"`},
		"a node id with a slash":    {func(c *gossip.Config) { c.Tags.ID = "a/b" }, `"a/b"`},
		"an address without a port": {func(c *gossip.Config) { c.Tags.Addr = "127.0.0.1" }, `tag addr "127.0.0.1"`},
		"tags that are too long":    {func(c *gossip.Config) { c.Tags.Model = strings.Repeat("x", 250) }, "want less than 300; shorten model (250 bytes)"},
		"a query of serf's own": {func(c *gossip.Config) {
			c.Queries = map[string]gossip.QueryHandler{"_serf_ping": func([]byte) []byte { return nil }}
		}, `query handler "_serf_ping"`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			cfg := config("node-1")
			c.edit(&cfg)
			r, err := gossip.Start(cfg)
			if err == nil {
				_ = r.Abandon()
				t.Fatalf("started; want an error with %q", c.wantError)
			}
			if !strings.Contains(err.Error(), c.wantError) {
				t.Fatalf("error %q, want it to contain %q", err, c.wantError)
			}
		})
	}
}

func TestAPortInUseIsNamed(t *testing.T) {
	t.Parallel()
	first := start(t, config("node-1"))
	cases := map[string]struct {
		edit func(*gossip.Config)
		want string
	}{
		"serf":     {func(c *gossip.Config) { c.SerfBind = first.Serf.Addr() }, first.Serf.Addr()},
		"capacity": {func(c *gossip.Config) { c.CapacityBind = first.Capacity.Addr() }, first.Capacity.Addr()},
		"RPC":      {func(c *gossip.Config) { c.RPC = gossip.RPC{Addr: first.Serf.Addr(), Token: "t"} }, first.Serf.Addr()},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			cfg := config("node-2")
			c.edit(&cfg)
			_, err := gossip.Start(cfg)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "address already in use") {
				t.Fatalf("error %v, want one that names %s and says that it is in use", err, c.want)
			}
		})
	}
}
