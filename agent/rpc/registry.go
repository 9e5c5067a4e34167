package rpc

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/level"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/wire"
)

// Registration is an agent's registration of itself.
type Registration struct {
	Cluster     string
	Node        resource.NodeID
	Incarnation resource.Incarnation
	Host        grant.Host
	Address     string // where the leader reaches the agent
	Version     string
	// AssumeDeadAfter is the node's limit without contact, in whole milliseconds;
	// 0 where it has none.
	AssumeDeadAfter time.Duration
	// StartsWork: the agent starts the commands of members.
	StartsWork bool
	// RunsContainers: the agent starts commands in root file systems of their own.
	RunsContainers bool
	// MountsFolders: the agent mounts folders of the host in these root file systems.
	MountsFolders bool
	// Known is the agent's knowledge of the store's past.
	Known KnownStore
}

// KnownStore is an agent's knowledge of the store's past.
type KnownStore struct {
	Revision   resource.Revision
	Marks      ledger.Marks
	Tx         resource.TxID
	TxRevision resource.Revision
	AcceptsAny bool
}

// KnownOf is the knowledge of a ledger.
func KnownOf(l *ledger.Ledger) KnownStore {
	k := KnownStore{Revision: l.Heard(), Marks: l.Marks(), AcceptsAny: l.AcceptsAny()}
	k.Tx, k.TxRevision = l.Newest()
	return k
}

// Registered is the answer to a registration.
type Registered struct {
	// Revision is the store's of this incarnation's registration, Store the
	// store's own then; 0 where the coordinator does not send it.
	Revision, Store resource.Revision
	// Marks are those of the store; zero from an older coordinator.
	Marks ledger.Marks
	// Lost is the part of the agent's knowledge missing in the store, or "".
	Lost string
}

// Register records the agent's incarnation.
func (c *Coordinators) Register(ctx context.Context, r Registration) (Registered, error) {
	request := &musterv1.RegisterRequest{
		Cluster: r.Cluster, NodeId: string(r.Node), Incarnation: wire.ToIncarnation(r.Incarnation),
		Host: wire.ToHost(r.Host), AgentAddr: r.Address, Version: r.Version,
		AssumeDeadAfterMillis: r.AssumeDeadAfter.Milliseconds(), StartsWork: r.StartsWork, RunsContainers: r.RunsContainers, MountsFolders: r.MountsFolders,
		FeatureLevel: int32(level.Newest),
		Known: &musterv1.KnownStore{
			Revision: int64(r.Known.Revision), Epoch: int64(r.Known.Marks.Epoch), Term: r.Known.Marks.Term, Tx: string(r.Known.Tx), TxRevision: int64(r.Known.TxRevision),
			Restored: r.Known.Marks.Restored, AcceptsAny: r.Known.AcceptsAny,
		},
	}
	var done Registered
	err := c.call(ctx, "register "+string(r.Node), func(ctx context.Context, client musterv1.CoordinatorClient) error {
		response, err := client.Register(ctx, request)
		if err != nil {
			return err
		}
		done = Registered{
			Revision: resource.Revision(response.GetRevision()), Store: resource.Revision(response.GetStoreRevision()), Lost: response.GetLost(),
			Marks: ledger.Marks{Epoch: resource.Epoch(response.GetEpoch()), Term: response.GetTerm(), Restored: response.GetRestored()},
		}
		if done.Revision < 1 || done.Store < 0 {
			return fmt.Errorf("revision %d is not positive, or that of the store %d is negative: %w", done.Revision, done.Store, ErrBadMessage)
		}
		return nil
	})
	return done, err
}

// ReadNode returns every transaction record that names the node, and the
// store's revision of that read; 0 where the coordinator does not send it.
func (c *Coordinators) ReadNode(ctx context.Context, node resource.NodeID) ([]ledger.Record, resource.Revision, error) {
	var records []ledger.Record
	var revision resource.Revision
	err := c.call(ctx, "read node "+string(node), func(ctx context.Context, client musterv1.CoordinatorClient) error {
		response, err := client.ReadNode(ctx, &musterv1.ReadNodeRequest{NodeId: string(node)})
		if err != nil {
			return err
		}
		records, revision = nil, resource.Revision(response.GetRevision())
		for i, m := range response.GetRecords() {
			record, err := recordOf(m)
			if err != nil {
				return fmt.Errorf("records[%d]: %w: %w", i, err, ErrBadMessage)
			}
			records = append(records, record)
		}
		return nil
	})
	return records, revision, err
}

// Resolve returns a transaction's record, read linearizably. With fence an
// absent record is created as ABORTED first.
func (c *Coordinators) Resolve(ctx context.Context, node resource.NodeID, tx resource.TxID, fence bool) (ledger.Record, error) {
	var record ledger.Record
	err := c.call(ctx, "resolve "+string(tx), func(ctx context.Context, client musterv1.CoordinatorClient) error {
		response, err := client.Resolve(ctx, &musterv1.ResolveRequest{NodeId: string(node), Tx: string(tx), Fence: fence})
		if err != nil {
			return err
		}
		record, err = recordOf(response.GetRecord())
		if err == nil && record.Tx != tx {
			err = fmt.Errorf("the answer is about %q", record.Tx)
		}
		if err != nil {
			return fmt.Errorf("record: %w: %w", err, ErrBadMessage)
		}
		return nil
	})
	return record, err
}

func (c *Coordinators) call(ctx context.Context, what string, call func(context.Context, musterv1.CoordinatorClient) error) error {
	return c.each(ctx, what, func(ctx context.Context, conn *grpc.ClientConn) error {
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		return call(ctx, musterv1.NewCoordinatorClient(conn))
	})
}

func recordOf(m *musterv1.Record) (ledger.Record, error) {
	if err := needTx("record", m.GetTx()); err != nil {
		return ledger.Record{}, err
	}
	grace, err := millis("grace_millis", m.GetGraceMillis())
	if err != nil {
		return ledger.Record{}, err
	}
	r := ledger.Record{
		Tx: resource.TxID(m.GetTx()), Unit: resource.UnitUID(m.GetUnit()), Epoch: resource.Epoch(m.GetEpoch()),
		Grace: grace, Revision: resource.Revision(m.GetRevision()),
		Name: m.GetName(), Tenant: resource.TenantID(m.GetTenant()), UnitMembers: int(m.GetUnitMembers()),
	}
	if r.State, err = wire.FromRecordState(m.GetState()); err != nil {
		return ledger.Record{}, err
	}
	last := -1
	for i, mm := range m.GetMembers() {
		index, assignment, err := wire.FromMember(mm)
		if err != nil {
			return ledger.Record{}, fmt.Errorf("members[%d]: %w", i, err)
		}
		if index <= last {
			return ledger.Record{}, fmt.Errorf("members[%d].member: %d follows %d, want ascending", i, index, last)
		}
		last = index
		r.Members = append(r.Members, ledger.Holding{Index: index, Assignment: assignment})
	}
	return r, nil
}
