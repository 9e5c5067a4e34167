package gossip_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	serfclient "github.com/hashicorp/serf/client"

	"github.com/musterd/muster/gossip"
)

const token = "operator-token"

// rpcRing starts n agents whose first has an RPC port.
func rpcRing(t *testing.T, n int, edit func(i int, cfg *gossip.Config)) []*gossip.Rings {
	t.Helper()
	return ring(t, n, func(i int, cfg *gossip.Config) {
		if i == 0 {
			cfg.RPC = gossip.RPC{Addr: "127.0.0.1:0", Token: token}
		}
		if edit != nil {
			edit(i, cfg)
		}
	})
}

func dial(t *testing.T, addr, key string) *serfclient.RPCClient {
	t.Helper()
	c, err := serfclient.ClientFromConfig(&serfclient.Config{Addr: addr, AuthKey: key, Timeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestTheStockClientListsMembers(t *testing.T) {
	t.Parallel()
	all := rpcRing(t, 3, nil)
	members, err := dial(t, all[0].Serf.RPCAddr(), token).Members()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range members {
		names = append(names, m.Name+" "+m.Status+" "+m.Tags["role"])
	}
	slices.Sort(names)
	if want := []string{"node-1 alive agent", "node-2 alive agent", "node-3 alive agent"}; !slices.Equal(names, want) {
		t.Errorf("members %q, want %q", names, want)
	}
}

func TestTheStockClientQueriesEveryAgent(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ü", 2000)
	all := rpcRing(t, 3, func(i int, cfg *gossip.Config) {
		id := cfg.Tags.ID
		cfg.Queries = map[string]gossip.QueryHandler{
			"capacity": func(payload []byte) []byte { return []byte(id + " has 8 GPUs free " + string(payload)) },
			"devices":  func([]byte) []byte { return []byte(long) },
			"health":   func([]byte) []byte { return nil },
		}
	})
	client := dial(t, all[0].Serf.RPCAddr(), token)
	ask := func(name string) map[string]string {
		t.Helper()
		responses := make(chan serfclient.NodeResponse, 16)
		err := client.Query(&serfclient.QueryParam{Name: name, Payload: []byte("now"), Timeout: time.Second, RespCh: responses})
		if err != nil {
			t.Fatal(err)
		}
		answers := make(map[string]string)
		for r := range responses {
			answers[r.From] = string(r.Payload)
		}
		return answers
	}
	// three asks again as long as a member is too slow to answer.
	three := func(name string) (answers map[string]string) {
		t.Helper()
		eventually(t, "all answer the query "+name, func() bool { answers = ask(name); return len(answers) == 3 })
		return answers
	}
	for id, answer := range three("capacity") {
		if want := id + " has 8 GPUs free now"; answer != want {
			t.Errorf("%s answers %q, want %q", id, answer, want)
		}
	}
	for id, answer := range three("devices") {
		if len(answer) > 1024 || !strings.HasSuffix(answer, "ü\n…cut at 1024 bytes") {
			t.Errorf("the long answer of %s has %d bytes and ends with %q", id, len(answer), answer[len(answer)-40:])
		}
	}
	if silent := ask("health"); len(silent) != 0 {
		t.Errorf("nil is answered with %q", silent)
	}
}

func TestAWrongTokenIsRefused(t *testing.T) {
	t.Parallel()
	all := rpcRing(t, 1, nil)
	_, err := serfclient.ClientFromConfig(&serfclient.Config{Addr: all[0].Serf.RPCAddr(), AuthKey: "guess", Timeout: patience})
	if err == nil || !strings.Contains(err.Error(), "Invalid authentication token") {
		t.Errorf("a wrong token: %v", err)
	}
	if _, err := dial(t, all[0].Serf.RPCAddr(), "").Members(); err == nil || !strings.Contains(err.Error(), "Authentication required") {
		t.Errorf("no token: %v", err)
	}
}

func TestTheStockClientMonitorsAndStreams(t *testing.T) {
	t.Parallel()
	all := rpcRing(t, 2, nil)
	client := dial(t, all[0].Serf.RPCAddr(), token)
	lines := make(chan string, 256)
	if _, err := client.Monitor("INFO", lines); err != nil {
		t.Fatal(err)
	}
	events := make(chan map[string]any, 64)
	if _, err := client.Stream("user:drill", events); err != nil {
		t.Fatal(err)
	}
	if err := client.UserEvent("drill", []byte("x"), false); err != nil {
		t.Fatal(err)
	}
	select {
	case e := <-events:
		if e["Name"] != "drill" {
			t.Errorf("streamed %v", e)
		}
	case <-time.After(patience):
		t.Fatal("the event is not streamed")
	}
	select {
	case line := <-lines:
		if !strings.Contains(line, "serf") && !strings.Contains(line, "agent") {
			t.Errorf("monitored %q", line)
		}
	case <-time.After(patience):
		t.Fatal("no log line is monitored")
	}
	// The client closes its channels while it still reads; let it read the end.
	if err := all[0].Abandon(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the client sees the port close", client.IsClosed)
}

// everywhere changes the keyrings of a cluster as a coordinator's store does.
type everywhere struct{ keyrings []*gossip.Keyring }

func (e *everywhere) ChangeKeys(_ context.Context, change func([][]byte) ([][]byte, error)) error {
	keys, err := change(e.keyrings[0].Keys())
	if err != nil {
		return err
	}
	for _, k := range e.keyrings {
		err = errors.Join(err, k.Replace(keys))
	}
	return err
}

func keyring(t *testing.T) *gossip.Keyring {
	t.Helper()
	k, err := gossip.NewKeyring([][]byte{[]byte("0123456789abcdef")})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestKeysAreRotatedThroughACoordinatorsPort(t *testing.T) {
	t.Parallel()
	const first, second = "MDEyMzQ1Njc4OWFiY2RlZg==", "MTIzNDU2Nzg5MDEyMzQ1Ng==" // 16 bytes
	all := &everywhere{}
	members := rpcRing(t, 2, func(i int, cfg *gossip.Config) {
		cfg.Keyring = keyring(t)
		all.keyrings = append(all.keyrings, cfg.Keyring)
		if i == 0 {
			cfg.Tags.Role, cfg.Keys = gossip.RoleCoordinator, all
		}
	})
	client := dial(t, members[0].Serf.RPCAddr(), token)
	for _, c := range []struct {
		what string
		do   func(string) (map[string]string, error)
		key  string
		want string // of the error
	}{
		{"use a key that is not installed", client.UseKey, second, "not installed"},
		{"install no base64", client.InstallKey, "%", "not base64"},
		{"install three bytes", client.InstallKey, "AAEC", "3 bytes"},
		{"remove the key that encrypts", client.RemoveKey, first, "use another one first"},
		{"install", client.InstallKey, second, ""},
		{"install it again", client.InstallKey, second, ""},
		{"use", client.UseKey, second, ""},
		{"remove", client.RemoveKey, first, ""},
	} {
		_, err := c.do(c.key)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Fatalf("%s: %v, want %q", c.what, err, c.want)
		}
	}
	keys, nodes, _, err := client.ListKeys()
	if err != nil || nodes != 1 || len(keys) != 1 || keys[second] != 1 {
		t.Errorf("listed %v of %d, %v", keys, nodes, err)
	}
	if err := members[1].Capacity.Publish(free("node-2", 1, 1, 0x3c)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "digests travel under the new key", func() bool { return mask(members[0], "node-2") == 0x3c })
}

func TestKeysAreNotChangedThroughAnAgentsPort(t *testing.T) {
	t.Parallel()
	const other = "MTIzNDU2Nzg5MDEyMzQ1Ng=="
	k := keyring(t)
	all := rpcRing(t, 1, func(_ int, cfg *gossip.Config) { cfg.Keyring = k })
	client := dial(t, all[0].Serf.RPCAddr(), token)
	for what, do := range map[string]func(string) (map[string]string, error){"install": client.InstallKey, "use": client.UseKey, "remove": client.RemoveKey} {
		if _, err := do(other); err == nil || !strings.Contains(err.Error(), "on a coordinator's host") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if keys, _, _, err := client.ListKeys(); err != nil || len(keys) != 1 || len(k.Keys()) != 1 {
		t.Errorf("listed %v, %v; the keyring has %d keys", keys, err, len(k.Keys()))
	}
	plain := rpcRing(t, 1, nil)
	if _, err := dial(t, plain[0].Serf.RPCAddr(), token).InstallKey(other); err == nil || !strings.Contains(err.Error(), "not encrypted") {
		t.Errorf("without encryption: %v", err)
	}
}

func TestOperatorsOfTheHostGetAnotherAnswerThanTheRing(t *testing.T) {
	t.Parallel()
	answer := func(text string) map[string]gossip.QueryHandler {
		return map[string]gossip.QueryHandler{"queue": func(p []byte) []byte { return append([]byte(text), p...) }}
	}
	all := rpcRing(t, 2, func(i int, cfg *gossip.Config) {
		cfg.Queries, cfg.Local = answer("12 wait"), answer("tenant/unit waits ")
		cfg.RPC = gossip.RPC{Addr: "127.0.0.1:0", Token: token}
	})
	for i, r := range all {
		client := dial(t, r.Serf.RPCAddr(), token)
		other := fmt.Sprintf("node-%d", 2-i)
		eventually(t, "both answer", func() bool {
			responses, got := make(chan serfclient.NodeResponse, 16), map[string]string{}
			if err := client.Query(&serfclient.QueryParam{Name: "queue", Payload: []byte("x"), Timeout: time.Second, RespCh: responses}); err != nil {
				t.Fatal(err)
			}
			for r := range responses {
				if was, twice := got[r.From]; twice {
					t.Errorf("%s answers twice: %q and %q", r.From, was, r.Payload)
				}
				got[r.From] = string(r.Payload)
			}
			return len(got) == 2 && got[other] == "12 waitx" && got[fmt.Sprintf("node-%d", i+1)] == "tenant/unit waits x"
		})
	}
}

func TestLeavingThroughRPCIsNoticed(t *testing.T) {
	t.Parallel()
	all := rpcRing(t, 2, nil)
	if err := dial(t, all[0].Serf.RPCAddr(), token).Leave(); err != nil {
		t.Fatal(err)
	}
	wait(t, "the serf ring of node-1 stops", all[0].Serf.Stopped())
	eventually(t, "node-2 sees it leave", func() bool { return alive(all[1]) == 1 })
	if err := all[0].Close(); err != nil {
		t.Errorf("close after leaving through RPC: %v", err)
	}
}

// Stock serf's tags, force-leave and rtt succeed in a ring of two, in which each
// message is sent more slowly than in a larger one.
func TestTheStockClientChangesTagsForcesALeaveAndMeasures(t *testing.T) {
	t.Parallel()
	for name, profile := range map[string]gossip.Profile{"among hosts": gossip.LAN, "on one machine": gossip.Local} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := rpcRing(t, 2, func(_ int, cfg *gossip.Config) { cfg.Profile = profile })
			client := dial(t, all[0].Serf.RPCAddr(), token)
			if err := client.UpdateTags(map[string]string{"zone": "z2"}, nil); err != nil {
				t.Errorf("serf tags -set zone=z2: %v", err)
			}
			eventually(t, "node-2 sees the new tag", func() bool { return all[1].Serf.Members()[0].Tags.Zone == "z2" })
			if err := client.UpdateTags(nil, []string{"id"}); err == nil || !strings.Contains(err.Error(), "tag id") {
				t.Errorf("serf tags -delete id: %v, want a refusal that names the tag", err)
			}
			if err := client.ForceLeave("node-2"); err != nil {
				t.Errorf("serf force-leave node-2: %v", err)
			}
			eventually(t, "each member has a coordinate", func() bool {
				for _, node := range []string{"node-1", "node-2"} {
					if c, err := client.GetCoordinate(node); err != nil || c == nil {
						return false
					}
				}
				return true
			})
		})
	}
}
