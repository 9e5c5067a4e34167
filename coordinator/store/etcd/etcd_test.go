package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/coordinator/store/etcd"
	"github.com/musterd/muster/coordinator/store/storetest"
)

// patience bounds every start; only a broken server uses it up.
const patience = 20 * time.Second

func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func openEmbedded(t testing.TB, dir string, unsafeNoFsync bool) *etcd.Store {
	t.Helper()
	s, err := etcd.Embed(within(t), etcd.EmbedConfig{Dir: dir, UnsafeNoFsync: unsafeNoFsync})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func connect(t testing.TB, c etcd.Config, wantLimit int) *etcd.Store {
	t.Helper()
	s, err := etcd.Connect(within(t), c)
	if err != nil {
		t.Fatal(err)
	}
	if s.MaxTxnOps() != wantLimit {
		t.Errorf("found a limit of %d operations, want %d", s.MaxTxnOps(), wantLimit)
	}
	return s
}

func TestContractEmbedded(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) store.Store { return openEmbedded(t, t.TempDir(), true) })
}

func TestContractExternal(t *testing.T) {
	t.Parallel()
	endpoint := serve(t, func(c *embed.Config) { c.MaxTxnOps = 777 })
	storetest.Run(t, func(t *testing.T) store.Store {
		return connect(t, etcd.Config{Endpoints: []string{endpoint}, RequestTimeout: patience}, 777)
	})
}

// TestTheSearchForALimitIsQuiet: it is found by transactions that the server
// refuses.
func TestTheSearchForALimitIsQuiet(t *testing.T) {
	t.Parallel()
	endpoint := serve(t, func(c *embed.Config) { c.MaxTxnOps = 777 })
	var log journal
	s := connect(t, etcd.Config{Endpoints: []string{endpoint}, RequestTimeout: patience, Logger: log.logger()}, 777)
	text := log.String()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if text != "" {
		t.Errorf("it logs:\n%s", text)
	}
}

func TestContractDebianServer(t *testing.T) {
	t.Parallel()
	endpoint := runDebian(t)
	storetest.Run(t, func(t *testing.T) store.Store {
		return connect(t, etcd.Config{Endpoints: []string{endpoint}, RequestTimeout: patience}, 128)
	})
}

// serve runs a server with a client listener on a free loopback port.
func serve(t testing.TB, change func(*embed.Config)) (endpoint string) {
	t.Helper()
	c := embed.NewConfig()
	c.Name = "external"
	c.Dir = t.TempDir()
	c.ListenPeerUrls = nil
	c.ListenClientUrls = []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	c.TickMs, c.ElectionMs = 20, 100
	c.UnsafeNoFsync = true
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	change(c)
	server, err := embed.StartEtcd(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	select {
	case <-server.Server.ReadyNotify():
	case <-within(t).Done():
		t.Fatal("the server does not become ready")
	}
	return c.ListenClientUrls[0].Scheme + "://" + server.Clients[0].Addr().String()
}

// runDebian starts the distribution's etcd-server, an older peer.
func runDebian(t *testing.T) (endpoint string) {
	path, err := exec.LookPath("etcd")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("no etcd in PATH: install Debian's etcd-server")
		}
		t.Skip("no etcd in PATH: install Debian's etcd-server to run the contract against an older server")
	}
	client, peer := freeAddress(t), freeAddress(t)
	cmd := exec.Command(path, "--name", "debian", "--data-dir", filepath.Join(t.TempDir(), "data"),
		"--listen-client-urls", "http://"+client, "--advertise-client-urls", "http://"+client,
		"--listen-peer-urls", "http://"+peer, "--initial-advertise-peer-urls", "http://"+peer,
		"--initial-cluster", "debian=http://"+peer, "--heartbeat-interval", "20", "--election-timeout", "100")
	var log strings.Builder
	cmd.Stderr, cmd.Stdout = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	})
	return "http://" + client
}

// freeAddress is on a host of its own below 127.0.0.0/8: until the server takes
// the port, no outgoing connection and no other test does.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", fmt.Sprintf("127.%d.%d.%d:0", 128+rand.IntN(64), rand.IntN(256), 1+rand.IntN(254)))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

func TestConnectRefusals(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	const endpoint = "127.0.0.1:1" // which nobody takes in between
	_, err := etcd.Connect(ctx, etcd.Config{Endpoints: []string{endpoint}})
	if err == nil || !strings.Contains(err.Error(), endpoint) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("nobody listens: %v", err)
	}
	if _, err := etcd.Connect(ctx, etcd.Config{}); err == nil {
		t.Error("no endpoints: no error")
	}
}

// TestOutcomeUnknown: a server that goes away in the middle leaves the outcome
// unknown, and a watch waits for it to come back.
func TestOutcomeUnknown(t *testing.T) {
	t.Parallel()
	endpoint := serve(t, func(*embed.Config) {})
	proxy := newProxy(t, strings.TrimPrefix(endpoint, "http://"))
	s := connect(t, etcd.Config{Endpoints: []string{proxy.addr}, RequestTimeout: patience}, 128)
	defer func() { _ = s.Close() }()
	insist(t, s, "1")
	watched := s.Watch(t.Context(), "/registry/k", store.WatchOptions{From: 1})
	follow(t, watched, "1")
	err := cutOff(t, s, proxy, 0)
	for n := range 10 {
		if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, record.ErrUnknownOutcome) {
			break
		}
		// Nothing was sent: the monitor had connected, so the past came first.
		err = cutOff(t, s, proxy, time.Duration(n+1)*300*time.Millisecond)
	}
	if !errors.Is(err, record.ErrUnknownOutcome) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("answer cut off: %v", err)
	}
	insist(t, s, "again") // connections were dropped: refused or unknown until there is a new one
	follow(t, watched, "again")
}

// cutOff writes without getting an answer, once writes have been answered for a while.
func cutOff(t *testing.T, s *etcd.Store, p *proxy, answered time.Duration) error {
	t.Helper()
	insist(t, s, "1")
	for begun := time.Now(); time.Since(begun) < answered; { // until all other clients have connected
		insist(t, s, "1")
	}
	p.mute(true)
	defer p.mute(false)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	return put(ctx, s, "2")
}

// plain changes nothing about a server.
func plain(*embed.Config) {}
