package grpcapi

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/gate"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/wire"
)

// This file stands between net/http and gRPC's server, which takes all the bytes of a
// body as fast as they come, and decodes a message before any interceptor knows the
// caller. Here the caller is judged by the headers, and then one message is read within
// the caller's bounds, as REST reads a body. The refusals are those of the interceptors,
// which find them in the context of the call.

// Bounds of the messages of a call.
const (
	// mostOfWatch bounds the request for a stream of answers, which is kept as long as the
	// stream, in bytes.
	mostOfWatch = 64 << 10
	// mostOfSession bounds a message of a session of exec, in bytes: a piece of input, or the
	// command, with room for the rest.
	mostOfSession = 64 << 10
	// mostOfStranger bounds a message of the services that need no token, in bytes.
	mostOfStranger = 4 << 10
	// strangers bounds the calls without a token that one connection makes at a time.
	strangers = 4
	// answerWithin bounds the sending of an answer, as in REST.
	answerWithin = 30 * time.Second
	// firstRead is the room for the beginning of a message, in bytes.
	firstRead = 4 << 10
	// prefix is the length of the flag and the length before a message, in bytes.
	prefix = 5
)

// PublicServer is the gRPC server of an API, behind a server of net/http for HTTP/2.
type PublicServer struct {
	*grpc.Server
	a       *API
	methods map[string]grpc.MethodInfo // by the paths of the calls

	mu sync.Mutex
	// open counts the calls without a token, by the address and port of the client.
	open map[string]int
}

func newPublicServer(a *API, server *grpc.Server) *PublicServer {
	s := &PublicServer{Server: server, a: a, methods: map[string]grpc.MethodInfo{}, open: map[string]int{}}
	for name, info := range server.GetServiceInfo() {
		for _, m := range info.Methods {
			s.methods["/"+name+"/"+m.Name] = m
		}
	}
	return s
}

// intake is a call whose message has been read, or has been refused. One goroutine at a
// time uses it.
type intake struct {
	*arrival
	// refused is the answer to the call; nil where the call is to be served.
	refused *api.Status
	// asked lets the next message of a stream of requests in; nil for all other calls.
	asked chan struct{}

	bytes int64 // of the message
	// bodies release the bytes of the message, releases the other bounds of the caller. They
	// are released once the answer has been written.
	bodies, releases []func()
}

type intakeKey struct{}

// intakeOf is the intake of a call; nil where the call came past ServeHTTP.
func intakeOf(ctx context.Context) *intake {
	in, _ := ctx.Value(intakeKey{}).(*intake)
	return in
}

// keep releases a bound of the caller once the answer has been written.
func (in *intake) keep(release func()) { in.releases = append(in.releases, release) }

func (in *intake) release() {
	in.releaseBody()
	for _, one := range in.releases {
		one()
	}
	in.releases = nil
}

func (in *intake) releaseBody() {
	for _, one := range in.bodies {
		one()
	}
	in.bodies = nil
}

// park counts the message as that of a call that waits for its object.
func (in *intake) park(g *gate.Gate) *api.Status {
	if in == nil || in.bytes <= prefix {
		return nil
	}
	release, status := g.Hold(in.sender.Principal, gate.Parked, in.bytes)
	if status != nil {
		return status
	}
	in.releaseBody()
	in.bodies = append(in.bodies, release)
	return nil
}

// ServeHTTP serves one call.
func (s *PublicServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	in := new(intake)
	defer in.release()
	r = r.WithContext(context.WithValue(r.Context(), intakeKey{}, in))
	method, known := s.methods[r.URL.Path]
	switch {
	case !known:
		r.Body = http.NoBody // the answer is that there is no such method
	case strings.HasPrefix(r.URL.Path, ours):
		in.arrival = s.a.arrive(contextOf(r), metadataOf(r.Header))
		in.refused = in.status
		switch {
		case in.refused != nil:
		case method.IsClientStream: // sessions of exec
			in.pace(r, mostOfSession)
		case method.IsServerStream:
			s.read(in, r, mostOfWatch)
			in.releaseBody()
		default:
			s.read(in, r, api.MaxDocument)
		}
	case method.IsClientStream: // reflection
		if in.refused = s.enterStranger(in, r); in.refused == nil {
			in.pace(r, mostOfStranger)
		}
	default:
		if in.refused = s.enterStranger(in, r); in.refused == nil {
			s.read(in, r, mostOfStranger)
		}
	}
	if in.refused != nil {
		r.Body = io.NopCloser(bytes.NewReader(make([]byte, prefix))) // an empty message: the interceptors refuse it
		in.asked = nil
	}
	s.Server.ServeHTTP(w, r)
}

// enterStranger counts a call without a token until its answer has been written.
func (s *PublicServer) enterStranger(in *intake, r *http.Request) *api.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[r.RemoteAddr] >= strangers {
		return busy("%d calls without a token are open on this connection; ask again", strangers)
	}
	s.open[r.RemoteAddr]++
	in.keep(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.open[r.RemoteAddr]--; s.open[r.RemoteAddr] == 0 {
			delete(s.open, r.RemoteAddr)
		}
	})
	return nil
}

// read reads the one message of a call, at most most bytes, into the body of its request.
func (s *PublicServer) read(in *intake, r *http.Request, most int) {
	head := make([]byte, prefix)
	if _, err := io.ReadFull(r.Body, head); err != nil {
		if errors.Is(err, io.EOF) {
			r.Body = http.NoBody // there is no message, as gRPC's server says
			return
		}
		in.refused = unread(err)
		return
	}
	length := binary.BigEndian.Uint32(head[1:])
	if int64(length) > int64(most) {
		in.refused = api.Errorf(http.StatusRequestEntityTooLarge, "the message has %d bytes, the limit is %d", length, most)
		return
	}
	whole := prefix + int(length)
	message := head
	for len(message) < whole {
		if len(message) == cap(message) {
			more := min(max(firstRead, cap(message)), whole-len(message))
			if in.refused = s.grow(in, int64(more)); in.refused != nil {
				return
			}
			message = append(make([]byte, 0, cap(message)+more), message...)
		}
		n, err := r.Body.Read(message[len(message):cap(message)])
		message = message[:len(message)+n]
		if err != nil && len(message) < whole {
			in.refused = unread(err)
			return
		}
	}
	in.bytes = int64(whole)
	r.Body = &once{bytes.NewReader(message)}
}

// grow reserves room for more of a message. A stranger's message is within firstRead.
func (s *PublicServer) grow(in *intake, n int64) *api.Status {
	if in.arrival == nil {
		return nil
	}
	release, status := s.a.Gate.Hold(in.sender.Principal, gate.Bodies, n)
	if status == nil {
		in.bodies = append(in.bodies, release)
	}
	return status
}

// unread is the refusal of a message that did not arrive.
func unread(err error) *api.Status {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return api.Errorf(http.StatusBadRequest, "the message did not arrive in time")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return api.Errorf(http.StatusBadRequest, "the message ended before its announced length")
	}
	return api.Errorf(http.StatusBadRequest, "the message could not be read: %v", err)
}

// once is a message that is kept until it has been read.
type once struct{ rest *bytes.Reader }

// Read implements io.Reader.
func (o *once) Read(p []byte) (int, error) {
	if o.rest == nil {
		return 0, io.EOF
	}
	n, err := o.rest.Read(p)
	if o.rest.Len() == 0 {
		o.rest = nil
	}
	return n, err
}

// Close implements io.Closer.
func (o *once) Close() error { return nil }

// pace gives a stream of requests, each of at most most bytes, to the handler as the
// handler asks.
func (in *intake) pace(r *http.Request, most int) {
	in.asked = make(chan struct{}, 1)
	r.Body = newPaced(r, in.asked, most)
}

// paced is the body of a stream of requests. It has the next message once the handler
// asks for it: gRPC's server keeps the messages that nobody has asked for.
type paced struct {
	io.ReadCloser
	most   int // bytes of a message
	asked  <-chan struct{}
	ended  <-chan struct{} // the client has gone
	closed chan struct{}
	left   []byte // of the message that is being read
	close  sync.Once
}

func newPaced(r *http.Request, asked <-chan struct{}, most int) *paced {
	return &paced{ReadCloser: r.Body, most: most, asked: asked, ended: r.Context().Done(), closed: make(chan struct{})}
}

// Read implements io.Reader.
func (b *paced) Read(p []byte) (int, error) {
	if len(b.left) == 0 {
		select {
		case <-b.asked:
		case <-b.ended:
			return 0, io.ErrUnexpectedEOF
		case <-b.closed:
			return 0, http.ErrBodyReadAfterClose
		}
		head := make([]byte, prefix)
		if _, err := io.ReadFull(b.ReadCloser, head); err != nil {
			return 0, err
		}
		length := binary.BigEndian.Uint32(head[1:])
		if int64(length) > int64(b.most) {
			return 0, fmt.Errorf("a message of this stream has %d bytes, the limit is %d", length, b.most)
		}
		b.left = append(head, make([]byte, length)...)
		if _, err := io.ReadFull(b.ReadCloser, b.left[prefix:]); err != nil {
			return 0, err
		}
	}
	n := copy(p, b.left)
	b.left = b.left[n:]
	return n, nil
}

// Close implements io.Closer. It ends a Read that waits.
func (b *paced) Close() error {
	b.close.Do(func() { close(b.closed) })
	return b.ReadCloser.Close()
}

// pacedStream asks for each message of a stream of requests.
type pacedStream struct {
	grpc.ServerStream
	asked chan struct{}
}

// RecvMsg implements grpc.ServerStream.
func (s pacedStream) RecvMsg(m any) error {
	select {
	case s.asked <- struct{}{}:
	default: // it was asked for, and did not come
	}
	return s.ServerStream.RecvMsg(m)
}

// arrival is what the headers of a call say about its caller.
type arrival struct {
	id       string
	sender   service.Caller
	standing gate.Standing
	status   *api.Status // the refusal of the caller; nil for none
}

// arrive authenticates the caller of a call and counts the call. ctx has the peer.
func (a *API) arrive(ctx context.Context, md metadata.MD) *arrival {
	in := &arrival{id: service.RequestID(only(md.Get(requestKey)))}
	in.sender = service.Caller{RequestID: in.id, Address: clientAddress(ctx)}
	proven := false
	if a.Relay != nil {
		var hop service.Hop
		if hop, proven = hopOf(a.Relay.Forward, md); proven {
			in.sender = in.sender.From(hop)
		}
	}
	in.sender.Principal, in.standing, in.status = a.known(ctx, md, proven)
	return in
}

// contextOf is the context of a request with its peer, as gRPC's server has it.
func contextOf(r *http.Request) context.Context {
	p := &peer.Peer{Addr: address(r.RemoteAddr)}
	if r.TLS != nil {
		p.AuthInfo = credentials.TLSInfo{State: *r.TLS, CommonAuthInfo: credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity}}
	}
	return peer.NewContext(r.Context(), p)
}

// address is the address of a client.
type address string

var _ net.Addr = address("")

// Network implements net.Addr.
func (address) Network() string { return "tcp" }

// String implements net.Addr.
func (a address) String() string { return string(a) }

// metadataOf are the headers by which a caller is judged.
func metadataOf(h http.Header) metadata.MD {
	md := metadata.MD{}
	for _, key := range []string{"authorization", requestKey, hopKey, hopProofKey, clientKey, certificateKey} {
		if values := h.Values(key); len(values) > 0 {
			md[key] = values
		}
	}
	return md
}

// refusedHere is the refusal of a call without a token; nil where the call is served.
func refusedHere(ctx context.Context) error {
	if in := intakeOf(ctx); in != nil && in.refused != nil {
		return wire.ToRefusal(in.refused)
	}
	return nil
}
