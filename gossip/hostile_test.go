package gossip_test

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"
	"github.com/hashicorp/serf/serf"

	"github.com/musterd/muster/gossip"
)

// intruder is a member with the ring's keys that runs stock serf, without
// Muster's judgement: a host that has been taken over.
func intruder(t *testing.T, name string, keys [][]byte, tags map[string]string, join string) *serf.Serf {
	t.Helper()
	keyring, err := memberlist.NewKeyring(keys, keys[0])
	if err != nil {
		t.Fatal(err)
	}
	mc := memberlist.DefaultLocalConfig()
	mc.Label, mc.Keyring, mc.BindAddr, mc.BindPort, mc.AdvertisePort = "test/serf", keyring, "127.0.0.1", 0, 0
	mc.LogOutput, mc.EnableCompression = io.Discard, false
	sc := serf.DefaultConfig()
	sc.MemberlistConfig, sc.NodeName, sc.Tags, sc.LogOutput, sc.ProtocolVersion = mc, name, tags, io.Discard, serf.ProtocolVersionMax
	sc.Logger = log.New(io.Discard, "", 0)
	sc.QueryTimeoutMult = 4
	s, err := serf.Create(sc)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Shutdown(); err != nil {
			t.Error(err)
		}
	})
	eventually(t, name+" reaches the ring", func() bool {
		_, err := s.Join([]string{join}, true)
		return err == nil
	})
	return s
}

func agentTags(id string) map[string]string {
	return map[string]string{"role": "agent", "id": id, "addr": "127.0.0.1:9999", "api": "v1"}
}

func sees(r *gossip.Rings, name string) bool {
	for _, m := range r.Serf.Members() {
		if m.Name == name && m.Status == gossip.Alive {
			return true
		}
	}
	return false
}

// FAULTS S8: any member could set everybody's keys by serf's own queries, and
// have the attacker's key stored in etcd.
func TestAMemberCannotChangeOrListTheKeysOfOthers(t *testing.T) {
	t.Parallel()
	first, evil := []byte("0123456789abcdef"), "ZXZpbGV2aWxldmlsZXZpbA=="
	var keyrings []*gossip.Keyring
	all := ring(t, 2, func(_ int, cfg *gossip.Config) {
		k, err := gossip.NewKeyring([][]byte{first, []byte("1234567890123456")})
		if err != nil {
			t.Fatal(err)
		}
		cfg.Keyring, keyrings = k, append(keyrings, k)
	})
	bad := intruder(t, "evil", [][]byte{first}, agentTags("evil"), all[0].Serf.Addr())
	eventually(t, "both see the intruder", func() bool { return sees(all[0], "evil") && sees(all[1], "evil") })
	manager := bad.KeyManager()
	for what, do := range map[string]func() (*serf.KeyResponse, error){
		"install": func() (*serf.KeyResponse, error) { return manager.InstallKey(evil) },
		"remove":  func() (*serf.KeyResponse, error) { return manager.RemoveKey("MTIzNDU2Nzg5MDEyMzQ1Ng==") },
		"list":    manager.ListKeys,
	} {
		answer, err := do()
		if err == nil || answer.NumResp > 1 { // its own answer counts
			t.Errorf("%s: %d members answered, %v", what, answer.NumResp, err)
		}
		if n := answer.Keys["MTIzNDU2Nzg5MDEyMzQ1Ng=="]; n > 0 {
			t.Errorf("%s tells a key that the intruder does not have", what)
		}
	}
	for i, k := range keyrings {
		if got := k.Keys(); len(got) != 2 || !bytes.Equal(got[0], first) {
			t.Errorf("member %d has %d keys, or another first one", i+1, len(got))
		}
		if k.PutBack() != 0 {
			t.Errorf("member %d put %d changes back: the query was carried out", i+1, k.PutBack())
		}
	}
	eventually(t, "the queries are counted", func() bool {
		return all[0].Serf.Refused(gossip.RefusedKeys) > 0 && all[1].Serf.Refused(gossip.RefusedKeys) > 0
	})
}

// A member speaks for itself alone, and its tags are judged before the ring
// keeps anything of it (FAULTS S4).
func TestAMemberWithForgedTagsIsNotLetIn(t *testing.T) {
	t.Parallel()
	k := keyring(t)
	all := ring(t, 1, func(_ int, cfg *gossip.Config) { cfg.Keyring = k })
	with := func(key, value string) map[string]string {
		tags := agentTags("evil")
		tags[key] = value
		return tags
	}
	for name, tags := range map[string]map[string]string{
		"another node's id":        with("id", "node-1"),
		"no id":                    with("id", ""),
		"an address of no form":    with("addr", "example.org:80"),
		"a control character":      with("zone", "z\x1b[31m"),
		"a capacity address of it": with("cap", "nowhere"),
	} {
		t.Run(name, func(t *testing.T) {
			before := all[0].Serf.Refused(gossip.RefusedTags)
			bad := intruder(t, "evil", k.Keys(), tags, all[0].Serf.Addr())
			eventually(t, "it is refused", func() bool { return all[0].Serf.Refused(gossip.RefusedTags) > before })
			if sees(all[0], "evil") {
				t.Error("it is a member")
			}
			if len(bad.Members()) < 2 {
				t.Error("it did not reach the ring at all")
			}
		})
	}
	intruder(t, "visitor", k.Keys(), map[string]string{"role": "web"}, all[0].Serf.Addr())
	eventually(t, "a stock serf agent is a member without Muster's tags", func() bool {
		for _, m := range all[0].Serf.Members() {
			if m.Name == "visitor" {
				return m.Tags == gossip.Tags{}
			}
		}
		return false
	})
}

func TestAFloodOfQueriesAndEventsIsBounded(t *testing.T) {
	t.Parallel()
	k := keyring(t)
	served := make(chan struct{}, 1<<16)
	hints := make(chan struct{}, 1<<16)
	all := ring(t, 1, func(_ int, cfg *gossip.Config) {
		cfg.Keyring = k
		cfg.Queries = map[string]gossip.QueryHandler{"queue": func([]byte) []byte { served <- struct{}{}; return []byte("x") }}
		cfg.OnHint = func(gossip.Hint) { hints <- struct{}{} }
	})
	bad := intruder(t, "evil", k.Keys(), agentTags("evil"), all[0].Serf.Addr())
	eventually(t, "it is a member", func() bool { return sees(all[0], "evil") })
	const flood = 3000
	begun := time.Now()
	// Past the ring's own queue, one packet each.
	target := all[0].Serf.Members()[0]
	for _, m := range all[0].Serf.Members() {
		if m.Name == "node-1" {
			target = m
		}
	}
	for i := range flood {
		if err := bad.UserEvent(fmt.Sprintf("e%d", i), []byte(strings.Repeat("x", 200)), false); err != nil {
			t.Fatal(err)
		}
		if _, err := bad.Query("queue", nil, &serf.QueryParam{Timeout: 100 * time.Millisecond}); err != nil {
			t.Fatal(err)
		}
		if i%100 == 0 { // the exchange of states brings events too
			if _, err := bad.Join([]string{target.Addr}, false); err != nil {
				t.Logf("join: %v", err)
			}
		}
	}
	eventually(t, "messages are refused for their rate", func() bool { return all[0].Serf.Refused(gossip.RefusedRate) > 0 })
	took := int(time.Since(begun)/time.Second) + 1
	if n, most := len(served), 64+20*took; n > most { // the budgets of guard.go
		t.Errorf("%d queries were served within %d s, at most %d may", n, took, most)
	}
	if n, most := len(hints), 1024+50*took; n > most {
		t.Errorf("%d events were served within %d s, at most %d may", n, took, most)
	}
}

// Peers without a key fill memory with their announcements.
func TestStreamsOfPeersWithoutAKeyAreBounded(t *testing.T) {
	t.Parallel()
	k := keyring(t)
	all := ring(t, 1, func(_ int, cfg *gossip.Config) { cfg.Keyring = k })
	// An encrypted message of 20 MiB, which memberlist reads before it looks for
	// a key; the label comes first.
	head := append([]byte{244, byte(len("test/serf"))}, "test/serf"...)
	head = append(head, 10, 0x01, 0x40, 0x00, 0x00)
	part := make([]byte, 1<<20)
	send := func() {
		conn, err := net.Dial("tcp", all[0].Serf.Addr())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		for n := range 20 {
			if n == 0 {
				_, err = conn.Write(head)
			} else {
				_, err = conn.Write(part)
			}
			if err != nil {
				return // closed by the other side
			}
		}
	}
	// memberlist ends a stream after ten seconds: on a busy machine two messages may take
	// longer, and the next two are tried.
	for begun := time.Now(); all[0].Serf.Refused(gossip.RefusedStream) == 0; {
		if time.Since(begun) > 4*patience {
			t.Fatalf("no stream is refused within %s", 4*patience)
		}
		send()
		send()
	}
}
