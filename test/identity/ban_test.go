package identity_test

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/cmd/muster/cli"
	"github.com/musterd/muster/coordinator/enroll"
	"github.com/musterd/muster/coordinator/record"
	schedulerv1 "github.com/musterd/muster/proto/scheduler/v1"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/rpcauth"
)

// heard reports whether a node has its lease: a coordinator hears its agent.
func (w *world) heard(node resource.NodeID) bool {
	w.t.Helper()
	_, found, _, err := w.store.Get(w.t.Context(), record.NodeLeaseKey(node))
	if err != nil {
		w.t.Fatal(err)
	}
	return found
}

// Two agents run; one is banned, and let back by a token that its operator puts
// into its file. The other one never notices but for the new gossip key.
func TestARunningAgentIsBannedAndLetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c1, c2 := w.coordinator("c1"), w.coordinator("c2")
		good, bad := t.TempDir(), t.TempDir()
		one := w.open(w.host(good, "gpu-1", w.token(c1, enroll.TokenOptions{Nodes: "gpu-1", TTL: 24 * time.Hour})))
		badHost := w.host(bad, "gpu-2", w.token(c1, enroll.TokenOptions{Nodes: "gpu-2", TTL: 24 * time.Hour, Uses: 9}))
		two := w.open(badHost)
		defer w.run(good, one)()
		defer w.run(bad, two)()
		time.Sleep(30 * time.Second)
		if !w.heard("gpu-1") || !w.heard("gpu-2") {
			t.Fatal("the agents are not heard")
		}
		dial := func() *grpc.ClientConn {
			lead, err := grpc.NewClient("passthrough:///gpu-2", append(c2.TLS().DialOptions(rpcauth.NamedNode()), grpc.WithAuthority("gpu-2"), grpc.WithContextDialer(w.dial))...)
			if err != nil {
				t.Fatal(err)
			}
			return lead
		}
		asks := func(lead *grpc.ClientConn) error {
			_, err := schedulerv1.NewNodeAgentClient(lead).GetResourceSnapshot(t.Context(), &schedulerv1.SnapshotRequest{})
			return err
		}
		before := dial()
		defer before.Close()
		if err := asks(before); err != nil {
			t.Fatal(err)
		}
		old := one.Keyring().Keys()[0]
		certificate := one.TLS().Material().Chain[0]

		if _, err := c1.Ban(t.Context(), "gpu-2", "hostile", "ann"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if err := asks(before); err == nil || !strings.Contains(err.Error(), "was banned") {
			t.Errorf("a leader asks it a second later: %v", err)
		}
		time.Sleep(9 * time.Second)
		if got := one.Keyring().Keys(); len(got) != 1 || bytes.Equal(got[0], old) {
			t.Errorf("10 s later gpu-1 has %d gossip keys, or the old one", len(got))
		}
		if got := two.Keyring().Keys(); len(got) != 1 || !bytes.Equal(got[0], old) {
			t.Errorf("the banned agent has %d gossip keys, or the new one", len(got))
		}
		if !one.TLS().Material().Chain[0].Equal(certificate) {
			t.Error("gpu-1 has another certificate, for a gossip key")
		}
		time.Sleep(2 * time.Minute) // it tries by its token, too
		if w.heard("gpu-2") || !w.heard("gpu-1") {
			t.Errorf("two minutes later gpu-2 is heard %t, gpu-1 %t", w.heard("gpu-2"), w.heard("gpu-1"))
		}

		if _, err := c2.Unban(t.Context(), "gpu-2", "ann", nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		if w.heard("gpu-2") {
			t.Error("it is back without a new token")
		}
		write(t, badHost.TokenFile, w.token(c1, enroll.TokenOptions{Nodes: "gpu-2", Replace: true}))
		time.Sleep(2 * time.Minute)
		if !w.heard("gpu-2") {
			t.Error("it is not back with a new token")
		}
		again := dial() // the first connection repeats the last error for a backoff of random length
		defer again.Close()
		if err := asks(again); err != nil {
			t.Errorf("a leader asks it: %v", err)
		}
		if got := two.Keyring().Keys(); len(got) != 1 || !bytes.Equal(got[0], one.Keyring().Keys()[0]) {
			t.Errorf("it has %d gossip keys, or another", len(got))
		}
	})
}

// An agent is told of a revoked operator without a restart, and knows it after
// one.
func TestAnAgentRefusesARevokedOperator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c1 := w.coordinator("c1")
		dir := t.TempDir()
		host := w.host(dir, "gpu-1", w.token(c1, enroll.TokenOptions{Nodes: "gpu-1"}))
		i := w.open(host)
		stop := w.run(dir, i)
		material, err := c1.IssueOperator(t.Context(), "eve")
		if err != nil {
			t.Fatal(err)
		}
		eve, err := rpcauth.NewTLS(material)
		if err != nil {
			t.Fatal(err)
		}
		asks := func() error {
			conn, err := grpc.NewClient("passthrough:///gpu-1", append(eve.DialOptions(rpcauth.NamedNode()), grpc.WithAuthority("gpu-1"), grpc.WithContextDialer(w.dial))...)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_, err = schedulerv1.NewNodeAgentClient(conn).GetResourceSnapshot(t.Context(), &schedulerv1.SnapshotRequest{})
			return err
		}
		time.Sleep(30 * time.Second)
		if err := asks(); err != nil {
			t.Fatal(err)
		}
		if _, err := c1.RevokeOperator(t.Context(), "eve", "ann", nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		if err := asks(); err == nil || !strings.Contains(err.Error(), "the certificate of operator eve was revoked") {
			t.Errorf("two seconds later: %v", err)
		}
		stop()
		w.cut("c1", true)
		defer w.run(dir, w.open(host))()
		time.Sleep(time.Second)
		if err := asks(); err == nil || !strings.Contains(err.Error(), "was revoked") {
			t.Errorf("after a restart, without a coordinator: %v", err)
		}
	})
}

func TestBansAndOperatorsOverREST(t *testing.T) {
	o := newOffice(t)
	must := func(want string, args ...string) string {
		t.Helper()
		out, errs, code := o.muster(args...)
		if code != cli.ExitDone || !strings.Contains(out+errs, want) {
			t.Fatalf("muster %q: code %d, want %q in\n%s%s", args, code, want, out, errs)
		}
		return out
	}
	refused := func(want string, args ...string) {
		t.Helper()
		out, errs, got := o.muster(args...)
		if got == cli.ExitDone || !strings.Contains(errs, want) {
			t.Errorf("muster %q: code %d, want a refusal with %q in\n%s%s", args, got, want, out, errs)
		}
	}
	if _, err := o.enroll.IssueNodes(t.Context(), []resource.NodeID{"n3"}); err != nil {
		t.Fatal(err)
	}
	must(`node "n3" banned`, "node", "ban", "n3", "--reason", "seen on a botnet")
	must("it had no certificate: is the name right?", "node", "ban", "n33")
	if out := must("seen on a botnet", "node", "bans"); !strings.Contains(out, "boss") || !strings.Contains(out, "n33") {
		t.Errorf("bans:\n%s", out)
	}
	must("nodeban/n3", "node", "bans", "-o", "name")
	must("no longer banned", "node", "unban", "n33")
	refused("node n33 is not banned", "node", "unban", "n33")
	refused("spec.reason", "node", "ban", "n4", "--reason", "a\x1b[2Jb")
	if _, err := o.as("ml").Identity().BanNode(t.Context(), "n3", ""); err == nil {
		t.Error("a tenant bans")
	}
	if _, err := o.as("ml").Identity().UnbanNode(t.Context(), "n3"); err == nil {
		t.Error("a tenant ends a ban")
	}
	if _, err := o.as("ml").Identity().Bans(t.Context()); err == nil {
		t.Error("a tenant lists the bans")
	}

	dir := t.TempDir() + "/ann"
	must("party.pem", "ca", "operator", "ann", "--dir", dir, "--ttl", "30m")
	refused("--ttl: 744h0m0s is outside", "ca", "operator", "bob", "--dir", t.TempDir()+"/bob", "--ttl", "744h")
	must("boss", "ca", "operators")
	must("operator/ann", "ca", "operators", "-o", "name")
	must(`operator "ann": 1 certificate(s) revoked`, "ca", "revoke-operator", "ann")
	refused("has no certificate that is good", "ca", "revoke-operator", "eve")
	list, err := o.client.Identity().Operators(t.Context())
	if err != nil || len(list.Items) != 1 || list.Items[0].Status.RevokedBy != "boss" || list.Items[0].Kind != api.KindOperatorCertificate {
		t.Errorf("operators: %+v, %v", list, err)
	}
	if _, err := o.as("ml").Identity().RevokeOperator(t.Context(), "ann"); err == nil {
		t.Error("a tenant revokes")
	}
}
