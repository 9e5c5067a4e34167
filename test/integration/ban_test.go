package integration

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	identityfolder "github.com/musterd/muster/pki/folder"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	schedulerv1 "github.com/musterd/muster/proto/scheduler/v1"
	"github.com/musterd/muster/rpcauth"
	"github.com/musterd/muster/test/etcdcluster"
	"github.com/musterd/muster/test/programs"
)

// thief is somebody who has the files of a host.
type thief struct {
	c    *cluster
	conn map[string]*grpc.ClientConn // by coordinator's address
}

// steal reads a host's certificate and key and connects to coordinators.
func (c *cluster) steal(a *daemon, coordinators ...string) *thief {
	c.t.Helper()
	f, err := identityfolder.Open(filepath.Join(a.dataDir, "identity"))
	if err != nil {
		c.t.Fatal(err)
	}
	party, err := f.Load()
	if err != nil {
		c.t.Fatal(err)
	}
	tls, err := rpcauth.NewTLS(rpcauth.Material(party))
	if err != nil {
		c.t.Fatal(err)
	}
	th := &thief{c: c, conn: map[string]*grpc.ClientConn{}}
	for _, address := range coordinators {
		conn, err := grpc.NewClient(address, tls.DialOptions(rpcauth.AnyCoordinator())...)
		if err != nil {
			c.t.Fatal(err)
		}
		c.t.Cleanup(func() { _ = conn.Close() })
		th.conn[address] = conn
	}
	return th
}

// reads asks a coordinator for the node's records.
func (th *thief) reads(coordinator, node string) error {
	_, err := musterv1.NewCoordinatorClient(th.conn[coordinator]).ReadNode(soon(th.c.t), &musterv1.ReadNodeRequest{NodeId: node})
	return err
}

// beats opens a heartbeat stream and has one answered.
func (th *thief) beats(coordinator, node string) schedulerv1.NodeAgent_HeartbeatClient {
	th.c.t.Helper()
	s, err := schedulerv1.NewNodeAgentClient(th.conn[coordinator]).Heartbeat(th.c.t.Context())
	if err == nil {
		err = s.Send(&schedulerv1.HeartbeatRequest{NodeId: node})
	}
	if err == nil {
		_, err = s.Recv()
	}
	if err != nil {
		th.c.t.Fatal(err)
	}
	return s
}

// gossipKeys are the keys that an agent keeps.
func gossipKeys(a *daemon) (keys []string, err error) {
	text := read(a.t, filepath.Join(a.dataDir, "identity", "keyring.json"))
	return keys, json.Unmarshal(text, &keys)
}

// awaitNewKey waits until agents keep one gossip key, the same, none of old.
func (c *cluster) awaitNewKey(old []string, agents ...*daemon) string {
	c.t.Helper()
	var first string
	programs.Eventually(c.t, patience, "the agents have one new gossip key", func() error {
		first = ""
		for _, a := range agents {
			keys, err := gossipKeys(a)
			if err != nil || len(keys) != 1 || slices.Contains(old, keys[0]) || (first != "" && keys[0] != first) {
				return fmt.Errorf("%s has %d keys, %w", a.name, len(keys), err)
			}
			first = keys[0]
		}
		return nil
	})
	return first
}

// TestABannedHostIsOutEverywhere is the drill of docs/security.md: a host is
// hostile. The ban survives a failover and a restore of the store.
func TestABannedHostIsOutEverywhere(t *testing.T) {
	t.Parallel()
	e := etcdcluster.Start(t, etcdcluster.Options{Members: 1})
	c := newCluster(t, 3)
	c.coordinator.settings.set("etcdEndpoints", e.Endpoints()).set("leaseTTL", "5s")
	c.secure()
	second := c.replicate(e, 2)[1]
	second.start()
	c2 := second.settings["grpcListen"].(string)
	c.env = append(c.env, "MUSTER_ADDR=https://"+c.rest+",https://"+second.settings["restListen"].(string))
	c.awaitNodes(3)
	c.submit(gang("training", 3, gpus(8)))
	c.awaitRunning("training")
	s := c.connect(e)
	good, bad := c.agents[:2], c.agents[2]
	th := c.steal(bad, c.grpc, c2)
	programs.Eventually(t, patience, "the stolen certificate is good at both coordinators", func() error {
		return errors.Join(th.reads(c.grpc, "node-2"), th.reads(c2, "node-2"))
	})
	streams := []schedulerv1.NodeAgent_HeartbeatClient{th.beats(c.grpc, "node-2"), th.beats(c2, "node-2")}
	leaked, err := gossipKeys(bad)
	if err != nil {
		t.Fatal(err)
	}
	backup := t.TempDir()
	e.Snapshot(backup)

	if out := c.muster("node", "ban", "node-2", "--reason", "a drill"); !strings.Contains(out, `node "node-2" banned`) {
		t.Errorf("banned:\n%s", out)
	}
	banned := func(when string, coordinators ...string) {
		t.Helper()
		for _, at := range coordinators {
			programs.Eventually(t, patience, when+": "+at+" takes nothing of the banned host", func() error {
				if err := th.reads(at, "node-2"); err == nil || !strings.Contains(err.Error(), "node node-2 was banned") {
					return fmt.Errorf("a call: %w", err)
				}
				return nil
			})
		}
		programs.Eventually(t, patience, when+": the node is shown as banned", func() error {
			out, stderr, code := c.tries("get", "nodes")
			if code != 0 || strings.Count(out, "Banned") != 1 {
				return fmt.Errorf("code %d\n%s%s", code, out, stderr)
			}
			return nil
		})
	}
	for _, stream := range streams {
		for {
			if _, err := stream.Recv(); err != nil { // directives may come before
				break
			}
		}
	}
	banned("banned", c.grpc, c2)
	now := c.awaitNewKey(leaked, good...)
	if keys, err := gossipKeys(bad); err != nil || slices.Contains(keys, now) {
		t.Errorf("the banned host has the new gossip key, %v", err)
	}
	if out := c.muster("describe", "node", "node-2"); !strings.Contains(out, "a drill") {
		t.Errorf("described:\n%s", out)
	}
	c.wantPhase("training", api.Running) // nothing is released by a ban

	c.coordinator.kill() // the other one leads
	banned("after a failover", c2)
	c.coordinator.start()
	banned("with both again", c.grpc, c2)

	c.age(s)
	for _, a := range c.agents {
		a.process.restored = true
	}
	e.RestoreAll(backup)
	programs.Eventually(t, patience, "the store is restored", func() error {
		_, _, _, err := s.Get(soon(t), record.Root)
		var back *record.WentBackError
		if !errors.As(err, &back) {
			return fmt.Errorf("read: %w", err)
		}
		return nil
	})
	programs.Eventually(t, patience, "the ban is back", func() error {
		out, stderr, code := c.tries("node", "bans")
		if code != 0 || !strings.Contains(out, "a drill") {
			return fmt.Errorf("code %d\n%s%s", code, out, stderr)
		}
		return nil
	})
	banned("after a restore", c.grpc, c2)
	c.awaitNewKey(append(leaked, now), good...)

	c.muster("node", "unban", "node-2")
	write(t, bad.settings["bootstrapTokenFile"].(string), []byte(c.muster("token", "create", "--node", "node-2", "--replace")), 0o600)
	programs.Eventually(t, patience, "the host is back by a new token, without a restart", func() error {
		n, err := c.client.Nodes().Get(soon(t), "node-2")
		if err != nil {
			return err
		}
		if n.Status.Phase == "Banned" || n.Status.Phase == "NotReady" {
			return fmt.Errorf("it is %s", n.Status.Phase)
		}
		return nil
	})
	if err := th.reads(c2, "node-2"); err == nil {
		t.Error("the stolen certificate is good again")
	}
}
