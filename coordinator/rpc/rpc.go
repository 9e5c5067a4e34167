// Package rpc serves the agents' calls to any coordinator: Register, ReadNode
// and Resolve of muster.v1.Coordinator, and the Heartbeat of
// scheduler.v1.NodeAgent. All of it works on the store alone, linearizably, so
// that any coordinator can answer, leader or not; the only record it can create
// is ABORTED.
package rpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/musterd/muster/coordinator/era"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/level"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/wire"
)

// Server implements muster.v1.Coordinator.
type Server struct {
	musterv1.UnimplementedCoordinatorServer
	Cluster string
	Store   store.KVStore
	Logger  *slog.Logger
	// Registered, if set, is called with each registration after it is durable.
	Registered func(node resource.NodeID, spec record.NodeSpec, specRev resource.Revision)
	// Evictor serves Evict; nil refuses it.
	Evictor Evictor
	// OverBudget, if set, is called whenever a node is refused for its budget. It
	// may be called from many goroutines and must not block.
	OverBudget func(resource.NodeID, Budget)
	// ApproveGrowth: a node that registers more than before gives the approved part
	// until an operator has approved the rest. Without it, every registration is
	// approved.
	ApproveGrowth bool
	// Era is this coordinator's knowledge of the store's past; may be nil.
	Era *era.Keeper

	spent spending
}

func (s *Server) spend(node resource.NodeID, b Budget) error {
	return s.spent.spend(node, b, s.Logger, s.OverBudget)
}

// attempts bounds how often a Txn is repeated whose compares lost a race.
const attempts = 8

// Register records an agent's incarnation and its host's hardware. The same
// incarnation again keeps its registration, and its revision: promises made
// under it stay valid, unless it announces another limit without contact.
// Operators' settings on the node are kept.
func (s *Server) Register(ctx context.Context, r *musterv1.RegisterRequest) (*musterv1.RegisterResponse, error) {
	if r.GetCluster() != s.Cluster {
		return nil, status.Errorf(codes.FailedPrecondition, "cluster %.64q: this coordinator serves %q", r.GetCluster(), s.Cluster)
	}
	node := resource.NodeID(r.GetNodeId())
	if err := checkNode(r.GetNodeId()); err != nil {
		return nil, err
	}
	incarnation, err := wire.FromIncarnation(r.GetIncarnation())
	if err != nil || incarnation.IsZero() {
		return nil, status.Errorf(codes.InvalidArgument, "incarnation of %s: %v", node, errors.Join(err, errIfZero(incarnation)))
	}
	host, err := wire.FromHost(r.GetHost())
	if err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "node %s: %v", node, err)
	}
	fresh, err := specOf(node, host, r)
	if err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "node %s: %v", node, err)
	}
	fresh.RegisteredBy = []record.Registrant{{Hostname: fresh.Hostname, AgentAddr: fresh.AgentAddr, Journal: incarnation.JournalID}}
	identity := record.NodeIdentity{Incarnation: incarnation, AssumeDeadMillis: r.GetAssumeDeadAfterMillis()}
	if err := checkAssumeDead(identity.AssumeDeadMillis); err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "node %s: %v", node, err)
	}
	if err := s.spend(node, Registrations); err != nil {
		return nil, err
	}
	past, err := s.judgePast(ctx, node, r.GetKnown(), &identity)
	if err != nil {
		return nil, storeStatus(err, "register "+string(node))
	}
	known := record.KnownLevel{Level: level.Level(r.GetFeatureLevel())}
	for range attempts {
		done, err := s.register(ctx, node, identity, fresh, known)
		if err != nil {
			return nil, storeStatus(err, "register "+string(node))
		}
		if done != nil {
			s.Logger.Info("node_registers", "node", node, "incarnation", incarnation.String(), "revision", done.GetRevision())
			done.Epoch, done.Term, done.Restored, done.Lost = past.Epoch, past.Term, past.Restored, past.Lost
			return done, nil
		}
	}
	return nil, status.Errorf(codes.Aborted, "register %s: its keys kept changing; try again", node)
}

func checkNode(id string) error {
	if id == "" || len(id) > 63 {
		return status.Errorf(codes.InvalidArgument, "node_id %.64q: want 1 to 63 characters", id)
	}
	return nil
}

func errIfZero(i resource.Incarnation) error {
	if i.IsZero() {
		return errors.New("missing")
	}
	return nil
}

// The bounds of a node's limit without contact; 0 is none.
const (
	minAssumeDead = time.Minute
	maxAssumeDead = 24 * time.Hour
)

func checkAssumeDead(millis int64) error {
	if millis != 0 && (millis < minAssumeDead.Milliseconds() || millis > maxAssumeDead.Milliseconds()) {
		return fmt.Errorf("assume_dead_after_millis: %d is outside %d..%d; 0 is off", millis, minAssumeDead.Milliseconds(), maxAssumeDead.Milliseconds())
	}
	return nil
}

// register tries once; it returns nil when another writer was faster.
func (s *Server) register(ctx context.Context, node resource.NodeID, who record.NodeIdentity, fresh record.NodeSpec, known record.KnownLevel) (*musterv1.RegisterResponse, error) {
	identityKey, specKey := record.NodeIdentityKey(node), record.NodeSpecKey(node)
	identity, _, _, err := s.Store.Get(ctx, identityKey)
	if err != nil {
		return nil, err
	}
	spec, found, _, err := s.Store.Get(ctx, specKey)
	if err != nil {
		return nil, err
	}
	var old record.NodeSpec
	if found {
		old, err = record.Decode[record.NodeSpec](specKey, spec.Value)
		if err != nil {
			return nil, err
		}
		fresh.Taints, fresh.Unschedulable, fresh.Created = old.Taints, old.Unschedulable, old.Created
		fresh.Registrations = append(slices.Clone(old.Registrations[max(0, len(old.Registrations)+1-record.MaxRegistrations):]), fresh.Registrations...)
		fresh.RegisteredBy = append(slices.Clone(old.RegisteredBy[max(0, len(old.RegisteredBy)+1-record.MaxRegistrations):]), fresh.RegisteredBy...)
		fresh.OperatorLabels, fresh.Annotations, fresh.Token, fresh.Violation, fresh.Drain = old.OperatorLabels, old.Annotations, old.Token, old.Violation, old.Drain
		fresh.Expected, fresh.Lowered, fresh.Kubelet = old.Expected, old.Lowered, old.Kubelet
	}
	if err := s.admit(ctx, node, old, &fresh); err != nil {
		return nil, err
	}
	value, err := record.Encode(fresh)
	if err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "node %s: %v", node, err)
	}
	t := record.Txn{
		If:   []record.Compare{record.ModRevIs(identityKey, identity.ModRev), record.ModRevIs(specKey, spec.ModRev)},
		Then: []record.Op{record.Put(specKey, value)},
	}
	if err := s.checkLevel(ctx, node, known, fresh, &t); err != nil {
		return nil, err
	}
	same := false
	if identity.ModRev != 0 {
		before, err := record.Decode[record.NodeIdentity](identityKey, identity.Value)
		if err != nil {
			return nil, err
		}
		same = before == who
	}
	if !same {
		value, err := record.Encode(who)
		if err != nil {
			return nil, status.Errorf(codes.InvalidArgument, "node %s: %v", node, err)
		}
		t.Then = append(t.Then, record.Put(identityKey, value))
	}
	result, err := s.Store.Txn(ctx, t)
	if err != nil || !result.Succeeded {
		return nil, err
	}
	s.report(node, old, fresh)
	if s.Registered != nil {
		s.Registered(node, fresh, result.Revision)
	}
	response := &musterv1.RegisterResponse{Revision: int64(result.Revision), StoreRevision: int64(result.Revision)}
	if same {
		response.Revision = int64(identity.ModRev)
	}
	return response, nil
}

// ReadNode returns every record that names the node in its index, with the
// node's own members. The agent has registered before: each later commit counts
// on its new incarnation.
func (s *Server) ReadNode(ctx context.Context, r *musterv1.ReadNodeRequest) (*musterv1.ReadNodeResponse, error) {
	node := resource.NodeID(r.GetNodeId())
	if err := checkNode(r.GetNodeId()); err != nil {
		return nil, err
	}
	if err := s.spend(node, Reads); err != nil {
		return nil, err
	}
	index, revision, err := s.Store.Range(ctx, record.NodeTxIn(node), store.RangeOptions{})
	if err != nil {
		return nil, storeStatus(err, "read the index of "+string(node))
	}
	response := &musterv1.ReadNodeResponse{Revision: int64(revision)}
	for _, kv := range index {
		key, err := record.ParseNodeKey(kv.Key)
		if err != nil {
			return nil, status.Errorf(codes.DataLoss, "%v", err)
		}
		rec, err := s.record(ctx, node, key.Tx)
		if err != nil {
			return nil, err
		}
		if rec.GetState() != musterv1.Record_ABSENT {
			response.Records = append(response.Records, rec)
		}
	}
	return response, nil
}

// record reads one transaction's record as the node is to see it.
func (s *Server) record(ctx context.Context, node resource.NodeID, tx resource.TxID) (*musterv1.Record, error) {
	key := record.TxKey(tx)
	kv, found, revision, err := s.Store.Get(ctx, key)
	if err != nil {
		return nil, storeStatus(err, "read "+key)
	}
	m := &musterv1.Record{Tx: string(tx), State: musterv1.Record_ABSENT, Revision: int64(revision)}
	if !found {
		return m, nil
	}
	rec, err := record.Decode[record.Tx](key, kv.Value)
	if err != nil {
		return nil, status.Errorf(codes.DataLoss, "%v", err)
	}
	m.Unit, m.Epoch, m.Revision = string(rec.UnitUID), int64(rec.Epoch), int64(kv.ModRev)
	m.Name, m.Tenant, m.UnitMembers = rec.Unit.String(), string(rec.Tenant), int32(len(rec.Members)+len(rec.LostMembers))
	state, grace := rec.SeenBy(node)
	m.State, m.GraceMillis = wire.ToRecordState(state), grace*1000
	for _, member := range rec.Members {
		if member.Node == node {
			m.Incarnation = wire.ToIncarnation(member.Incarnation)
			m.Members = append(m.Members, wire.ToMember(member.Member, member.Assignment))
		}
	}
	slices.SortFunc(m.Members, func(a, b *musterv1.MemberAssignment) int { return cmp.Compare(a.GetMember(), b.GetMember()) })
	return m, nil
}

// storeStatus is the one map from a store's errors to gRPC codes.
func storeStatus(err error, what string) error {
	if _, is := status.FromError(err); is {
		return err
	}
	code := codes.Unavailable
	switch {
	case errors.Is(err, context.Canceled):
		code = codes.Canceled
	case errors.Is(err, context.DeadlineExceeded):
		code = codes.DeadlineExceeded
	}
	return status.Errorf(code, "%s: %v", what, err)
}
