package agent_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"

	"github.com/musterd/muster/agent"
	"github.com/musterd/muster/agent/journal"
	"github.com/musterd/muster/agent/rpc"
	"github.com/musterd/muster/agent/usage"
	"github.com/musterd/muster/devices/fake"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	schedulerv1 "github.com/musterd/muster/proto/scheduler/v1"
	"github.com/musterd/muster/rpcauth"
)

const (
	cluster = "test"
	node    = "n1"
	patient = 30 * time.Second // the time that a test waits for an event that must come
)

func token(t testing.TB) rpcauth.Token {
	t.Helper()
	tok, err := rpcauth.NewToken("0123456789abcdef0123456789abcdef")
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// store is a small coordinator over a map, with the semantics of PROTOCOL.md:
// an absent record means undecided, and a fence decides it.
type store struct {
	musterv1.UnimplementedCoordinatorServer
	schedulerv1.UnimplementedNodeAgentServer

	mu         sync.Mutex
	revision   int64
	identity   *musterv1.Incarnation
	identityAt int64
	records    map[string]*musterv1.Record
	registered int  // calls of Register
	resolved   int  // calls of Resolve
	away       bool // answers Unavailable
	refused    int  // calls while away
	evicted    *musterv1.EvictAllocationRequest
	unread     chan struct{} // unless nil, Resolve waits until it is closed
	beats      chan *schedulerv1.HeartbeatRequest
	directives chan *schedulerv1.HeartbeatResponse
}

func newStore() *store {
	return &store{
		revision: 1000, records: map[string]*musterv1.Record{},
		beats: make(chan *schedulerv1.HeartbeatRequest, 100), directives: make(chan *schedulerv1.HeartbeatResponse, 1),
	}
}

func (s *store) enter() error {
	s.mu.Lock()
	if s.away {
		s.refused++
		s.mu.Unlock()
		return status.Error(codes.Unavailable, "the coordinator is away")
	}
	return nil
}

func (s *store) Register(_ context.Context, r *musterv1.RegisterRequest) (*musterv1.RegisterResponse, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	if r.GetCluster() != cluster || r.GetNodeId() != node || r.GetAgentAddr() == "" || r.GetHost().GetTopology() == nil {
		return nil, status.Errorf(codes.InvalidArgument, "register %v", r)
	}
	s.registered++
	if !proto.Equal(s.identity, r.GetIncarnation()) {
		s.revision++
		s.identity, s.identityAt = r.GetIncarnation(), s.revision
	}
	return &musterv1.RegisterResponse{Revision: s.identityAt, StoreRevision: s.revision}, nil
}

func (s *store) ReadNode(context.Context, *musterv1.ReadNodeRequest) (*musterv1.ReadNodeResponse, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	r := &musterv1.ReadNodeResponse{Revision: s.revision}
	for _, record := range s.records {
		if record.State != musterv1.Record_ABORTED {
			r.Records = append(r.Records, proto.Clone(record).(*musterv1.Record))
		}
	}
	return r, nil
}

func (s *store) Resolve(ctx context.Context, r *musterv1.ResolveRequest) (*musterv1.ResolveResponse, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	s.resolved++
	unread := s.unread
	s.mu.Unlock()
	if unread != nil {
		select {
		case <-unread:
		case <-ctx.Done():
			return nil, status.FromContextError(ctx.Err()).Err()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	record := s.records[r.GetTx()]
	if record == nil && r.GetFence() {
		s.revision++
		record = &musterv1.Record{Tx: r.GetTx(), State: musterv1.Record_ABORTED, Revision: s.revision}
		s.records[r.GetTx()] = record
	}
	if record == nil {
		record = &musterv1.Record{Tx: r.GetTx(), State: musterv1.Record_ABSENT}
	}
	return &musterv1.ResolveResponse{Record: proto.Clone(record).(*musterv1.Record)}, nil
}

func (s *store) Evict(_ context.Context, r *musterv1.EvictAllocationRequest) (*musterv1.EvictAllocationResponse, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	s.evicted = r
	return &musterv1.EvictAllocationResponse{Tx: r.GetAllocation(), Revision: s.revision}, nil
}

func (s *store) Heartbeat(stream schedulerv1.NodeAgent_HeartbeatServer) error {
	for {
		m, err := stream.Recv()
		if err != nil {
			return nil //nolint:nilerr // the agent has hung up
		}
		select {
		case s.beats <- m:
		default:
		}
		select {
		case d := <-s.directives:
			if err := stream.Send(d); err != nil {
				return err
			}
		default:
		}
	}
}

// put commits, or moves a record on.
func (s *store) put(tx string, state musterv1.Record_State, members []*musterv1.MemberAssignment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revision++
	s.records[tx] = &musterv1.Record{Tx: tx, Unit: "u-" + tx, Epoch: 1, State: state, Members: members, Revision: s.revision, Incarnation: s.identity}
}

func (s *store) record(tx string) musterv1.Record_State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.records[tx].GetState()
}

func (s *store) set(change func(*store)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

// rig is an agent on a made-up machine, with a store behind a coordinator.
type rig struct {
	t     testing.TB
	store *store
	dir   string
	fs    journal.FS
	boot  string

	agent    *agent.Agent
	listener *bufconn.Listener
	stop     context.CancelFunc
	ended    chan error
	tune     func(*agent.Config, *agent.Deps)
	coord    *bufconn.Listener
}

func newRig(t testing.TB) *rig {
	t.Helper()
	r := &rig{t: t, store: newStore(), dir: t.TempDir(), boot: "boot-1", coord: bufconn.Listen(1 << 20)}
	server := grpc.NewServer(rpcauth.ServerOptions(token(t))...)
	musterv1.RegisterCoordinatorServer(server, r.store)
	schedulerv1.RegisterNodeAgentServer(server, r.store)
	go server.Serve(r.coord)
	t.Cleanup(server.Stop)
	return r
}

// config is the configuration for start.
func (r *rig) config() (agent.Config, agent.Deps) {
	profile, err := fake.Lookup("dgx-a100")
	if err != nil {
		r.t.Fatal(err)
	}
	r.listener = bufconn.Listen(1 << 20)
	c := agent.Config{
		Cluster: cluster, Node: node, Version: "test", DataDir: r.dir, Coordinators: []string{"coordinator"},
		Heartbeat: time.Minute, HeldSync: time.Millisecond, Headroom: 1 << 20,
	}
	d := agent.Deps{
		Discovered: agent.Discovered{BootID: r.boot, Topology: profile.Topology(), Inventory: profile.Inventory(node)},
		Token:      token(r.t), Listener: r.listener, Address: "127.0.0.1:1",
		Dialer:    func(ctx context.Context, _ string) (net.Conn, error) { return r.coord.DialContext(ctx) },
		Usage:     func(context.Context) (usage.Usage, error) { return usage.Usage{CPU: 1500, Memory: 1 << 30}, nil },
		Log:       slog.New(slog.NewTextHandler(testLog{r.t}, &slog.HandlerOptions{Level: slog.LevelWarn})),
		JournalFS: r.fs,
	}
	if r.tune != nil {
		r.tune(&c, &d)
	}
	return c, d
}

type testLog struct{ t testing.TB }

func (l testLog) Write(line []byte) (int, error) {
	l.t.Helper()
	if !testing.Short() {
		fmt.Fprintf(io.Discard, "%s", line)
	}
	return len(line), nil
}

// start opens and runs the agent.
func (r *rig) start() {
	r.t.Helper()
	a, err := agent.New(r.config())
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	r.agent, r.stop, r.ended = a, stop, make(chan error, 1)
	gone := make(chan struct{})
	go func() { r.ended <- a.Run(ctx); close(gone) }()
	r.t.Cleanup(func() { // its folder goes next
		stop()
		select {
		case <-gone:
		case <-time.After(patient):
			r.t.Error("the agent does not stop")
		}
	})
}

// end stops the agent and returns the error of Run.
func (r *rig) end() error {
	r.t.Helper()
	r.stop()
	select {
	case err := <-r.ended:
		return err
	case <-time.After(patient):
		r.t.Fatal("the agent does not stop")
		return nil
	}
}

// dial connects to the agent.
func (r *rig) dial(tok rpcauth.Token) *grpc.ClientConn {
	r.t.Helper()
	listener := r.listener
	conn, err := rpc.Dial("agent", tok, func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) })
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { conn.Close() })
	return conn
}

// leader is the other end of a session.
type leader struct {
	t        testing.TB
	stream   musterv1.Agent_SessionClient
	hello    *musterv1.AgentHello
	epoch    int64
	messages chan *musterv1.AgentMessage
	failed   chan error
}

// try opens a session and reads the agent's hello.
func (r *rig) try(hello *musterv1.LeaderHello) (*leader, error) {
	r.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r.t.Cleanup(cancel)
	stream, err := musterv1.NewAgentClient(r.dial(token(r.t))).Session(ctx)
	if err != nil {
		return nil, err
	}
	opening := &musterv1.LeaderMessage{Message: &musterv1.LeaderMessage_Hello{Hello: hello}}
	if hello == nil {
		opening.Message = &musterv1.LeaderMessage_Resync{Resync: &musterv1.Resync{}}
	}
	if err := stream.Send(opening); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	first, err := stream.Recv()
	if err != nil {
		return nil, err
	}
	if first.GetHello() == nil {
		r.t.Fatalf("first message %v, want hello", first)
	}
	l := &leader{t: r.t, stream: stream, hello: first.GetHello(), epoch: hello.GetEpoch(), messages: make(chan *musterv1.AgentMessage, 1000), failed: make(chan error, 1)}
	go func() {
		for {
			m, err := stream.Recv()
			if err != nil {
				l.failed <- err
				return
			}
			l.messages <- m
		}
	}()
	return l, nil
}

// lead opens a session that must be let in, and waits until the agent may
// promise.
func (r *rig) lead(epoch int64) *leader {
	r.t.Helper()
	l, err := r.try(r.store.hello(epoch))
	if err != nil {
		r.t.Fatal(err)
	}
	if l.hello.GetRegisteredRevision() == 0 {
		l.until("registered", func(m *musterv1.AgentMessage) bool { return m.GetRegistered() != nil })
		l.until("occupancy", func(m *musterv1.AgentMessage) bool { return m.GetOccupancy() != nil })
	}
	return l
}

func (s *store) hello(epoch int64) *musterv1.LeaderHello {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &musterv1.LeaderHello{Cluster: cluster, LeaderId: "c1", Epoch: epoch, Registered: s.identity, RegisteredRevision: s.identityAt}
}

// until returns the first message that is wanted; others are passed over.
func (l *leader) until(what string, wanted func(*musterv1.AgentMessage) bool) *musterv1.AgentMessage {
	l.t.Helper()
	deadline := time.After(patient)
	for {
		select {
		case m := <-l.messages:
			if wanted(m) {
				return m
			}
		case err := <-l.failed:
			l.t.Fatalf("waiting for %s: session ended: %v", what, err)
		case <-deadline:
			l.t.Fatalf("waiting for %s: nothing came", what)
		}
	}
}

// reply returns the next reply about a transaction.
func (l *leader) reply(tx string) *musterv1.Reply {
	l.t.Helper()
	return l.until("a reply about "+tx, func(m *musterv1.AgentMessage) bool { return m.GetReply() != nil && m.GetReply().GetTx() == tx }).GetReply()
}

// outcome returns the next reply about a transaction other than that it is
// under notice, which the agent may repeat.
func (l *leader) outcome(tx string) *musterv1.Reply {
	l.t.Helper()
	for {
		if r := l.reply(tx); r.GetState() != musterv1.Reply_EVICTING {
			return r
		}
	}
}

func (l *leader) send(m any) {
	l.t.Helper()
	out := &musterv1.LeaderMessage{}
	switch m := m.(type) {
	case *musterv1.Reserve:
		out.Message = &musterv1.LeaderMessage_Reserve{Reserve: m}
	case *musterv1.Commit:
		out.Message = &musterv1.LeaderMessage_Commit{Commit: m}
	case *musterv1.Abort:
		out.Message = &musterv1.LeaderMessage_Abort{Abort: m}
	case *musterv1.Release:
		out.Message = &musterv1.LeaderMessage_Release{Release: m}
	case *musterv1.Evict:
		out.Message = &musterv1.LeaderMessage_Evict{Evict: m}
	case *musterv1.Forget:
		out.Message = &musterv1.LeaderMessage_Forget{Forget: m}
	case *musterv1.Cordon:
		out.Message = &musterv1.LeaderMessage_Cordon{Cordon: m}
	case *musterv1.Reconcile:
		out.Message = &musterv1.LeaderMessage_Reconcile{Reconcile: m}
	case *musterv1.KubeletPool:
		out.Message = &musterv1.LeaderMessage_KubeletPool{KubeletPool: m}
	case *musterv1.Start:
		out.Message = &musterv1.LeaderMessage_Start{Start: m}
	case *musterv1.Resync:
		out.Message = &musterv1.LeaderMessage_Resync{Resync: m}
	default:
		l.t.Fatalf("no such message: %T", m)
	}
	if err := l.stream.Send(out); err != nil {
		l.t.Fatal(err)
	}
}

// want is a request for GPUs, with a core and memory for each.
func want(gpus int) *musterv1.MemberRequest {
	return &musterv1.MemberRequest{Request: &musterv1.Request{Cpu: int64(gpus) * 1000, Memory: int64(gpus) << 30, Gpus: int32(gpus)}}
}

func (l *leader) reserve(tx string, gpus int, ttl time.Duration) *musterv1.Reply {
	l.t.Helper()
	l.send(&musterv1.Reserve{Tx: tx, Unit: "u-" + tx, Epoch: l.epoch, Members: []*musterv1.MemberRequest{want(gpus)}, TtlMillis: ttl.Milliseconds()})
	return l.reply(tx)
}

// grant reserves and commits, in the store and at the agent.
func (r *rig) grant(l *leader, tx string, gpus int) *musterv1.Reply {
	r.t.Helper()
	yes := l.reserve(tx, gpus, time.Minute)
	mustBe(r.t, yes, musterv1.Reply_RESERVED)
	r.store.put(tx, musterv1.Record_COMMITTED, yes.GetMembers())
	var revision int64
	r.store.set(func(s *store) { revision = s.revision })
	l.send(&musterv1.Commit{Tx: tx, Epoch: l.epoch, Revision: revision})
	held := l.reply(tx)
	mustBe(r.t, held, musterv1.Reply_HELD)
	return held
}

func mustBe(t testing.TB, r *musterv1.Reply, want musterv1.Reply_State) {
	t.Helper()
	if r.GetState() != want {
		t.Fatalf("%s is %s (%v), want %s", r.GetTx(), r.GetState(), r.GetReasons(), want)
	}
}

func uuids(r *musterv1.Reply) []string {
	var list []string
	for _, m := range r.GetMembers() {
		for _, g := range m.GetAssignment().GetGpus() {
			list = append(list, g.GetUuid())
		}
	}
	slices.Sort(list)
	return list
}

// eventually waits for a condition that another goroutine brings about.
func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	deadline := time.Now().Add(patient)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
		<-tick.C
	}
}
