package rest_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/test/bufconn"

	"github.com/musterd/muster/coordinator/rest"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/test/resttest"
)

// port is a coordinator's port for HTTP/2 without TLS.
type port struct {
	listener *bufconn.Listener
	honest   *http.Client
}

func openPort(t *testing.T) port {
	t.Helper()
	cluster := resttest.New(time.Now, resttest.Node{Name: "n1", CPUs: 4, Memory: 8 << 30})
	server := rest.NewServer(rest.NewHandler(rest.Config{Service: cluster, Authenticator: service.StaticToken(token)}), slog.New(slog.DiscardHandler))
	p := port{listener: bufconn.Listen(1 << 16)}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(p.listener) }()
	two := new(http.Protocols)
	two.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: two, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return p.listener.DialContext(ctx) }}
	p.honest = &http.Client{Transport: transport}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		_ = server.Close()
		<-done
	})
	return p
}

// mustServe asks as an honest client does.
func (p port) mustServe(t *testing.T) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://coordinator/api/v1/nodes", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	answer, err := p.honest.Do(r)
	if err != nil {
		t.Errorf("an honest client is not served: %v", err)
		return
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK || answer.ProtoMajor != 2 {
		t.Errorf("an honest client gets %s %s", answer.Proto, answer.Status)
	}
}

// attacker is a peer that writes frames as it likes.
type attacker struct {
	conn    net.Conn
	framer  *http2.Framer
	packed  bytes.Buffer
	encoder *hpack.Encoder
	ended   chan error // why the server's frames ended
	resets  int        // RST_STREAM frames of the server; read after ended
	goAway  http2.ErrCode
}

// attack opens a connection, and reads the server's frames.
func (p port) attack(t *testing.T) *attacker {
	t.Helper()
	conn, err := p.listener.DialContext(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	a := &attacker{conn: conn, framer: http2.NewFramer(conn, conn), ended: make(chan error, 1)}
	a.encoder = hpack.NewEncoder(&a.packed)
	go func() {
		for {
			f, err := a.framer.ReadFrame()
			if err != nil {
				a.ended <- err
				return
			}
			switch f := f.(type) {
			case *http2.RSTStreamFrame:
				a.resets++
			case *http2.GoAwayFrame:
				a.goAway = f.ErrCode
			}
		}
	}()
	if _, err := io.WriteString(conn, http2.ClientPreface); err == nil {
		err = a.framer.WriteSettings()
	}
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// block is the headers of a request, packed.
func (a *attacker) block(more ...string) []byte {
	a.packed.Reset()
	fields := append([]string{":method", "GET", ":scheme", "http", ":authority", "coordinator", ":path", "/api/v1/nodes", "authorization", "Bearer " + token}, more...)
	for i := 0; i < len(fields); i += 2 {
		_ = a.encoder.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1], Sensitive: true}) // into memory
	}
	return a.packed.Bytes()
}

// request opens a stream.
func (a *attacker) request(stream uint32) error {
	return a.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: a.block(), EndStream: true, EndHeaders: true})
}

// heap is the memory that is in use.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}

// An attacker over HTTP/2 takes little memory and keeps nobody else from the API:
// the connection is closed, or its streams are bounded.
func TestAttacksOverHTTP2(t *testing.T) {
	const most = 16 << 20
	for name, act := range map[string]struct {
		attack func(*attacker) error // an error of writing: the server has closed the connection
		closed bool                  // the server has to close the connection
	}{
		"rapid reset: 50,000 requests that are taken back at once": {func(a *attacker) error {
			for i := range uint32(50_000) {
				if err := a.request(2*i + 1); err != nil {
					return err
				}
				if err := a.framer.WriteRSTStream(2*i+1, http2.ErrCodeCancel); err != nil {
					return err
				}
			}
			return nil
		}, false},
		"1,000 requests at once on one connection": {func(a *attacker) error {
			for i := range uint32(1000) {
				if err := a.request(2*i + 1); err != nil {
					return err
				}
			}
			return nil
		}, false},
		"a flood of CONTINUATION frames: 64 MiB of headers without an end": {func(a *attacker) error {
			if err := a.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: a.block()}); err != nil {
				return err
			}
			a.packed.Reset()
			_ = a.encoder.WriteField(hpack.HeaderField{Name: "x", Value: strings.Repeat("y", 12<<10), Sensitive: true})
			for range 64 << 20 / a.packed.Len() {
				if err := a.framer.WriteContinuation(1, false, a.packed.Bytes()); err != nil {
					return err
				}
			}
			return nil
		}, true},
		"100,000 headers": {func(a *attacker) error {
			var more []string
			for i := range 100_000 {
				more = append(more, fmt.Sprint("x-", i), "y")
			}
			block := a.block(more...)
			const frame = 16 << 10
			if err := a.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block[:frame], EndStream: true}); err != nil {
				return err
			}
			for block = block[frame:]; len(block) > 0; {
				n := min(frame, len(block))
				if err := a.framer.WriteContinuation(1, n == len(block), block[:n]); err != nil {
					return err
				}
				block = block[n:]
			}
			return nil
		}, true},
		"a flood of 200,000 pings": {func(a *attacker) error {
			for range 200_000 {
				if err := a.framer.WritePing(false, [8]byte{}); err != nil {
					return err
				}
			}
			return nil
		}, false},
		"a flood of 200,000 settings": {func(a *attacker) error {
			for range 200_000 {
				if err := a.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1}); err != nil {
					return err
				}
			}
			return nil
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := openPort(t)
			p.mustServe(t)
			before := heap()
			a := p.attack(t)
			err := act.attack(a)
			if act.closed && err == nil {
				if <-a.ended; a.goAway == http2.ErrCodeNo {
					t.Error("the connection ended without a reason")
				}
			}
			if took := heap() - before; took > most {
				t.Errorf("the attack takes %d KiB, want at most %d", took>>10, most>>10)
			}
			p.mustServe(t)
		})
	}
}

// A slow peer is cut off: one that sends nothing after the preface, a part of its
// headers, or a part of a body.
func TestSlowPeersOverHTTP2AreCutOff(t *testing.T) {
	for name, begin := range map[string]func(*attacker) error{
		"nothing after the preface": func(*attacker) error { return nil },
		"headers without an end": func(a *attacker) error {
			return a.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: a.block()[:4]})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := openPort(t)
				a := p.attack(t)
				if err := begin(a); err != nil {
					t.Fatal(err)
				}
				time.Sleep(35 * time.Second)
				synctest.Wait()
				select {
				case <-a.ended:
				default:
					t.Error("the connection is open after 35 s")
				}
				p.mustServe(t)
			})
		})
	}
}
