package grpcapi

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"log/slog"
	"net"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/gate"
	"github.com/musterd/muster/coordinator/rest"
	apiv1 "github.com/musterd/muster/proto/muster/api/v1"
	"github.com/musterd/muster/test/resttest"
)

// publicDoor is a coordinator with both codecs on a TCP port, behind one gate.
func publicDoor(t *testing.T) (address string, g *gate.Gate) {
	t.Helper()
	quiet, cluster := slog.New(slog.DiscardHandler), resttest.New(time.Now, resttest.Node{Name: "n1", CPUs: 4, Memory: 8 << 30})
	g = gate.New(&gate.Rates{})
	public := (&API{Service: cluster, Authenticator: bearers{}, AnswerBy: rest.AnswerBy, Gate: g}).NewServer()
	server := rest.NewServer(rest.WithGRPC(public, rest.NewHandler(rest.Config{Service: cluster, Authenticator: bearers{}, Gate: g})), quiet)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(smallBuffers{listener}) }()
	t.Cleanup(func() {
		_ = server.Close()
		public.Stop()
		<-done
	})
	return listener.Addr().String(), g
}

// framing is a client that writes the frames of HTTP/2 itself, within the server's
// windows of the connection and of the streams.
type framing struct {
	conn    net.Conn
	framer  *http2.Framer
	packed  bytes.Buffer
	encoder *hpack.Encoder

	mu      sync.Mutex
	changed *sync.Cond
	window  int64            // of the connection
	streams map[uint32]int64 // the windows of the streams
	initial int64
	answers map[uint32]string // the grpc-status and grpc-message of each stream
	over    bool
}

func dialFraming(t *testing.T, address string) *framing {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	f := &framing{conn: conn, framer: http2.NewFramer(conn, conn), window: 65_535, initial: 65_535, streams: map[uint32]int64{}, answers: map[uint32]string{}}
	f.changed = sync.NewCond(&f.mu)
	f.encoder = hpack.NewEncoder(&f.packed)
	f.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	if _, err := io.WriteString(conn, http2.ClientPreface); err == nil {
		err = f.framer.WriteSettings()
	}
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); f.read() }()
	t.Cleanup(func() { _ = conn.Close(); <-done })
	return f
}

func (f *framing) read() {
	for {
		frame, err := f.framer.ReadFrame()
		f.mu.Lock()
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if v, has := frame.Value(http2.SettingInitialWindowSize); has {
				for id := range f.streams {
					f.streams[id] += int64(v) - f.initial
				}
				f.initial = int64(v)
			}
		case *http2.WindowUpdateFrame:
			if frame.StreamID == 0 {
				f.window += int64(frame.Increment)
			} else {
				f.streams[frame.StreamID] += int64(frame.Increment)
			}
		case *http2.MetaHeadersFrame:
			code, message := "", ""
			for _, field := range frame.Fields {
				switch field.Name {
				case "grpc-status":
					code = field.Value
				case "grpc-message":
					message = field.Value
				}
			}
			if code != "" {
				f.answers[frame.StreamID] = code + " " + message
			}
		}
		f.over = f.over || err != nil
		f.changed.Broadcast()
		f.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// call opens a stream.
func (f *framing) call(t *testing.T, stream uint32, method, token string) {
	t.Helper()
	f.packed.Reset()
	fields := []string{":method", "POST", ":scheme", "http", ":authority", "coordinator", ":path", method, "content-type", "application/grpc", "te", "trailers"}
	if token != "" {
		fields = append(fields, "authorization", "Bearer "+token)
	}
	for i := 0; i < len(fields); i += 2 {
		_ = f.encoder.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]}) // into memory
	}
	f.mu.Lock()
	f.streams[stream] += f.initial
	f.mu.Unlock()
	if err := f.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: f.packed.Bytes(), EndHeaders: true}); err != nil {
		t.Fatal(err)
	}
}

// send writes data in pieces, as far as the windows allow within a time. It returns how
// many bytes went out.
func (f *framing) send(stream uint32, data []byte, piece int, within time.Duration) (sent int) {
	late := time.AfterFunc(within, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.over = true
		f.changed.Broadcast()
	})
	defer func() {
		late.Stop()
		f.mu.Lock()
		defer f.mu.Unlock()
		f.over = false
	}()
	for len(data) > 0 {
		n := min(piece, len(data))
		f.mu.Lock()
		for !f.over && (f.window < int64(n) || f.streams[stream] < int64(n)) && f.answers[stream] == "" {
			f.changed.Wait()
		}
		over := f.over || f.answers[stream] != ""
		f.window -= int64(n)
		f.streams[stream] -= int64(n)
		f.mu.Unlock()
		if over || f.framer.WriteData(stream, false, data[:n]) != nil {
			return sent
		}
		data = data[n:]
		sent += n
	}
	return sent
}

// answer waits for the status of a stream.
func (f *framing) answer(stream uint32) string {
	late := time.AfterFunc(30*time.Second, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.answers[stream] += " (no answer within 30 s)"
		f.changed.Broadcast()
	})
	defer late.Stop()
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.answers[stream] == "" {
		f.changed.Wait()
	}
	return f.answers[stream]
}

// announced is the beginning of a message of n bytes, and so many of them.
func announced(n, some int) []byte {
	text := make([]byte, prefix+some)
	binary.BigEndian.PutUint32(text[1:], uint32(n))
	return text
}

func inUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}

const (
	createCall  = "/muster.api.v1.Allocations/Create"
	watchCall   = "/muster.api.v1.Allocations/Watch"
	healthCall  = "/grpc.health.v1.Health/Watch"
	reflectCall = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
)

// A peer takes little memory by messages, with a token and without one: the caller is
// judged by the headers, and the bytes beyond a message stay in the peer's window.
func TestMessagesTakeBoundedMemory(t *testing.T) {
	const most = 12 << 20
	for name, c := range map[string]struct {
		attack func(*testing.T, *framing)
	}{
		"messages of 1 MiB without a token": {func(t *testing.T, f *framing) {
			for i := range uint32(48) {
				f.call(t, 2*i+1, createCall, "")
				f.send(2*i+1, announced(api.MaxDocument, api.MaxDocument-1), 16<<10, time.Second/4)
			}
			if got := f.answer(1); !strings.HasPrefix(got, "16 ") {
				t.Errorf("a call without a token gets %q, want Unauthenticated", got)
			}
		}},
		"messages of 1 MiB that do not end, of a tenant": {func(t *testing.T, f *framing) {
			for i := range uint32(48) {
				f.call(t, 2*i+1, createCall, "ml")
				f.send(2*i+1, announced(api.MaxDocument, api.MaxDocument-1), 16<<10, time.Second/4)
			}
			if got := f.answer(95); !strings.HasPrefix(got, "8 ") || !strings.Contains(got, "bytes of bodies that are being read") {
				t.Errorf("a call beyond the bound of bodies gets %q, want ResourceExhausted", got)
			}
		}},
		"bytes beyond the request of a watch of health": {func(t *testing.T, f *framing) {
			f.call(t, 1, healthCall, "")
			f.send(1, append(announced(0, 0), make([]byte, 64<<20)...), 16<<10, time.Second)
		}},
		"bytes beyond the request of a watch": {func(t *testing.T, f *framing) {
			f.call(t, 1, watchCall, "ml")
			f.send(1, append(announced(0, 0), make([]byte, 64<<20)...), 16<<10, time.Second)
		}},
		"questions to reflection whose answers nobody reads": {func(t *testing.T, f *framing) {
			f.call(t, 1, reflectCall, "")
			f.send(1, bytes.Repeat(append(announced(2, 0), 0x3a, 0), 8<<20), 16<<10, 2*time.Second) // list_services
		}},
		"a long message to health": {func(t *testing.T, f *framing) {
			f.call(t, 1, "/grpc.health.v1.Health/Check", "")
			f.send(1, announced(api.MaxDocument, api.MaxDocument), 16<<10, time.Second)
			if got := f.answer(1); !strings.HasPrefix(got, "8 ") || !strings.Contains(got, "the limit is 4096") {
				t.Errorf("a message of 1 MiB to health gets %q, want ResourceExhausted", got)
			}
		}},
		"a method that there is not": {func(t *testing.T, f *framing) {
			f.call(t, 1, "/muster.api.v1.Allocations/Nothing", "")
			f.send(1, make([]byte, 64<<20), 16<<10, time.Second)
			if got := f.answer(1); !strings.HasPrefix(got, "12 ") {
				t.Errorf("a method that there is not gets %q, want Unimplemented", got)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			address, _ := publicDoor(t)
			honest := connect(t, address)
			list := func() error {
				ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer admin"), 10*time.Second)
				defer cancel()
				_, err := apiv1.NewAllocationsClient(honest).List(ctx, &apiv1.ListRequest{Namespace: "ml"})
				return err
			}
			if err := list(); err != nil {
				t.Fatal(err)
			}
			f := dialFraming(t, address)
			before := inUse()
			c.attack(t, f)
			if grown := inUse() - before; grown > most {
				t.Errorf("the server has grown by %d KiB, want at most %d", grown>>10, most>>10)
			}
			if err := list(); err != nil {
				t.Errorf("an honest client beside the attack: %v", err)
			}
		})
	}
}

// What a call holds is given back with its answer.
func TestACallGivesBackWhatItHolds(t *testing.T) {
	address, g := publicDoor(t)
	conn := connect(t, address)
	for i := range 40 { // of 1 MiB, with a bound of 8 MiB
		ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer ml")
		_, err := apiv1.NewAllocationsClient(conn).Create(ctx, &apiv1.CreateAllocationRequest{
			Namespace: "ml", Allocation: &apiv1.Allocation{Metadata: &apiv1.ObjectMeta{Name: "a" + strconv.Itoa(i), Annotations: map[string]string{"a": strings.Repeat("x", 900<<10)}}},
		})
		if status.Code(err) != codes.InvalidArgument { // 256 KiB of annotations are the limit
			t.Fatalf("creation %d: %v", i, err)
		}
		if _, err := apiv1.NewAllocationsClient(conn).List(ctx, &apiv1.ListRequest{Namespace: "ml"}); err != nil {
			t.Fatal(err)
		}
	}
	whole, _ := bearers{}.Authenticate(t.Context(), "ml")
	for _, of := range []gate.Bound{gate.Bodies, gate.Lists, gate.Answers, gate.Waits, gate.Parked} {
		deadline := time.Now().Add(5 * time.Second)
		for {
			release, refused := g.Hold(whole, of, of.User)
			if refused == nil {
				release()
				break
			}
			if time.Now().After(deadline) { // the end of a call comes after its answer
				t.Fatal(refused)
			}
			time.Sleep(time.Millisecond)
		}
	}
}

// A connection without a token makes four calls at a time.
func TestCallsWithoutATokenAreFew(t *testing.T) {
	address, _ := publicDoor(t)
	f := dialFraming(t, address)
	for i := range uint32(strangers) {
		f.call(t, 2*i+1, reflectCall, "")
	}
	last := uint32(2*strangers + 1)
	f.call(t, last, reflectCall, "")
	if got := f.answer(last); !strings.HasPrefix(got, "8 ") || !strings.Contains(got, "4 calls without a token are open on this connection") {
		t.Errorf("the fifth call gets %q", got)
	}
	if _, err := apiv1.NewAllocationsClient(connect(t, address)).List(metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer ml"), &apiv1.ListRequest{Namespace: "ml"}); err != nil {
		t.Error(err)
	}
}
