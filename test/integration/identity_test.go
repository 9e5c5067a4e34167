package integration

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/pki"
	identityfolder "github.com/musterd/muster/pki/folder"
	schedulerv1 "github.com/musterd/muster/proto/scheduler/v1"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/rpcauth"
	"github.com/musterd/muster/sdk"
	"github.com/musterd/muster/test/programs"
)

// secure turns a cluster that has not been started into one with TLS, REST
// included, whose agents have a bootstrap token to enroll with, and starts it.
func (c *cluster) secure() {
	c.t.Helper()
	delete(c.coordinator.settings, "tokenFile")
	c.coordinator.settings.set("tls.enabled", true).set("tls.rest", true)
	c.coordinator.configure(c.coordinator.settings)
	c.coordinator.start()
	ca := filepath.Join(c.coordinator.dataDir, "tls", "ca.pem")
	programs.Eventually(c.t, patience, "the coordinator has written its authority", func() error {
		_, err := os.Stat(ca)
		return err
	})
	c.env = append(c.env, "MUSTER_ADDR=https://"+c.rest, "MUSTER_CA_FILE="+ca)
	c.trust()
	programs.Eventually(c.t, patience, "the coordinator serves", func() error {
		_, err := c.client.Nodes().List(soon(c.t), sdk.ListOptions{})
		return err
	})
	token := c.muster("token", "create", "--node", "node-*", "--uses", fmt.Sprint(len(c.agents)))
	for _, a := range c.agents {
		c.enroll(a, token)
	}
}

// trust makes the client one that trusts the cluster's authorities of now.
func (c *cluster) trust() {
	c.t.Helper()
	client, err := sdk.NewClient(sdk.Config{
		Endpoint: "https://" + c.rest, Token: adminToken, CAFile: filepath.Join(c.coordinator.dataDir, "tls", "ca.pem"),
	})
	if err != nil {
		c.t.Fatal(err)
	}
	c.client = client
}

// enroll gives an agent a bootstrap token and starts it.
func (c *cluster) enroll(a *daemon, token string) {
	c.t.Helper()
	file := filepath.Join(c.t.TempDir(), "bootstrap-token")
	write(c.t, file, []byte(token), 0o600)
	delete(a.settings, "tokenFile")
	a.settings.set("tls.enabled", true).set("bootstrapTokenFile", file).set("coordinators", []string{c.grpc})
	a.configure(a.settings)
	a.start()
}

func TestAClusterOfCertificates(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	c.secure()
	c.awaitNodes(2)
	c.submit(gang("training", 2, gpus(8)))
	c.awaitRunning("training")

	for _, a := range c.agents {
		for _, name := range []string{"identity/party.pem", "identity/ca.pem", "identity/keyring.json", "serf-rpc-token"} {
			mustBePrivate(t, filepath.Join(a.dataDir, name))
		}
	}
	// What has a certificate comes back without a token; the token was for two.
	a := c.agents[0]
	used := string(read(t, a.settings["bootstrapTokenFile"].(string)))
	if err := os.Remove(a.settings["bootstrapTokenFile"].(string)); err != nil {
		t.Fatal(err)
	}
	c.restart(a)
	c.awaitPhase("node-0", "Ready")
	c.awaitRunning("training")
	third := newAgent(t, t.TempDir(), "", "node-2", "", c.serf)
	delete(third.settings, "tokenFile")
	write(t, filepath.Join(third.dataDir+".token"), []byte(used), 0o600)
	third.settings.set("tls.enabled", true).set("bootstrapTokenFile", third.dataDir+".token").set("coordinators", []string{c.grpc})
	third.configure(third.settings)
	third.refuses(1, nil, "is used up: make another one")

	tokens := musterJSON[api.BootstrapTokenList](c.user, "token", "list", "--bootstrap", "-o", "json")
	if len(tokens.Items) != 1 || tokens.Items[0].Status.Uses != 0 || tokens.Items[0].Status.Token != "" {
		t.Errorf("tokens: %+v", tokens)
	}
	c.muster("token", "revoke", tokens.Items[0].Metadata.Name)

	c.operatorLooks()
	c.authorityRotates()
	c.coordinator.kill()
	c.coordinator.start()
	c.awaitNodes(2)
	c.awaitRunning("training")
}

// certifyOperator gets an operator's certificate, as the operator would.
func (c *cluster) certifyOperator(name string) *rpcauth.TLS {
	t := c.t
	t.Helper()
	dir := filepath.Join(t.TempDir(), "operator")
	c.muster("ca", "operator", name, "--dir", dir)
	f, err := identityfolder.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	party, err := f.Load()
	if err != nil {
		t.Fatal(err)
	}
	operator, err := rpcauth.NewTLS(rpcauth.Material(party))
	if err != nil {
		t.Fatal(err)
	}
	if operator.Identity() != (pki.Identity{Cluster: "test", Role: pki.Operator, ID: name}) {
		t.Fatalf("certified as %s", operator.Identity())
	}
	return operator
}

// operatorLooks asks an agent what it holds, by an operator's certificate and
// by nothing.
func (c *cluster) operatorLooks() {
	t := c.t
	ann := c.certifyOperator("ann")
	look := func(options ...grpc.DialOption) error {
		conn, err := grpc.NewClient(c.agents[0].settings["listen"].(string), options...)
		if err != nil {
			return err
		}
		defer conn.Close()
		s, err := schedulerv1.NewNodeAgentClient(conn).GetResourceSnapshot(soon(t), &schedulerv1.SnapshotRequest{})
		if err == nil && len(s.GetAllocations()) != 1 {
			err = fmt.Errorf("%d allocations, want 1", len(s.GetAllocations()))
		}
		return err
	}
	if err := look(append(ann.DialOptions(rpcauth.NamedNode()), grpc.WithAuthority("node-0"))...); err != nil {
		t.Errorf("an operator: %v", err)
	}
	if err := look(grpc.WithTransportCredentials(insecure.NewCredentials())); status.Code(err) != codes.Unavailable {
		t.Errorf("nobody in plain text: %v", err)
	}
	none, err := sdk.NewClient(sdk.Config{Endpoint: "https://" + c.rest, Token: adminToken})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := none.Nodes().List(soon(t), sdk.ListOptions{}); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a client that trusts nobody: %v", err)
	}
}

// authorityRotates replaces the authority under running programs.
func (c *cluster) authorityRotates() {
	t := c.t
	before := musterJSON[api.AuthorityList](c.user, "ca", "show", "-o", "json")
	if len(before.Items) != 1 || before.Items[0].Status.Nodes != 2 {
		t.Fatalf("authorities: %+v", before)
	}
	old := before.Items[0].Metadata.Name
	c.muster("ca", "rotate")
	programs.Eventually(t, patience, "all nodes have certificates by the new authority", func() error {
		list, err := c.client.Identity().Authorities(soon(t))
		if err != nil {
			return err
		}
		if len(list.Items) != 2 || list.Items[0].Status.Nodes != 0 || list.Items[1].Status.Nodes != 2 {
			return fmt.Errorf("%+v", list.Items)
		}
		return nil
	})
	c.muster("ca", "retire", old)
	programs.Eventually(t, patience, "the agents have dropped the old authority", func() error {
		for _, a := range c.agents {
			roots, err := pki.ParsePEM(read(t, filepath.Join(a.dataDir, "identity", "ca.pem")))
			if err != nil {
				return fmt.Errorf("%s: %w", a.name, err)
			}
			if len(roots) != 1 || fmt.Sprintf("%x", roots[0].SubjectKeyId) == old {
				return fmt.Errorf("%s trusts %d authorities, the old one among them", a.name, len(roots))
			}
		}
		return nil
	})
	c.trust() // a client reads the authorities once
	c.submit(gang("under-the-new-one", 1, map[resource.Name]string{resource.CPU: "100m"}))
	c.awaitRunning("under-the-new-one")
}

func TestTheStockSerfProgramRotatesTheKeysOfBothRings(t *testing.T) {
	t.Parallel()
	program := serfCLI(t)
	c := newCluster(t, 2)
	c.secure()
	c.awaitNodes(2)
	// at runs the stock program against a daemon's RPC port.
	at := func(d *daemon, verb string, args ...string) (stdout, stderr string, code int) {
		t.Helper()
		token := strings.TrimSpace(string(read(t, filepath.Join(d.dataDir, "serf-rpc-token"))))
		port := d.settings["gossip"].(settings)["serfRPC"].(string)
		return execute(t, nil, program, append([]string{verb, "-rpc-addr=" + port, "-rpc-auth=" + token}, args...)...)
	}
	keys := func(args ...string) {
		t.Helper()
		if stdout, stderr, code := at(c.coordinator, "keys", args...); code != 0 {
			t.Fatalf("serf keys %v: code %d\n%s%s", args, code, stdout, stderr)
		}
	}
	all := func() error {
		stdout, stderr, _ := at(c.coordinator, "members", "-status=alive")
		if n := strings.Count(stdout, "alive"); n != 3 {
			return fmt.Errorf("%d are: %s%s", n, stdout, stderr)
		}
		return nil
	}
	awaitKeyring := func(a *daemon, what string, enough func(keys []string) bool) (list []string) {
		t.Helper()
		programs.Eventually(t, patience, what, func() error {
			text := read(t, filepath.Join(a.dataDir, "identity", "keyring.json"))
			list = nil
			if err := json.Unmarshal(text, &list); err != nil || len(list) == 0 || !enough(list) {
				return fmt.Errorf("%s keeps %d keys, %w", a.name, len(list), err)
			}
			return nil
		})
		return list
	}
	programs.Eventually(t, patience, "all three are in the ring", all)
	old := awaitKeyring(c.agents[0], "there is a key", func([]string) bool { return true })[0]
	const fresh = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=" // 32 bytes
	if stdout, stderr, code := at(c.agents[0], "keys", "-install", fresh); code == 0 || !strings.Contains(stdout+stderr, "on a coordinator's host") {
		t.Errorf("through an agent's port: code %d\n%s%s", code, stdout, stderr)
	}
	keys("-install", fresh)
	for _, a := range c.agents { // their heartbeats tell them
		awaitKeyring(a, "the new key is there", func(keys []string) bool { return len(keys) == 2 && keys[0] == old })
	}
	keys("-use", fresh)
	keys("-remove", old)
	for _, a := range c.agents {
		awaitKeyring(a, "the new key is all that is kept", func(keys []string) bool { return len(keys) == 1 && keys[0] == fresh })
	}
	// Digests flow on: the ring tells of what is handed out now.
	c.submit(gang("training", 1, gpus(8)))
	c.awaitRunning("training")
	programs.Eventually(t, patience, "the members still hear each other", func() error {
		stdout, stderr, code := at(c.agents[0], "query", "-timeout=1s", "capacity")
		if code != 0 || strings.Count(stdout, "Response from 'node-") != 2 {
			return fmt.Errorf("code %d: %s%s", code, stdout, stderr)
		}
		return nil
	})
	// A coordinator keeps them in the store: after a restart it has the new one,
	// and so has who enrolls now.
	c.coordinator.kill()
	c.coordinator.start()
	c.awaitNodes(2)
	if stdout, stderr, _ := at(c.coordinator, "keys", "-list"); !strings.Contains(stdout, fresh) || strings.Contains(stdout, old) {
		t.Errorf("after a restart it has other keys: %s%s", stdout, stderr)
	}

	// Who has another key stays outside and says why.
	c.agents[1].stop()
	file := filepath.Join(c.agents[1].dataDir, "identity", "keyring.json")
	write(t, file, []byte(`["`+old+`"]`), 0o600)
	c.agents[1].settings.set("gossip.join", []string{c.serf})
	c.agents[1].start()
	programs.Eventually(t, patience, "the agent says that its key is refused", func() error {
		if text := c.agents[1].process.stderr.String(); !strings.Contains(text, "gossip key") {
			return fmt.Errorf("it has said nothing of it")
		}
		return nil
	})
	// A coordinator that it reaches tells it the right one.
	awaitKeyring(c.agents[1], "the agent has been told the key", func(keys []string) bool { return keys[0] == fresh })
}
