package rpc

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/grant"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/resource"
)

// Bounds of the records that a fence leaves behind.
//
// A fence cannot be refused for a unit that the store does not have: a creation
// with room at once submits and commits in one Txn (PROTOCOL.md section 4), so
// that until then its agents hold a reservation of a unit that is nowhere. An
// agent that gives such a reservation back without a record could see it
// committed afterwards. It cannot be answered without a record either: a later
// leader may adopt a waiting grant of an older epoch, under the same
// identifier.
//
// So each fence of an absent transaction writes one record, and these bounds hold
// for it: the identifier reads as one that a leader makes, for a unit of a name
// that a leader gives, of an epoch that this store has reached; each node has the
// budget Fences; and the record names the node that asked. The leader collects
// those of units that are not there (sweepFences of package coordinator), and the
// next one the others, like every terminal record.
const maxUnitUID = 64 // bytes; a leader's have 42

// attemptOf reads a transaction's identifier as strictly as its leader writes it.
func attemptOf(tx resource.TxID) (resource.UnitUID, resource.Epoch, error) {
	unit, epoch, _, err := tx.Attempt()
	if err != nil {
		return "", 0, err
	}
	valid := len(unit) <= maxUnitUID && epoch > 0
	for i := range len(unit) {
		c := unit[i]
		valid = valid && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-')
	}
	if !valid {
		return "", 0, fmt.Errorf("transaction id %q: want a unit of 1 to %d letters, digits and '-', and an epoch greater than 0", string(tx), maxUnitUID)
	}
	return unit, epoch, nil
}

// Resolve returns a transaction's state. With fence an absent record becomes
// ABORTED first: the Txn that creates the record decides.
func (s *Server) Resolve(ctx context.Context, r *musterv1.ResolveRequest) (*musterv1.ResolveResponse, error) {
	tx, node := resource.TxID(r.GetTx()), resource.NodeID(r.GetNodeId())
	if err := checkNode(r.GetNodeId()); err != nil {
		return nil, err
	}
	unit, epoch, err := attemptOf(tx)
	if err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "tx: %v", err)
	}
	if err := s.spend(node, Resolutions); err != nil {
		return nil, err
	}
	rec, err := s.record(ctx, node, tx)
	if err != nil {
		return nil, err
	}
	if rec.GetState() != musterv1.Record_ABSENT || !r.GetFence() {
		return &musterv1.ResolveResponse{Record: rec}, nil
	}
	if now := rec.GetRevision(); int64(epoch) > now { // of an absent record it is the store's
		return nil, status.Errorf(codes.FailedPrecondition,
			"tx: %s is of epoch %d, and the store is at revision %d: no leader of this store has made it; if the store was restored, see `muster reconcile`", tx, epoch, now)
	}
	if err := s.fence(ctx, node, tx, unit, epoch); err != nil {
		return nil, err
	}
	if rec, err = s.record(ctx, node, tx); err != nil {
		return nil, err
	}
	return &musterv1.ResolveResponse{Record: rec}, nil
}

// fence creates a transaction's record as ABORTED, unless there is one.
func (s *Server) fence(ctx context.Context, node resource.NodeID, tx resource.TxID, unit resource.UnitUID, epoch resource.Epoch) error {
	if err := s.spend(node, Fences); err != nil {
		return err
	}
	key := record.TxKey(tx)
	value, err := record.Encode(record.Tx{
		State: grant.RecordAborted, Epoch: epoch, UnitUID: unit, Reason: record.FencedFor + string(node),
		Ended: time.Now().UTC().Format(time.RFC3339),
	})
	if err != nil {
		return status.Errorf(codes.InvalidArgument, "tx: %v", err)
	}
	if _, err := s.Store.Txn(ctx, record.Txn{If: []record.Compare{record.Absent(key)}, Then: []record.Op{record.Put(key, value)}}); err != nil {
		return storeStatus(err, "fence "+key)
	}
	return nil
}
