package grpcapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
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

	"github.com/musterd/muster/api"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/wire"
)

// Leaders knows which coordinator leads.
type Leaders interface {
	// LeaderGRPC waits until a coordinator leads and tells where it serves; own
	// if this one does. What is known already comes even if ctx has ended.
	LeaderGRPC(ctx context.Context) (address string, own bool, err error)
	// Reach waits until what is read here is not older than a revision.
	Reach(ctx context.Context, revision int64) error
	// Revision is not older than anything answered here as the leader; 0 while
	// another leads.
	Revision() int64
}

// Forward passes on to the leader what only the leader can answer: of
// muster.v1.Quotas all but what every coordinator knows, and
// muster.v1.Coordinator/Evict. Calls keep their caller's token. Its Intercept
// comes after the checks of who calls. The zero value of an optional field
// means its default.
type Forward struct {
	ID      string // of this coordinator
	Leaders Leaders
	// Dial holds what a connection to another coordinator needs, its transport
	// credentials among it; no credentials of calls.
	Dial []grpc.DialOption
	// Patience bounds how long a call waits for a leader; 0 = 7 s.
	Patience time.Duration
	Logger   *slog.Logger

	mu          sync.Mutex
	connections map[string]*grpc.ClientConn
}

// Metadata between coordinators.
const (
	hopKey      = "muster-forwarded-by"
	revisionKey = "muster-revision"
)

// Bounds of what is passed on.
const (
	defaultPatience = 7 * time.Second
	connectWithin   = time.Second
	// answerWithin bounds a try at a leader, and all tries at one that is silent:
	// no call that is passed on waits for anything but the store.
	answerWithin = 2 * time.Second
	leaderPause  = 25 * time.Millisecond
	reachWithin  = time.Second
)

// evict is the one call of agents that only the leader decides.
const evict = musterv1.Coordinator_Evict_FullMethodName

// everywhere are the calls that every coordinator answers.
var everywhere = map[string]bool{
	musterv1.Quotas_GetResourceQuota_FullMethodName: true, musterv1.Quotas_ListResourceQuotas_FullMethodName: true,
	musterv1.Quotas_GetQuotaForest_FullMethodName: true, musterv1.Quotas_ListQuotaForests_FullMethodName: true,
	musterv1.Quotas_GetQuotaBinding_FullMethodName: true, musterv1.Quotas_ListQuotaBindings_FullMethodName: true,
}

// repeatable reports whether a call may be sent again after it may have been
// done.
func repeatable(method string) bool {
	_, name, _ := strings.Cut(strings.TrimPrefix(method, "/"), "/")
	for _, reads := range []string{"Get", "List", "Explain", "Try"} {
		if strings.HasPrefix(name, reads) {
			return true
		}
	}
	return false
}

// Close closes the connections to other coordinators.
func (f *Forward) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var errs []error
	for address, c := range f.connections {
		errs = append(errs, c.Close())
		delete(f.connections, address)
	}
	return errors.Join(errs...)
}

// Intercept is the grpc.UnaryServerInterceptor.
func (f *Forward) Intercept(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	method := info.FullMethod
	if method != evict && !strings.HasPrefix(method, "/"+musterv1.Quotas_ServiceDesc.ServiceName+"/") {
		return next(ctx, req)
	}
	if rev := f.Leaders.Revision(); rev > 0 || everywhere[method] || hopped(ctx) {
		got, err := next(ctx, req)
		f.tell(ctx)
		if refused := elsewhere(err); refused == nil || hopped(ctx) || refused.GetReason() == api.LeaderLost && !repeatable(method) {
			return got, err
		}
	}
	return f.pass(ctx, req, method, next)
}

// tell lets the caller know how new the answer is.
func (f *Forward) tell(ctx context.Context) {
	if rev := f.Leaders.Revision(); rev > 0 {
		_ = grpc.SetHeader(ctx, metadata.Pairs(revisionKey, strconv.FormatInt(rev, 10))) // fails only outside of a call
	}
}

func hopped(ctx context.Context) bool {
	md, _ := metadata.FromIncomingContext(ctx)
	return len(md.Get(hopKey)) > 0
}

// elsewhere is the refusal in an error that asks for another coordinator, nil
// for any other error.
func elsewhere(err error) *musterv1.Refusal {
	for _, d := range status.Convert(err).Details() {
		if r, ok := d.(*musterv1.Refusal); ok && (r.GetReason() == api.NotLeader || r.GetReason() == api.LeaderLost) {
			return r
		}
	}
	return nil
}

// pass lets the leader answer, once there is one that does.
func (f *Forward) pass(ctx context.Context, req any, method string, next grpc.UnaryHandler) (any, error) {
	patience := f.Patience
	if patience == 0 {
		patience = defaultPatience
	}
	search, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	began := time.Now()
	for {
		address, own, err := f.Leaders.LeaderGRPC(search)
		if err != nil || search.Err() != nil {
			return nil, f.nobody(err)
		}
		var got any
		var sent bool
		if own {
			got, err = next(ctx, req)
			f.tell(ctx)
			sent = elsewhere(err).GetReason() == api.LeaderLost
		} else {
			got, sent, err = f.send(ctx, address, method, req)
		}
		refused := elsewhere(err)
		silent := !own && ctx.Err() == nil && isSilence(err)
		lost := silent || refused == nil && !own && status.Code(err) == codes.Unavailable && !told(err)
		switch {
		case err == nil || refused == nil && !lost, ctx.Err() != nil:
			return got, err
		case lost && sent && !repeatable(method):
			return nil, f.mayBeDone(method, address, err)
		case refused.GetReason() == api.LeaderLost && !repeatable(method):
			return nil, f.mayBeDone(method, "", err)
		case silent && time.Since(began) >= answerWithin:
			return nil, f.unreachable(address, err)
		}
		f.Logger.Debug("forward_failed", "method", method, "leader", address, "error", err)
		select {
		case <-time.After(leaderPause):
		case <-ctx.Done():
			return nil, status.FromContextError(ctx.Err()).Err()
		}
	}
}

// told reports whether an error is what a service said, and no failure to reach
// it.
func told(err error) bool { return len(status.Convert(err).Details()) > 0 }

func (f *Forward) nobody(err error) error {
	var refused *api.Status
	if !errors.As(err, &refused) {
		refused = api.Errorf(http.StatusServiceUnavailable, "coordinator %s does not lead, and no leader answers; ask again", f.ID)
		refused.Reason = api.NotLeader
	}
	return wire.ToRefusal(refused)
}

// mayBeDone refuses to repeat a call that the leader at an address has not
// answered.
func (f *Forward) mayBeDone(method, address string, err error) error {
	if address != "" && f.leadsAt(address) {
		s := api.Errorf(http.StatusServiceUnavailable, "the leader did not answer %s at %s (%s), and it may have been done: look, then repeat it",
			method, address, status.Convert(err).Message())
		s.Reason = api.LeaderUnreachable
		return wire.ToRefusal(s)
	}
	s := api.Errorf(http.StatusServiceUnavailable, "the leader was lost before it answered %s, which may have been done: look, then repeat it", method)
	s.Reason = api.LeaderLost
	return wire.ToRefusal(s)
}

// unreachable refuses a call that has done nothing.
func (f *Forward) unreachable(address string, err error) error {
	s := api.Errorf(http.StatusServiceUnavailable, "coordinator %s does not lead, and the leader does not answer at %s (%s): ask again, or another coordinator",
		f.ID, address, status.Convert(err).Message())
	s.Reason = api.NotLeader
	return wire.ToRefusal(s)
}

// leadsAt reports whether the leader serves at an address, as far as is known.
func (f *Forward) leadsAt(address string) bool {
	known, stop := context.WithCancel(context.Background())
	stop()
	now, own, err := f.Leaders.LeaderGRPC(known)
	return err == nil && !own && now == address
}

// isSilence reports whether an error of a try says that nothing came back.
func isSilence(err error) bool { return status.Code(err) == codes.DeadlineExceeded && !told(err) }

// send calls another coordinator. sent is false if the call never left.
func (f *Forward) send(ctx context.Context, address, method string, req any) (reply any, sent bool, err error) {
	answer, err := answerOf(method)
	if err != nil {
		return nil, false, err
	}
	try, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	conn, err := f.connection(try, address)
	switch {
	case errors.Is(err, errNoAnswer):
		f.drop(address)
		return nil, false, status.Errorf(codes.DeadlineExceeded, "%s: %v", method, err)
	case err != nil:
		return nil, false, status.Errorf(codes.Unavailable, "%s: %v", method, err)
	}
	incoming, _ := metadata.FromIncomingContext(ctx)
	outgoing := metadata.Pairs(hopKey, f.ID)
	outgoing.Set("authorization", incoming.Get("authorization")...)
	var header metadata.MD
	if err := conn.Invoke(metadata.NewOutgoingContext(try, outgoing), method, req, answer, grpc.Header(&header)); err != nil {
		if try.Err() != nil && ctx.Err() == nil {
			f.drop(address) // the connection may be as dead as the call
		}
		return nil, true, err
	}
	if told := header.Get(revisionKey); len(told) == 1 && !repeatable(method) {
		if rev, err := strconv.ParseInt(told[0], 10, 64); err == nil {
			within, cancel := context.WithTimeout(ctx, reachWithin)
			defer cancel()
			if err := f.Leaders.Reach(within, rev); err != nil {
				f.Logger.Debug("forward_behind", "revision", rev, "error", err)
			}
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

// connection returns one that is open, so that a call that fails on it has been
// sent.
func (f *Forward) connection(ctx context.Context, address string) (*grpc.ClientConn, error) {
	f.mu.Lock()
	c := f.connections[address]
	if c == nil {
		var err error
		if c, err = grpc.NewClient("passthrough:///"+address, f.Dial...); err != nil {
			f.mu.Unlock()
			return nil, err
		}
		if f.connections == nil {
			f.connections = map[string]*grpc.ClientConn{}
		}
		f.connections[address] = c
	}
	f.mu.Unlock()
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
func (f *Forward) drop(address string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.connections[address]
	if c == nil {
		return
	}
	delete(f.connections, address)
	var after time.Duration
	if c.GetState() == connectivity.Ready {
		after = 2 * answerWithin
	}
	time.AfterFunc(after, func() { _ = c.Close() }) // which fails only if it was closed
}
