package grpcapi

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/gate"
	"github.com/musterd/muster/coordinator/service"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/wire"
)

// Relay carries to the leader the calls that only the leader can answer:
// those of the API that the service here refuses, and
// muster.v1.Coordinator/Evict. Calls keep their caller's token. Intercept
// comes after the authentication of the caller.
type Relay struct {
	// Forward finds the leader.
	Forward *service.Forward
	// Revision is not older than anything answered here as the leader; 0 while
	// another leads.
	Revision func() int64
	// Dial holds the options of a connection to another coordinator, its transport
	// credentials among them; no credentials of calls.
	Dial []grpc.DialOption
	// At is the address of a leader, "host:port"; nil = that of its gRPC port.
	At func(service.Leader) string

	mu          sync.Mutex
	connections map[string]*grpc.ClientConn
}

// Metadata between coordinators.
const (
	hopKey      = "muster-forwarded-by"
	hopProofKey = "muster-forward-proof"
	clientKey   = "muster-forwarded-for"
	revisionKey = "muster-revision"
	// certificateKey names the client certificate of a caller without a token
	// (service.CertificateName).
	certificateKey = "muster-client-certificate"
)

// connectWithin bounds an attempt to connect to another coordinator.
const connectWithin = time.Second

// dropAfter is how long calls that are under way on a connection that is given up
// may go on.
const dropAfter = 4 * time.Second

// evict is the one call of agents that only the leader decides.
const evict = musterv1.Coordinator_Evict_FullMethodName

// waits is the time that a call wants to wait, nil for none.
func waits(req any) *durationpb.Duration {
	if m, may := req.(interface{ GetWait() *durationpb.Duration }); may {
		return m.GetWait()
	}
	return nil
}

// waiting is a call with less time to wait.
func waiting(req any, left time.Duration) any {
	m, is := req.(proto.Message)
	if waits(req) == nil || !is {
		return req
	}
	again := proto.Clone(m)
	field := again.ProtoReflect().Descriptor().Fields().ByName("wait")
	again.ProtoReflect().Set(field, protoreflect.ValueOfMessage(durationpb.New(left).ProtoReflect()))
	return again
}

// repeatOf says whether a call may be sent again after it may have been done:
// reads, and creations that carry a key.
func repeatOf(method string, req any) service.Repeat {
	if m, may := req.(interface{ GetIdempotencyKey() string }); may && m.GetIdempotencyKey() != "" {
		return service.Keyed
	}
	_, name, _ := strings.Cut(strings.TrimPrefix(method, "/"), "/")
	for _, reads := range []string{"Get", "List", "Explain", "Try"} {
		if strings.HasPrefix(name, reads) {
			return service.Read
		}
	}
	return service.Once
}

// Close closes the connections to other coordinators.
func (r *Relay) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var errs []error
	for address, c := range r.connections {
		errs = append(errs, c.Close())
		delete(r.connections, address)
	}
	return errors.Join(errs...)
}

// Intercept is the grpc.UnaryServerInterceptor.
func (r *Relay) Intercept(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	method := info.FullMethod
	if method != evict && !strings.HasPrefix(method, ours) {
		return next(ctx, req)
	}
	refused := api.Errorf(503, "coordinator %s does not lead, and no leader answers; ask again", r.Forward.ID()).Because(api.NotLeader)
	if method != evict || r.Revision() > 0 || hopped(ctx) { // an eviction spends the budget of its node here, too
		got, err := serveHere(ctx, req, next)
		r.tell(ctx)
		if refused = elsewhere(err); refused == nil {
			return got, err
		}
	}
	release, limited := gate.TurnOf(ctx).Hold(gate.Forwards, 1)
	if limited != nil {
		return nil, wire.ToRefusal(limited)
	}
	defer release()
	gate.TurnOf(ctx).End() // the leader has a turn of its own for the call
	var answer any
	var answered error
	status := r.Forward.Pass(ctx, service.Passage{
		Name: method, Repeat: repeatOf(method, req), Wait: waits(req).AsDuration(), Hopped: hopped(ctx),
		Here: func(time.Duration) *api.Status {
			got, err := serveHere(ctx, req, next)
			r.tell(ctx)
			answer, answered = got, err
			return elsewhere(err)
		},
		There: func(try context.Context, leader service.Leader, left time.Duration) (got service.Attempt) {
			answer, answered, got = r.there(ctx, try, leader, method, waiting(req, left))
			return got
		},
	}, refused)
	if status != nil {
		return nil, wire.ToRefusal(status)
	}
	return answer, answered
}

// tell lets the caller know how new the answer is.
func (r *Relay) tell(ctx context.Context) {
	if rev := r.Revision(); rev > 0 {
		_ = grpc.SetHeader(ctx, metadata.Pairs(revisionKey, strconv.FormatInt(rev, 10))) // fails only outside of a call
	}
}

func hopped(ctx context.Context) bool {
	md, _ := metadata.FromIncomingContext(ctx)
	return len(md.Get(hopKey)) > 0
}

// elsewhere is the refusal in an error that asks for another coordinator, nil
// for any other error.
func elsewhere(err error) *api.Status {
	if err == nil {
		return nil
	}
	if refused := service.Elsewhere(err); refused != nil {
		return refused
	}
	return service.Elsewhere(wire.FromRefusal(err))
}

// there calls the leader, and judges its answer: an error that a service has
// returned is an answer, one of the network is none.
func (r *Relay) there(ctx, try context.Context, leader service.Leader, method string, req any) (answer any, answered error, got service.Attempt) {
	got.At = leader.GRPC
	if r.At != nil {
		got.At = r.At(leader)
	}
	answer, sent, err := r.send(ctx, try, got.At, method, req)
	refused := elsewhere(err)
	code := status.Code(err)
	lost := !wire.IsRefusal(err) && (code == codes.Unavailable || code == codes.DeadlineExceeded || code == codes.Canceled)
	switch {
	case refused != nil:
		got.Refused = refused
	case err != nil && lost:
		got.Err, got.Sent, got.Silent = errors.New(status.Convert(err).Message()), sent, code == codes.DeadlineExceeded
	}
	return answer, err, got
}

// send calls another coordinator. sent is false if the call never left. ctx is
// the caller's, try bounds this call.
func (r *Relay) send(ctx, try context.Context, address, method string, req any) (reply any, sent bool, err error) {
	answer, err := answerOf(method)
	if err != nil {
		return nil, false, err
	}
	conn, err := r.connection(try, address)
	switch {
	case errors.Is(err, errNoAnswer):
		r.drop(address)
		return nil, false, status.Errorf(codes.DeadlineExceeded, "%s: %v", method, err)
	case err != nil:
		return nil, false, status.Errorf(codes.Unavailable, "%s: %v", method, err)
	}
	incoming, _ := metadata.FromIncomingContext(ctx)
	outgoing := metadata.Pairs(hopKey, r.Forward.ID())
	for _, key := range []string{"authorization", allowUnknownKey} {
		outgoing.Set(key, incoming.Get(key)...)
	}
	if id := service.CallerOf(ctx).RequestID; id != "" {
		outgoing.Set(requestKey, id)
	}
	outgoing.Set(clientKey, clientAddress(ctx))
	if name := proofsOf(ctx, incoming).Certificate(); name != "" {
		outgoing.Set(certificateKey, name)
	}
	outgoing.Set(hopProofKey, r.Forward.HopProof(hopIn(outgoing)))
	var header metadata.MD
	if err := conn.Invoke(metadata.NewOutgoingContext(try, outgoing), method, req, answer, grpc.Header(&header)); err != nil {
		if try.Err() != nil && ctx.Err() == nil {
			r.drop(address) // the connection may be as dead as the call
		}
		return nil, true, err
	}
	addWarnings(ctx, header.Get(warningKey))
	if told := header.Get(revisionKey); len(told) == 1 && repeatOf(method, req) != service.Read {
		if rev, err := strconv.ParseInt(told[0], 10, 64); err == nil {
			r.Forward.CatchUp(ctx, rev)
		}
	}
	return answer, true, nil
}

// answerOf makes an empty answer of a method.
func answerOf(method string) (proto.Message, error) {
	name := protoreflect.FullName(strings.ReplaceAll(strings.TrimPrefix(method, "/"), "/", "."))
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	known, ok := found.(protoreflect.MethodDescriptor)
	if !ok {
		return nil, fmt.Errorf("%s is no method", method)
	}
	kind, err := protoregistry.GlobalTypes.FindMessageByName(known.Output().FullName())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	return kind.New().Interface(), nil
}

// connection returns an open connection: a call that fails on an open connection has
// been sent.
func (r *Relay) connection(ctx context.Context, address string) (*grpc.ClientConn, error) {
	r.mu.Lock()
	c := r.connections[address]
	if c == nil {
		var err error
		if c, err = grpc.NewClient("passthrough:///"+address, r.Dial...); err != nil {
			r.mu.Unlock()
			return nil, err
		}
		if r.connections == nil {
			r.connections = map[string]*grpc.ClientConn{}
		}
		r.connections[address] = c
	}
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, connectWithin)
	defer cancel()
	for {
		state := c.GetState()
		switch state {
		case connectivity.Ready:
			return c, nil
		case connectivity.TransientFailure:
			c.ResetConnectBackoff()
			return nil, fmt.Errorf("coordinator at %s cannot be reached", address)
		case connectivity.Idle:
			c.Connect()
		case connectivity.Connecting, connectivity.Shutdown:
		}
		if !c.WaitForStateChange(ctx, state) {
			return nil, fmt.Errorf("%w at %s within %s", errNoAnswer, address, connectWithin)
		}
	}
}

// errNoAnswer means that nothing at all has answered an attempt to connect.
var errNoAnswer = errors.New("no coordinator answers")

// drop has the next call to an address open another connection. The present one
// is closed once the calls that are under way on it have had their time.
func (r *Relay) drop(address string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.connections[address]
	if c == nil {
		return
	}
	delete(r.connections, address)
	var after time.Duration
	if c.GetState() == connectivity.Ready {
		after = dropAfter
	}
	time.AfterFunc(after, func() { _ = c.Close() }) // which fails only if it was closed
}
