package grpcapi

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/follow"
	"github.com/musterd/muster/coordinator/gate"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/rest"
	"github.com/musterd/muster/coordinator/store/mem"
	apiv1 "github.com/musterd/muster/proto/muster/api/v1"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/resttest"
)

// stallDoor is a coordinator with both codecs on a TCP port, whose gate bounds readers.
type stallDoor struct {
	address string
	cluster *resttest.Cluster
	metrics *prometheus.Registry
}

func openStallDoor(t *testing.T, back *mem.Store) stallDoor {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	f := follow.New(follow.Options{
		Store: back, Log: quiet, Check: time.Second, Leads: func() bool { return false },
		Moved: func(resource.Revision) {}, Registered: func(follow.News) {}, Forget: func(context.Context, *record.WentBackError) {},
	})
	d := stallDoor{cluster: resttest.New(time.Now), metrics: prometheus.NewRegistry()}
	g := gate.New(&gate.Rates{})
	g.Readers = gate.NewReaders(d.metrics, quiet)
	public := (&API{Service: d.cluster, Watches: followed{f}, Authenticator: bearers{}, AnswerBy: rest.AnswerBy, Gate: g}).NewServer()
	server := rest.NewServer(rest.WithGRPC(public, rest.NewHandler(rest.Config{Service: d.cluster, Authenticator: bearers{}, Watches: followed{f}, Gate: g})), quiet)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d.address = listener.Addr().String()
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { f.Run(ctx) })
	running.Go(func() { _ = server.Serve(smallBuffers{listener}) })
	t.Cleanup(func() {
		_ = server.Close()
		public.Stop()
		stop()
		running.Wait()
	})
	return d
}

// smallBuffers makes the kernel's buffers of accepted connections small.
type smallBuffers struct{ net.Listener }

func (l smallBuffers) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if tcp, is := c.(*net.TCPConn); is {
		_ = tcp.SetWriteBuffer(4 << 10)
	}
	return c, err
}

// stalling is a connection whose reader stops where it is told to.
type stalling struct {
	net.Conn
	stops, goes chan struct{} // closed: reading stops, reading goes on
}

func dialStalling(ctx context.Context, address string) (*stalling, error) {
	dialer := net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4<<10) })
	}}
	c, err := dialer.DialContext(ctx, "tcp", address)
	return &stalling{c, make(chan struct{}), make(chan struct{})}, err
}

// Read implements net.Conn.
func (s *stalling) Read(to []byte) (int, error) {
	select {
	case <-s.stops:
		<-s.goes
	default:
	}
	return s.Conn.Read(to)
}

// stalled is a client that reads nothing any more. ended reads on, and returns the
// error that ends the stream, nil for a proper end.
type stalled struct {
	conn  *stalling
	ended func() error
}

// overREST opens a stream of REST, reads its header and then nothing.
func (d stallDoor) overREST(t *testing.T, path string) stalled {
	t.Helper()
	c, err := dialStalling(t.Context(), d.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_, err = fmt.Fprintf(c, "GET /api/v1/namespaces/ml/%s HTTP/1.1\r\nHost: x\r\nAccept: application/json\r\nAuthorization: Bearer ml\r\n\r\n", path)
	if err != nil {
		t.Fatal(err)
	}
	from := bufio.NewReaderSize(c, 256)
	answer, err := http.ReadResponse(from, nil)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %v, %v", path, answer, err)
	}
	close(c.stops)
	return stalled{c, func() error {
		_, err := io.Copy(io.Discard, answer.Body)
		return err
	}}
}

// connectStalling is a client of gRPC, and its connection once it is there.
func connectStalling(t *testing.T, address string) (*grpc.ClientConn, <-chan *stalling) {
	t.Helper()
	conns := make(chan *stalling, 1)
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDisableRetry(),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			c, err := dialStalling(ctx, address)
			if err == nil {
				conns <- c
			}
			return c, err
		}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn, conns
}

// overGRPC opens a watch of gRPC and then reads nothing from its connection.
func (d stallDoor) overGRPC(t *testing.T) stalled {
	t.Helper()
	conn, conns := connectStalling(t, d.address)
	stream, err := apiv1.NewAllocationsClient(conn).Watch(bearing(t, "ml"), &apiv1.WatchRequest{Namespace: "ml"})
	if err != nil {
		t.Fatal(err)
	}
	if e, err := stream.Recv(); err != nil { // the bookmark behind what is there
		t.Fatalf("%v, %v", e, err)
	}
	c := <-conns
	close(c.stops)
	return stalled{c, func() error {
		for {
			if _, err := stream.Recv(); err != nil {
				return err
			}
		}
	}}
}

// cut is how many readers the door has cut by the bound of a user.
func (d stallDoor) cut(t *testing.T, door string) (n float64) {
	t.Helper()
	families, err := d.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if m.GetLabel()[0].GetValue() == "user" && m.GetLabel()[1].GetValue() == door {
				n += m.GetCounter().GetValue()
			}
		}
	}
	return n
}

// Of the clients of one user whose sockets take nothing any more, sixteen may stall. With
// more, the door ends the oldest streams with SlowReader: in about a second, over
// HTTP/2 up to 15 s later (WriteByteTimeout begins anew with each part); a client of the same user that reads gets every
// event.
func TestClientsWhoseSocketsStallAreCut(t *testing.T) {
	const most, more = 16, 3
	for name, c := range map[string]struct {
		door string
		open func(*testing.T, stallDoor) stalled
	}{
		"watches over REST": {"rest", func(t *testing.T, d stallDoor) stalled { return d.overREST(t, "allocations?watch=true") }},
		"output over REST":  {"rest", func(t *testing.T, d stallDoor) stalled { return d.overREST(t, "jobs/train/logs?follow=true") }},
		"watches over gRPC": {"grpc", func(t *testing.T, d stallDoor) stalled { return d.overGRPC(t) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			back := mem.Open(mem.Options{})
			t.Cleanup(func() { _ = back.Close() })
			d := openStallDoor(t, back)
			pieces := make([]api.LogChunk, 64)
			for i := range pieces {
				pieces[i].Text = strings.Repeat("x", 16<<10)
			}
			d.cluster.SetOutput("ml", "train", pieces...)
			var clients []stalled
			for range most + more {
				clients = append(clients, c.open(t, d))
			}
			honest, err := dialStalling(t.Context(), d.address)
			if err != nil {
				t.Fatal(err)
			}
			defer honest.Close()
			fmt.Fprintf(honest, "GET /api/v1/namespaces/ml/allocations?watch=true HTTP/1.1\r\nHost: x\r\nAccept: application/json\r\nAuthorization: Bearer ml\r\n\r\n")
			answer, err := http.ReadResponse(bufio.NewReader(honest), nil)
			if err != nil || answer.StatusCode != http.StatusOK {
				t.Fatalf("%v, %v", answer, err)
			}
			lines := bufio.NewScanner(answer.Body)
			lines.Buffer(nil, 1<<20)
			deadline, events := time.Now().Add(30*time.Second), 0
			for ; d.cut(t, c.door) < more && time.Now().Before(deadline); events++ {
				put(t, back, fmt.Sprintf("a%d", events), strings.Repeat("y", 16<<10))
				for name := fmt.Sprintf(`"name":"a%d"`, events); ; {
					if !lines.Scan() {
						t.Fatalf("the honest watch ended after %d events: %v", events, lines.Err())
					}
					if strings.Contains(lines.Text(), name) {
						break
					}
				}
				time.Sleep(20 * time.Millisecond) // the pace of the changes
			}
			if n := d.cut(t, c.door); n != more {
				t.Errorf("%v readers were cut after %d events, want %d", n, events, more)
			}
			ends := make(chan error, len(clients))
			for _, s := range clients {
				close(s.conn.goes)
				go func() { ends <- s.ended() }()
			}
			for range more { // those that were cut; the others go on
				if err := <-ends; err == nil || errors.Is(err, io.EOF) {
					t.Errorf("a stream that was cut ended with %v", err)
				}
			}
			for _, s := range clients {
				_ = s.conn.Close()
			}
			for range most {
				<-ends
			}
		})
	}
}
