package identity_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"

	"github.com/musterd/muster/agent"
	"github.com/musterd/muster/agent/rpc"
	"github.com/musterd/muster/agent/usage"
	"github.com/musterd/muster/coordinator/enroll"
	"github.com/musterd/muster/coordinator/record"
	coordinatorrpc "github.com/musterd/muster/coordinator/rpc"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/coordinator/store/mem"
	"github.com/musterd/muster/devices/fake"
	"github.com/musterd/muster/gossip"
	"github.com/musterd/muster/numa/sysfs"
	"github.com/musterd/muster/pki"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	schedulerv1 "github.com/musterd/muster/proto/scheduler/v1"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/rpcauth"
	"github.com/musterd/muster/test/canary"
)

const (
	cluster = "c"
	certTTL = time.Hour
)

// world is a store with coordinators that certify, all in memory.
type world struct {
	t     *testing.T
	store *mem.Store
	log   *slog.Logger // of all programs, judged at the end

	mu        sync.Mutex
	listeners map[string]*bufconn.Listener
	down      map[string]bool
	stops     map[string]func() // of the coordinators' servers
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, store: mem.Open(mem.Options{}), log: canary.Logger(t), listeners: map[string]*bufconn.Listener{}, down: map[string]bool{}, stops: map[string]func(){}}
	t.Cleanup(func() { _ = w.store.Close() })
	return w
}

// coordinator starts one that serves at its id.
func (w *world) coordinator(id string) *enroll.Service {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	var ring *gossip.Keyring
	e, err := enroll.Open(ctx, enroll.Config{Cluster: cluster, ID: id, Store: w.store, TTL: certTTL}, func(keys [][]byte) (enroll.Keyring, error) {
		var err error
		ring, err = gossip.NewKeyring(keys)
		return ring, err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() { e.Run(ctx) })
	w.t.Cleanup(func() { cancel(); wg.Wait() })
	w.t.Cleanup(w.serve(id, e))
	return e
}

// serve serves a coordinator at its id until the returned function is called,
// again or for the first time.
func (w *world) serve(id string, e *enroll.Service) (stop func()) {
	server := grpc.NewServer(rpcauth.Server(e.TLS(), rpcauth.CoordinatorRules())...)
	musterv1.RegisterEnrollmentServer(server, e)
	musterv1.RegisterCoordinatorServer(server, &coordinatorrpc.Server{Cluster: cluster, Store: w.store, Logger: w.log})
	schedulerv1.RegisterNodeAgentServer(server, &coordinatorrpc.Heartbeats{CoordinatorID: id, Store: w.store, Logger: w.log, Fingerprint: e.Fingerprint, Changed: e.Changed})
	l := w.listen(id)
	var wg sync.WaitGroup
	wg.Go(func() { _ = server.Serve(l) })
	stop = func() { server.Stop(); wg.Wait() }
	w.mu.Lock()
	w.stops[id] = stop
	w.mu.Unlock()
	return stop
}

func (w *world) listen(address string) *bufconn.Listener {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.listeners[address] = bufconn.Listen(1 << 16)
	return w.listeners[address]
}

func (w *world) cut(address string, down bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down[address] = down
}

func (w *world) dial(ctx context.Context, address string) (net.Conn, error) {
	w.mu.Lock()
	l, down := w.listeners[address], w.down[address]
	w.mu.Unlock()
	if l == nil || down {
		return nil, fmt.Errorf("dial %s: connection refused", address)
	}
	return l.DialContext(ctx)
}

// host is where an agent's identity lives.
func (w *world) host(dir, node, token string) agent.IdentityConfig {
	w.t.Helper()
	c := agent.IdentityConfig{
		Cluster: cluster, Node: resource.NodeID(node), Dir: filepath.Join(dir, "identity"), Coordinators: []string{"c1", "c2"}, Dialer: w.dial, Log: w.log,
	}
	if token != "" {
		c.TokenFile = filepath.Join(dir, "bootstrap-token")
		write(w.t, c.TokenFile, token)
	}
	return c
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (w *world) token(e *enroll.Service, o enroll.TokenOptions) string {
	w.t.Helper()
	token, _, err := e.CreateToken(w.t.Context(), o)
	if err != nil {
		w.t.Fatal(err)
	}
	return token.Text()
}

func (w *world) open(c agent.IdentityConfig) *agent.Identity {
	w.t.Helper()
	i, err := agent.OpenIdentity(w.t.Context(), c)
	if err != nil {
		w.t.Fatal(err)
	}
	return i
}

func TestAHostEnrollsOnceAndKeepsItsIdentity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c1 := w.coordinator("c1")
		dir := t.TempDir()
		host := w.host(dir, "gpu-1", w.token(c1, enroll.TokenOptions{Nodes: "gpu-*"}))
		first := w.open(host)
		if got := first.TLS().Identity(); got != (pki.Identity{Cluster: cluster, Role: pki.Node, ID: "gpu-1"}) {
			t.Fatalf("certified as %s", got)
		}
		if got := first.Keyring().Keys(); !slices.EqualFunc(got, c1.Keyring().Keys(), bytes.Equal) {
			t.Error("it was not told the gossip keys")
		}
		mustBePrivate(t, host.Dir)

		w.cut("c1", true) // a restart needs nobody, and no token
		if err := os.Remove(host.TokenFile); err != nil {
			t.Fatal(err)
		}
		again := w.open(host)
		if !again.TLS().Material().Chain[0].Equal(first.TLS().Material().Chain[0]) {
			t.Error("it has another certificate after a restart")
		}
		w.cut("c1", false)

		// serf rewrites the keyring in place: a crash may leave half of it.
		write(t, filepath.Join(host.Dir, "keyring.json"), `["dG9`)
		if got := w.open(host).Keyring().Keys(); !slices.EqualFunc(got, c1.Keyring().Keys(), bytes.Equal) {
			t.Error("half a keyring is not made whole again")
		}
	})
}

func mustBePrivate(t *testing.T, dir string) {
	t.Helper()
	if err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %04o", path, info.Mode().Perm())
		}
		return err
	}); err != nil {
		t.Error(err)
	}
}

func TestAHostWaitsForACoordinatorButNotForATokenToGetBetter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c1 := w.coordinator("c1")
		w.cut("c1", true)
		dir := t.TempDir()
		opened := make(chan error, 1)
		host := w.host(dir, "gpu-1", w.token(c1, enroll.TokenOptions{Nodes: "*"}))
		go func() {
			_, err := agent.OpenIdentity(t.Context(), host)
			opened <- err
		}()
		time.Sleep(time.Minute)
		select {
		case err := <-opened:
			t.Fatalf("without a coordinator: %v", err)
		default:
		}
		w.cut("c1", false)
		if err := <-opened; err != nil {
			t.Fatal(err)
		}
		for name, c := range map[string]struct {
			token string
			err   error
			want  string
		}{
			"a token that is used up":     {w.token(c1, enroll.TokenOptions{Nodes: "x"}), rpc.ErrRefused, `for nodes "x", not for "gpu-2"`},
			"half a token":                {"muster-boot.1", agent.ErrNoIdentity, "bootstrapTokenFile"},
			"no token":                    {"", agent.ErrNoIdentity, "muster token create --node gpu-2"},
			"a token of another cluster":  {pki.NewToken(pki.PinOf(c1.Roots()[0])).Text(), rpc.ErrRefused, "revoked, or never was"},
			"a token of the node before":  {w.token(c1, enroll.TokenOptions{Nodes: "gpu-*", TTL: time.Second}), rpc.ErrRefused, "expired at"},
			"a token that others can see": {"open", agent.ErrNoIdentity, "chmod 0600"},
		} {
			host := w.host(t.TempDir(), "gpu-2", c.token)
			if c.token == "open" {
				if err := os.Chmod(host.TokenFile, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if name == "a token of the node before" {
				time.Sleep(2 * time.Second)
			}
			if _, err := agent.OpenIdentity(t.Context(), host); !errors.Is(err, c.err) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %q", name, err, c.want)
			}
		}
	})
}

// Somebody in between shows a certificate of his own, or the cluster's root
// beside it: the token never gets to him.
func TestATokenIsShownToItsOwnClusterAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, other := newWorld(t), newWorld(t)
		c1 := w.coordinator("c1")
		other.coordinator("c1")
		host := other.host(t.TempDir(), "gpu-1", w.token(c1, enroll.TokenOptions{Nodes: "*"}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := agent.OpenIdentity(ctx, host)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "somebody in between") {
			t.Errorf("got %v", err)
		}
		tokens, _, err := other.store.Range(t.Context(), record.EnrolledPrefix, store.RangeOptions{})
		if err != nil || len(tokens) != 0 {
			t.Errorf("%d hosts are enrolled at the other, %v", len(tokens), err)
		}
	})
}

func TestAnIdentityThatIsOverNamesTheWayOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c1 := w.coordinator("c1")
		dir := t.TempDir()
		host := w.host(dir, "gpu-1", w.token(c1, enroll.TokenOptions{Nodes: "gpu-*", Uses: 9, TTL: 24 * time.Hour}))
		w.open(host)
		time.Sleep(certTTL + time.Second)
		bare := host
		bare.TokenFile = ""
		if _, err := agent.OpenIdentity(t.Context(), bare); !errors.Is(err, agent.ErrNoIdentity) || !strings.Contains(err.Error(), "expired at") || !strings.Contains(err.Error(), "--replace") {
			t.Errorf("without a token: %v", err)
		}
		if _, err := agent.OpenIdentity(t.Context(), host); !errors.Is(err, rpc.ErrRefused) || !strings.Contains(err.Error(), "muster token create --node gpu-1 --replace") {
			t.Errorf("with a token for new nodes: %v", err)
		}
		write(t, host.TokenFile, w.token(c1, enroll.TokenOptions{Nodes: "gpu-1", Replace: true}))
		w.open(host)

		other := host
		other.Node = "gpu-2"
		other.TokenFile = ""
		if _, err := agent.OpenIdentity(t.Context(), other); !errors.Is(err, agent.ErrNoIdentity) || !strings.Contains(err.Error(), "is of muster://c/node/gpu-1, not of muster://c/node/gpu-2") {
			t.Errorf("another node on the folder: %v", err)
		}
		open := filepath.Join(host.Dir, "ca.pem")
		if err := os.Chmod(open, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := agent.OpenIdentity(t.Context(), host); err == nil || !strings.Contains(err.Error(), "chmod 0600 "+open) {
			t.Errorf("a file that others can write: %v", err)
		}
		write(t, filepath.Join(host.Dir, "party.pem"), "rubbish")
		if _, err := agent.OpenIdentity(t.Context(), host); err == nil || !strings.Contains(err.Error(), "party.pem") || !strings.Contains(err.Error(), "enroll again") {
			t.Errorf("a damaged file: %v", err)
		}
	})
}

// discovered is a host with GPUs.
func discovered(t *testing.T, node string) agent.Discovered {
	t.Helper()
	machine, err := fake.Lookup("dgx-a100")
	if err != nil {
		t.Fatal(err)
	}
	return agent.Discovered{Host: sysfs.Host{Hostname: node}, BootID: "boot", Topology: machine.Topology(), Inventory: machine.Inventory(node)}
}

// run runs an agent until the returned function ends it.
func (w *world) run(dir string, i *agent.Identity) (stop func()) {
	w.t.Helper()
	node := i.TLS().Identity().ID
	a, err := agent.New(agent.Config{
		Cluster: cluster, Node: resource.NodeID(node), DataDir: dir, Coordinators: []string{"c1", "c2"}, Heartbeat: 20 * time.Second,
	}, agent.Deps{
		Discovered: discovered(w.t, node), Identity: i, Listener: w.listen(node), Address: node, Dialer: w.dial, Log: w.log,
		Usage: func(context.Context) (usage.Usage, error) { return usage.Usage{}, nil },
	})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	return sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Error(err)
		}
	})
}

// An agent runs for half a day on certificates that last an hour, over a rotation of
// the authority and of the gossip keys and an outage of every coordinator,
// without a restart. A session that ends with a certificate begins again at once.
func TestARunningAgentStaysCertified(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c1, c2 := w.coordinator("c1"), w.coordinator("c2")
		dir := t.TempDir()
		host := w.host(dir, "gpu-1", w.token(c1, enroll.TokenOptions{Nodes: "gpu-*"}))
		i := w.open(host)
		stop := w.run(dir, i)
		defer stop()

		lead, err := grpc.NewClient("passthrough:///gpu-1", append(c1.TLS().DialOptions(rpcauth.NamedNode()), grpc.WithAuthority("gpu-1"),
			grpc.WithContextDialer(w.dial))...)
		if err != nil {
			t.Fatal(err)
		}
		defer lead.Close()
		var session musterv1.Agent_SessionClient
		try := func(m *musterv1.LeaderMessage) error {
			_ = session.Send(m) // Recv tells why it failed
			for {
				answer, err := session.Recv()
				if err != nil || answer.GetHello() != nil || answer.GetOccupancy() != nil {
					return err
				}
			}
		}
		begin := func() {
			t.Helper()
			if session, err = musterv1.NewAgentClient(lead).Session(t.Context(), grpc.WaitForReady(true)); err == nil {
				err = try(&musterv1.LeaderMessage{Message: &musterv1.LeaderMessage_Hello{Hello: &musterv1.LeaderHello{Cluster: cluster, LeaderId: "c1", Epoch: 1}}})
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		begin()
		say := func(m *musterv1.LeaderMessage) {
			t.Helper()
			if try(m) != nil { // it ended with a certificate
				begin()
				if err := try(m); err != nil {
					t.Fatal(err)
				}
			}
		}
		good := func(when string, issuer *pki.Bundle) {
			t.Helper()
			leaf := i.TLS().Material().Chain[0]
			if time.Now().After(leaf.NotAfter) {
				t.Errorf("%s: its certificate is over", when)
			}
			if issuer != nil && !bytes.Equal(leaf.AuthorityKeyId, (*issuer)[len(*issuer)-1].SubjectKeyId) {
				t.Errorf("%s: its certificate is not by the newest authority", when)
			}
			say(&musterv1.LeaderMessage{Message: &musterv1.LeaderMessage_Resync{Resync: &musterv1.Resync{}}})
		}
		for range 4 {
			time.Sleep(3 * time.Hour)
			good("after three hours more", nil)
		}

		old := c1.Roots()[0]
		if _, err := c2.Rotate(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Second)
		roots := c1.Roots()
		good("after a rotation", &roots)
		if err := c1.Retire(t.Context(), fmt.Sprintf("%x", old.SubjectKeyId), false, nil); err != nil {
			t.Fatalf("the old authority is still needed: %v", err)
		}
		time.Sleep(30 * time.Second)
		good("after the old authority's end", nil)
		if len(i.TLS().Material().Roots) != 1 {
			t.Errorf("it trusts %d authorities", len(i.TLS().Material().Roots))
		}

		fresh := []byte("a key of AES-256 has 32 bytes...") // serf keys -install and -use on a coordinator, which the agent missed
		if err := c1.ChangeKeys(t.Context(), func(keys [][]byte) ([][]byte, error) {
			keys, err := gossip.InstallKey(keys, fresh)
			if err != nil {
				return nil, err
			}
			return gossip.UseKey(keys, fresh)
		}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Second)
		if got := i.Keyring().Keys(); len(got) != 2 || !bytes.Equal(got[0], fresh) {
			t.Errorf("the agent has %d gossip keys, or another first one", len(got))
		}

		w.cut("c1", true)
		w.cut("c2", true)
		time.Sleep(30 * time.Minute)
		good("coordinators away", nil)
		w.cut("c1", false)
		w.cut("c2", false)
		time.Sleep(2 * time.Hour)
		good("coordinators back", nil)

		stop()
		again := w.open(host) // what is on disk is the newest
		if !again.TLS().Material().Chain[0].Equal(i.TLS().Material().Chain[0]) || len(again.Keyring().Keys()) != 2 {
			t.Error("a restart brings back something older")
		}
	})
}

// A certificate that ran out while no coordinator could be reached is replaced
// as soon as an operator leaves a token; the agent goes on all the while.
func TestARunningAgentIsRescuedByAToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c1 := w.coordinator("c1")
		dir := t.TempDir()
		host := w.host(dir, "gpu-1", w.token(c1, enroll.TokenOptions{Nodes: "gpu-*"}))
		i := w.open(host)
		stop := w.run(dir, i)
		defer stop()
		w.stops["c1"]()
		time.Sleep(3 * certTTL)
		if time.Now().Before(i.TLS().Material().Chain[0].NotAfter) {
			t.Fatal("it was renewed although nobody could be reached")
		}
		defer w.serve("c1", c1)()
		time.Sleep(5 * time.Minute)
		if time.Now().Before(i.TLS().Material().Chain[0].NotAfter) {
			t.Fatal("a certificate that is over was renewed")
		}
		write(t, host.TokenFile, w.token(c1, enroll.TokenOptions{Nodes: "gpu-1", Replace: true}))
		time.Sleep(5 * time.Minute)
		if time.Now().After(i.TLS().Material().Chain[0].NotAfter) {
			t.Error("the token did not help")
		}
	})
}
