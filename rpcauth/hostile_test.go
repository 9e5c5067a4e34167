package rpcauth_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/musterd/muster/netlimit"
	"github.com/musterd/muster/pki"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/rpcauth"
)

// busy answers no Register before its context ends, and counts the calls.
type busy struct {
	openCoordinator
	open, most, all atomic.Int64
}

func (b *busy) Register(ctx context.Context, _ *musterv1.RegisterRequest) (*musterv1.RegisterResponse, error) {
	b.all.Add(1)
	if n := b.open.Add(1); n > b.most.Load() {
		b.most.Store(n)
	}
	<-ctx.Done()
	b.open.Add(-1)
	return nil, ctx.Err()
}

// messages counts the messages that a server has read.
type messages struct{ read atomic.Int64 }

func (*messages) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (*messages) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (*messages) HandleConn(context.Context, stats.ConnStats)                       {}
func (m *messages) HandleRPC(_ context.Context, s stats.RPCStats) {
	if _, ok := s.(*stats.InPayload); ok {
		m.read.Add(1)
	}
}

// fortress is a coordinator's server as the daemon builds it, on a loopback port.
type fortress struct {
	address string
	ca      ca
	busy    *busy
	read    *messages
}

func newFortress(t *testing.T) *fortress {
	t.Helper()
	f := &fortress{ca: newCA(t), busy: &busy{}, read: &messages{}}
	raw, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	options := append(rpcauth.Server(f.ca.party(pki.Coordinator, "c1"), rpcauth.CoordinatorRules()), rpcauth.Limits()...)
	server := grpc.NewServer(append(options, grpc.StatsHandler(f.read))...)
	services := rpcauth.Register(server)
	musterv1.RegisterCoordinatorServer(services, f.busy)
	musterv1.RegisterEnrollmentServer(services, f.busy)
	go server.Serve(netlimit.New(raw, "test", rpcauth.CoordinatorConnections(), nil))
	t.Cleanup(server.Stop)
	f.address = raw.Addr().String()
	return f
}

// config is a client's TLS, with a certificate or without.
func (f *fortress) config(m rpcauth.Material) *tls.Config {
	c := &tls.Config{MinVersion: tls.VersionTLS13, InsecureSkipVerify: true, NextProtos: []string{"h2"}}
	if m.Key != nil {
		c.Certificates = []tls.Certificate{{Certificate: pki.Raw(m.Chain), PrivateKey: m.Key}}
	}
	return c
}

func (f *fortress) node(id string) rpcauth.Material {
	return f.ca.material(pki.Identity{Cluster: "c", Role: pki.Node, ID: id}, time.Now())
}

// dial returns a gRPC connection of a client with a certificate or without.
func (f *fortress) dial(t *testing.T, m rpcauth.Material) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+f.address, grpc.WithTransportCredentials(credentials.NewTLS(f.config(m))))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// attacker speaks HTTP/2 by hand.
type attacker struct {
	*http2.Framer
	conn   *tls.Conn
	header bytes.Buffer
	hpack  *hpack.Encoder
	next   uint32
}

func (f *fortress) attack(t *testing.T, m rpcauth.Material) *attacker {
	t.Helper()
	conn, err := tls.Dial("tcp", f.address, f.config(m))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return speak(conn)
}

// speak begins to speak HTTP/2.
func speak(conn *tls.Conn) *attacker {
	a := &attacker{Framer: http2.NewFramer(conn, conn), conn: conn, next: 1}
	a.hpack = hpack.NewEncoder(&a.header)
	_, _ = io.WriteString(conn, http2.ClientPreface) // a closed connection is found below
	_ = a.WriteSettings()
	return a
}

// open begins a call and announces a message; extra are more header fields.
func (a *attacker) open(method string, announced uint32, extra ...hpack.HeaderField) (stream uint32, err error) {
	a.header.Reset()
	for _, h := range append([]hpack.HeaderField{
		{Name: ":method", Value: "POST"}, {Name: ":scheme", Value: "https"}, {Name: ":path", Value: method}, {Name: ":authority", Value: "c"},
		{Name: "content-type", Value: "application/grpc"}, {Name: "te", Value: "trailers"},
	}, extra...) {
		_ = a.hpack.WriteField(h)
	}
	stream, a.next = a.next, a.next+2
	if err := a.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: a.header.Bytes(), EndHeaders: true}); err != nil || announced == 0 {
		return stream, err
	}
	return stream, a.WriteData(stream, false, binary.BigEndian.AppendUint32([]byte{0}, announced))
}

// drain reads the server's bytes, so that it never waits for the attacker. The
// channel is closed at the end of the connection.
func (a *attacker) drain() <-chan struct{} {
	ended := make(chan struct{})
	go func() { defer close(ended); _, _ = io.Copy(io.Discard, a.conn) }()
	return ended
}

// heap is the memory in use, in bytes.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// grown fails if more than most bytes are in use than before.
func grown(t *testing.T, before uint64, most int) {
	t.Helper()
	if now := heap(); now > before+uint64(most) {
		t.Errorf("%d MiB more are in use, want at most %d", (now-before)>>20, most>>20)
	}
}

const (
	registerMethod = musterv1.Coordinator_Register_FullMethodName
	enrollMethod   = musterv1.Enrollment_Enroll_FullMethodName
)

// One unproven peer announces 200 messages of 16 MiB on each of 60 connections
// and sends as much of them as is taken. Nothing is read, and little is held.
func TestAnUnprovenPeerHoldsLittle(t *testing.T) {
	for name, method := range map[string]string{"a call that is not for it": registerMethod, "a call that is": enrollMethod} {
		t.Run(name, func(t *testing.T) {
			f := newFortress(t)
			before := heap()
			var ends []<-chan struct{}
			for range 60 {
				a := f.attack(t, rpcauth.Material{})
				ends = append(ends, a.drain())
				piece := make([]byte, 16<<10)
				var streams []uint32
				for range 200 {
					stream, err := a.open(method, 16<<20)
					if err != nil {
						break
					}
					streams = append(streams, stream)
				}
				for i := range 64 {
					if len(streams) == 0 || a.WriteData(streams[i%len(streams)], false, piece) != nil {
						break
					}
				}
			}
			grown(t, before, 64<<20)
			for _, ended := range ends { // at 16 refused calls, or at 96 KiB
				<-ended
			}
			if f.read.read.Load() > 0 || f.busy.all.Load() > 0 {
				t.Errorf("%d messages were read, %d calls handled", f.read.read.Load(), f.busy.all.Load())
			}
			if _, err := musterv1.NewEnrollmentClient(f.dial(t, rpcauth.Material{})).Enroll(t.Context(), &musterv1.EnrollRequest{}); err != nil {
				t.Errorf("an honest host cannot enroll any more: %v", err)
			}
		})
	}
}

// An enrolled host opens 20,000 calls on one connection, or opens and resets
// them: few are open at a time, and another host's are answered.
func TestAHostileHostOpensFewCalls(t *testing.T) {
	for name, resets := range map[string]bool{"that stay": false, "that are reset at once": true} {
		t.Run(name, func(t *testing.T) {
			f := newFortress(t)
			before := heap()
			a := f.attack(t, f.node("n1"))
			ended := a.drain()
			for range 20_000 {
				stream, err := a.open(registerMethod, 0)
				if err == nil {
					err = a.WriteData(stream, true, []byte{0, 0, 0, 0, 0})
				}
				if err == nil && resets {
					err = a.WriteRSTStream(stream, http2.ErrCodeCancel)
				}
				if err != nil {
					break
				}
			}
			if !resets {
				<-ended // many calls were refused
			}
			grown(t, before, 64<<20)
			if most := f.busy.most.Load(); most > 64 {
				t.Errorf("%d calls were open at a time", most)
			}
			if _, err := musterv1.NewCoordinatorClient(f.dial(t, f.node("n2"))).ReadNode(t.Context(), &musterv1.ReadNodeRequest{NodeId: "n2"}); err != nil {
				t.Errorf("an honest host is not answered: %v", err)
			}
		})
	}
}

// A call that is not for its caller is refused by its headers: the message, which
// may be large, is never read. The deadline does not matter.
func TestCallsAreRefusedBeforeTheirMessageIsRead(t *testing.T) {
	f := newFortress(t)
	operator := f.ca.material(pki.Identity{Cluster: "c", Role: pki.Operator, ID: "op"}, time.Now())
	request := &musterv1.RegisterRequest{NodeId: strings.Repeat("n", 1<<20)}
	for name, c := range map[string]struct {
		who     rpcauth.Material
		within  time.Duration
		refused codes.Code
	}{
		"no certificate, a short deadline":      {rpcauth.Material{}, 9 * time.Second, codes.Unauthenticated},
		"no certificate, a long deadline":       {rpcauth.Material{}, time.Hour, codes.Unauthenticated},
		"an operator, a short deadline":         {operator, 9 * time.Second, codes.PermissionDenied},
		"an operator, a long deadline":          {operator, time.Hour, codes.PermissionDenied},
		"an operator without a deadline at all": {operator, 0, codes.PermissionDenied},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			if c.within > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, c.within)
				defer cancel()
			}
			_, err := musterv1.NewCoordinatorClient(f.dial(t, c.who)).Register(ctx, request)
			if status.Code(err) != c.refused {
				t.Errorf("got %v, want %s", err, c.refused)
			}
			if n := f.read.read.Load(); n != 0 {
				t.Errorf("%d messages were read", n)
			}
		})
	}
}

// Headers that grow beyond 32 KiB, by one frame or by CONTINUATION frames without
// end, end their call or their connection.
func TestHeadersAreBounded(t *testing.T) {
	f := newFortress(t)
	before := heap()
	for range 20 {
		a := f.attack(t, f.node("n1"))
		ended := a.drain()
		_ = a.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0x82}})
		junk := make([]byte, 16<<10)
		for range 100_000 {
			if a.WriteContinuation(1, false, junk) != nil {
				break
			}
		}
		<-ended
	}
	grown(t, before, 64<<20)
	a := f.attack(t, f.node("n1"))
	ended := a.drain()
	if _, err := a.open(registerMethod, 0, hpack.HeaderField{Name: "x", Value: strings.Repeat("x", 40<<10)}); err == nil {
		_ = a.WriteData(1, true, []byte{0, 0, 0, 0, 0})
	}
	_ = a.conn.CloseWrite()
	<-ended
	if n := f.busy.all.Load(); n != 0 {
		t.Errorf("%d calls with too large headers were handled", n)
	}
}

// A connection that proves nothing is cut after 20 s; one that is proven stays.
func TestAnIdleUnprovenConnectionIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCA(t)
		l := bufconn.Listen(64 << 10)
		server := grpc.NewServer(append(rpcauth.Server(c.party(pki.Coordinator, "c1"), rpcauth.CoordinatorRules()), rpcauth.Limits()...)...)
		go server.Serve(netlimit.New(l, "test", rpcauth.CoordinatorConnections(), nil))
		defer server.Stop()
		f := &fortress{ca: c}
		dial := func(m rpcauth.Material) *attacker {
			raw, err := l.DialContext(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return speak(tls.Client(raw, f.config(m)))
		}
		idle, known := dial(rpcauth.Material{}), dial(f.node("n1"))
		began := time.Now()
		stays := known.drain()
		<-idle.drain()
		if took := time.Since(began); took != 20*time.Second {
			t.Errorf("cut after %s, want 20s", took)
		}
		synctest.Wait()
		select {
		case <-stays:
			t.Error("a proven connection was cut")
		default:
		}
		_ = known.conn.Close()
		<-stays
	})
}

// A peer that never finishes its handshake is cut after five seconds.
func TestASlowHandshakeIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := bufconn.Listen(1 << 10)
		server := grpc.NewServer(append(rpcauth.Server(newCA(t).party(pki.Node, "n1"), rpcauth.AgentRules()), rpcauth.Limits()...)...)
		go server.Serve(l)
		defer server.Stop()
		conn, err := l.DialContext(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_, _ = conn.Write([]byte{22, 3, 1}) // the beginning of a TLS record
		began := time.Now()
		if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("got %v, want the end of the connection", err)
		}
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("cut after %s, want 5s", took)
		}
	})
}

// A host that proves itself again and again takes few connections.
func TestAHostHasFewConnections(t *testing.T) {
	f := newFortress(t)
	refused := 0
	for range 12 {
		a := f.attack(t, f.node("n1"))
		if frame, err := a.ReadFrame(); err != nil {
			refused++
		} else if _, ok := frame.(*http2.SettingsFrame); !ok {
			t.Errorf("the server begins with %T", frame)
		}
	}
	if refused != 4 {
		t.Errorf("%d of 12 connections were refused, want 4", refused)
	}
	if _, err := musterv1.NewCoordinatorClient(f.dial(t, f.node("n2"))).ReadNode(t.Context(), &musterv1.ReadNodeRequest{NodeId: "n2"}); err != nil {
		t.Errorf("another host is not answered: %v", err)
	}
}

// Without TLS a connection is proven by the token of its first call.
func TestWithoutTLSCallsAreRefusedByTheirToken(t *testing.T) {
	token, err := rpcauth.NewToken(secret)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	read, handler := &messages{}, &busy{}
	server := grpc.NewServer(append(append(rpcauth.ServerOptions(token), rpcauth.Limits()...), grpc.StatsHandler(read))...)
	musterv1.RegisterCoordinatorServer(rpcauth.Register(server), handler)
	go server.Serve(netlimit.New(l, "test", rpcauth.CoordinatorConnections(), nil))
	t.Cleanup(server.Stop)
	dial := func(secret string) musterv1.CoordinatorClient {
		token, err := rpcauth.NewToken(secret)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := grpc.NewClient("passthrough:///"+l.Addr().String(), token.DialOptions(rpcauth.AnyCoordinator())...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return musterv1.NewCoordinatorClient(conn)
	}
	large := &musterv1.ReadNodeRequest{NodeId: strings.Repeat("n", 1<<20)}
	for _, within := range []time.Duration{9 * time.Second, time.Hour} {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		if _, err := dial(strings.Repeat("x", 20)).ReadNode(ctx, large); status.Code(err) != codes.Unauthenticated || read.read.Load() != 0 {
			t.Errorf("within %s: got %v, want Unauthenticated, and %d messages were read", within, err, read.read.Load())
		}
		cancel()
	}
	// The handler has no certificate to look at, and reports that: it was
	// reached.
	if _, err := dial(secret).ReadNode(t.Context(), large); status.Code(err) != codes.Unknown || read.read.Load() != 1 {
		t.Errorf("the token's bearer gets %v, and %d messages were read", err, read.read.Load())
	}
	if _, err := dial(secret).ReadNode(t.Context(), &musterv1.ReadNodeRequest{NodeId: strings.Repeat("n", 3<<20)}); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a message of 3 MiB: got %v, want ResourceExhausted", err)
	}
}
