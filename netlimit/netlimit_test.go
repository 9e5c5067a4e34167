package netlimit_test

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterd/muster/netlimit"
)

// source is a listener of connections in memory, from any address.
type source struct {
	conns chan net.Conn
	once  sync.Once
	ended chan struct{}
}

func newSource() *source { return &source{conns: make(chan net.Conn), ended: make(chan struct{})} }

func (s *source) Accept() (net.Conn, error) {
	select {
	case c := <-s.conns:
		return c, nil
	case <-s.ended:
		return nil, net.ErrClosed
	}
}

func (s *source) Close() error   { s.once.Do(func() { close(s.ended) }); return nil }
func (s *source) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1} }

// remote is a connection from an address.
type remote struct {
	net.Conn
	address net.Addr
}

func (r remote) RemoteAddr() net.Addr { return r.address }

// dial connects from an address and returns the client's end.
func (s *source) dial(from string) net.Conn {
	ours, theirs := net.Pipe()
	address, err := net.ResolveTCPAddr("tcp", from)
	if err != nil {
		panic(err)
	}
	s.conns <- remote{theirs, address}
	return ours
}

// server accepts all that the limits let through.
type server struct {
	*source
	*netlimit.Listener
	accepted chan *netlimit.Conn
}

func serve(t *testing.T, limits netlimit.Limits, log *slog.Logger) *server {
	s := newSource()
	v := &server{source: s, Listener: netlimit.New(s, "test", limits, log), accepted: make(chan *netlimit.Conn, 1000)}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := v.Listener.Accept()
			if err != nil {
				return
			}
			v.accepted <- netlimit.Of(c)
		}
	})
	t.Cleanup(func() {
		_ = s.Close()
		wg.Wait()
		close(v.accepted)
		for c := range v.accepted {
			_ = c.Close()
		}
	})
	return v
}

// closed reports whether the other end has closed a connection.
func closed(c net.Conn) bool {
	_ = c.SetReadDeadline(time.Now().Add(time.Millisecond))
	_, err := c.Read(make([]byte, 1))
	return errors.Is(err, io.EOF)
}

// accept dials and returns both ends; nil where the connection was closed.
func (v *server) connect(from string) (net.Conn, *netlimit.Conn) {
	client := v.dial(from)
	synctest.Wait()
	select {
	case c := <-v.accepted:
		return client, c
	default:
		return client, nil
	}
}

func TestAtALimitTheOldestUnprovenConnectionIsClosed(t *testing.T) {
	for name, c := range map[string]struct {
		limits netlimit.Limits
		before []string // connect, and stay unproven
		proven []string // connect, and prove, before those
		from   string   // then connects
		closed int      // which of before; none or, with a reason, the new one: -1
		reason string   // "" = no limit is reached
	}{
		"there is room":                         {netlimit.Limits{Total: 2, Unproven: 2, PerAddress: 2}, []string{"192.0.2.9:1"}, nil, "192.0.2.9:2", -1, ""},
		"all are taken, one by an unproven":     {netlimit.Limits{Total: 2}, []string{"192.0.2.9:1"}, []string{"192.0.2.8:1"}, "192.0.2.7:1", 0, "total"},
		"all are taken by the proven":           {netlimit.Limits{Total: 1}, nil, []string{"192.0.2.8:1"}, "192.0.2.7:1", -1, "total"},
		"all for the unproven are taken":        {netlimit.Limits{Total: 9, Unproven: 2}, []string{"192.0.2.9:1", "192.0.2.8:1"}, nil, "192.0.2.7:1", 0, "unproven"},
		"the proven do not count as unproven":   {netlimit.Limits{Total: 9, Unproven: 1, PerAddress: 1}, nil, []string{"192.0.2.9:1", "192.0.2.9:2"}, "192.0.2.9:3", -1, ""},
		"those of the address are taken":        {netlimit.Limits{Unproven: 3, PerAddress: 1}, []string{"192.0.2.8:1", "192.0.2.9:1"}, nil, "192.0.2.9:2", 1, "address"},
		"those of another address are taken":    {netlimit.Limits{PerAddress: 1}, []string{"192.0.2.9:1"}, nil, "192.0.2.8:2", -1, ""},
		"IPv6 counts by network":                {netlimit.Limits{PerAddress: 1}, []string{"[2001:db8::1]:1"}, nil, "[2001:db8::ffff]:1", 0, "address"},
		"another IPv6 network":                  {netlimit.Limits{PerAddress: 1}, []string{"[2001:db8::1]:1"}, nil, "[2001:db8:0:1::1]:1", -1, ""},
		"IPv4 in IPv6 is the IPv4 address":      {netlimit.Limits{PerAddress: 1}, []string{"192.0.2.9:1"}, nil, "[::ffff:192.0.2.9]:2", 0, "address"},
		"processes of this host share loopback": {netlimit.Limits{Unproven: 3, PerAddress: 1}, []string{"127.0.0.1:1", "127.0.0.1:2"}, nil, "127.0.0.1:3", -1, ""},
		"but not more than all the unproven":    {netlimit.Limits{Unproven: 2, PerAddress: 1}, []string{"127.0.0.1:1", "[::1]:2"}, nil, "127.0.0.1:3", 0, "unproven"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := serve(t, c.limits, nil)
				open := func(from string) (net.Conn, *netlimit.Conn) {
					client, got := v.connect(from)
					if got == nil {
						t.Fatalf("%s is refused", from)
					}
					t.Cleanup(func() { _ = got.Close() })
					return client, got
				}
				for _, from := range c.proven {
					client, conn := open(from)
					if err := conn.Prove("node", 0); err != nil {
						t.Fatal(err)
					}
					defer func() {
						if closed(client) {
							t.Error("a proven connection is closed")
						}
					}()
				}
				var clients []net.Conn
				for _, from := range c.before {
					client, _ := open(from)
					clients = append(clients, client)
				}
				last, got := v.connect(c.from)
				if got != nil {
					t.Cleanup(func() { _ = got.Close() })
				}
				if refused := c.reason != "" && c.closed < 0; (got == nil) != refused || closed(last) != refused {
					t.Errorf("the new connection is refused: %t, want %t", got == nil, refused)
				}
				for i, client := range clients {
					if closed(client) != (i == c.closed) {
						t.Errorf("connection %d is closed: %t", i, closed(client))
					}
				}
				if c.reason != "" && count(t, v, c.reason) != 1 {
					t.Error("the metric does not show it")
				}
			})
		})
	}
}

// While a flood keeps every place, a peer that proves itself at once gets in, and
// stays.
func TestAFloodDoesNotKeepAnHonestPeerOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := serve(t, netlimit.Limits{Total: 20, Unproven: 8, PerAddress: 4}, nil)
		for range 50 {
			v.connect("127.0.0.1:1")
		}
		client, c := v.connect("127.0.0.1:2")
		if c == nil {
			t.Fatal("refused")
		}
		for range 7 {
			v.connect("127.0.0.1:1") // during its handshake
		}
		if err := c.Prove("node", 1); err != nil || !c.Proven() {
			t.Fatalf("not proven: %v", err)
		}
		for range 50 {
			v.connect("127.0.0.1:1")
		}
		if closed(client) {
			t.Error("the honest peer is cut")
		}
		if n := value(t, v, "muster_connections", "unproven"); n != 8 {
			t.Errorf("%v unproven connections, want 8", n)
		}
		_ = c.Close()
	})
}

// count reads the metric of one reason.
func count(t *testing.T, v *server, reason string) float64 {
	t.Helper()
	return value(t, v, "muster_connections_closed_total", reason)
}

// value reads the metric with a label's value.
func value(t *testing.T, v *server, name, label string) float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(v.Collector("muster", prometheus.Labels{"node": "n1"}))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if f.GetName() == name && l.GetValue() == label {
					return m.GetCounter().GetValue() + m.GetGauge().GetValue()
				}
			}
		}
	}
	t.Fatalf("no metric %s for %q", name, label)
	return 0
}

func TestAConnectionThatIsClosedGivesItsPlaceBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := serve(t, netlimit.Limits{Total: 1, Unproven: 1, PerAddress: 1}, nil)
		for i := range 10 {
			_, c := v.connect("192.0.2.9:1")
			if c == nil {
				t.Fatalf("connection %d is refused", i)
			}
			if i%2 == 1 {
				if err := c.Prove("node", 1); err != nil {
					t.Fatal(err)
				}
			}
			_ = c.Close()
			_ = c.Close() // a second time, as net/http does
		}
		for _, state := range []string{"proven", "unproven"} {
			if n := value(t, v, "muster_connections", state); n != 0 {
				t.Errorf("%v %s connections are counted", n, state)
			}
		}
	})
}

func TestAnUnprovenConnectionIsShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := serve(t, netlimit.Limits{ProveWithin: 20 * time.Second}, nil)
		idle, _ := v.connect("192.0.2.9:1")
		known, c := v.connect("192.0.2.9:2")
		time.Sleep(19 * time.Second)
		if closed(idle) {
			t.Fatal("cut too early")
		}
		if err := c.Prove("node", 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if !closed(idle) || count(t, v, "late") != 1 {
			t.Error("an idle connection without a proof stays")
		}
		if closed(known) {
			t.Error("a proven connection was cut")
		}
		_ = c.Close()
	})
}

func TestAnUnprovenConnectionIsSmall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := serve(t, netlimit.Limits{UnprovenBytes: 1000}, nil)
		for _, proves := range []bool{false, true} {
			client, c := v.connect("192.0.2.9:1")
			go func() { _, _ = client.Write(make([]byte, 5000)) }()
			if n, err := io.ReadFull(c, make([]byte, 1000)); err != nil {
				t.Fatalf("%d bytes: %v", n, err)
			}
			if proves {
				if err := c.Prove("node", 0); err != nil {
					t.Fatal(err)
				}
				if n, err := io.ReadFull(c, make([]byte, 4000)); err != nil {
					t.Errorf("after the proof: %d bytes: %v", n, err)
				}
				_ = c.Close()
				continue
			}
			if n, err := c.Read(make([]byte, 1)); err == nil || n > 0 {
				t.Errorf("%d bytes more than may come", n)
			}
			if !closed(client) || count(t, v, "bytes") != 1 {
				t.Error("the connection is still open")
			}
		}
	})
}

func TestAPeerHasFewConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := serve(t, netlimit.Limits{}, nil)
		var open []*netlimit.Conn
		for i := range 4 {
			_, c := v.connect("192.0.2.9:1")
			open = append(open, c)
			err := c.Prove("muster://c/node/n1", 3)
			if (err == nil) != (i < 3) || err == nil && !c.Proven() {
				t.Errorf("connection %d: %v", i, err)
			}
		}
		_ = open[0].Close()
		if err := open[3].Prove("muster://c/node/n1", 3); err != nil {
			t.Errorf("a place is free: %v", err)
		}
		client, last := v.connect("192.0.2.9:1")
		if err := last.Prove("muster://c/node/n1", 3); err == nil || last.Proven() || closed(client) {
			t.Errorf("one more is proven, or closed: %v", err)
		}
		last.CloseFor(netlimit.OverPeer)
		last.CloseFor(netlimit.OverPeer)
		if !closed(client) || count(t, v, "peer") != 1 {
			t.Error("it is not closed, or not counted once")
		}
		for _, c := range open {
			_ = c.Close()
		}
	})
}

func TestAConnectionWithManyRefusedCallsIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := serve(t, netlimit.Limits{Refusals: 3}, nil)
		client, c := v.connect("192.0.2.9:1")
		for range 3 {
			c.Refused()
		}
		if closed(client) {
			t.Fatal("closed too early")
		}
		c.Refused()
		c.Refused()
		if !closed(client) || count(t, v, "refused_calls") != 1 {
			t.Error("the connection is still open")
		}
	})
}

// A flood of connections does not become a flood of log lines.
func TestRefusalsAreLoggedRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text strings.Builder
		v := serve(t, netlimit.Limits{Total: 1}, slog.New(slog.NewTextHandler(&text, nil)))
		_, first := v.connect("192.0.2.9:1")
		if err := first.Prove("node", 0); err != nil {
			t.Fatal(err)
		}
		for range 100 {
			v.connect("192.0.2.9:1")
		}
		time.Sleep(11 * time.Second)
		v.connect("192.0.2.9:1")
		if n := strings.Count(text.String(), "connection_closed"); n != 2 || !strings.Contains(text.String(), "closed=100") {
			t.Errorf("%d lines: %s", n, text.String())
		}
		_ = first.Close()
	})
}

// A nil Conn, of a listener without limits, has none.
func TestAConnectionWithoutLimits(t *testing.T) {
	ours, theirs := net.Pipe()
	defer ours.Close()
	defer theirs.Close()
	c := netlimit.Of(ours)
	c.Refused()
	c.CloseFor(netlimit.OverPeer)
	if err := c.Prove("node", 1); err != nil || c != nil || !c.Proven() || c.Address() != "" {
		t.Errorf("%v, %v", c, err)
	}
}

// The Go runtime raises the soft limit of file descriptors, on which budgets
// rest.
func TestBudgetsLeaveDescriptorsToOthers(t *testing.T) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if limit.Cur != limit.Max {
		t.Errorf("soft limit %d, hard limit %d: the runtime has not raised it", limit.Cur, limit.Max)
	}
	if got := netlimit.Budget(1 << 30); uint64(got) > limit.Cur/4 && got != 64 {
		t.Errorf("a budget of %d of %d descriptors", got, limit.Cur)
	}
	if got := netlimit.Budget(100); got != 100 && limit.Cur >= 400 {
		t.Errorf("a budget of %d, want 100", got)
	}
}
