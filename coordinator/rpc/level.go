package rpc

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// checkLevel refuses an agent of a lower feature level than the cluster's, and adds the
// agent's level to the Txn of the registration. The Txn fails during a raise and after a
// raise since the read.
func (s *Server) checkLevel(ctx context.Context, node resource.NodeID, known record.KnownLevel, spec record.NodeSpec, t *record.Txn) error {
	kv, found, _, err := s.Store.Get(ctx, record.ClusterKey)
	if err != nil {
		return err
	}
	if found {
		c, err := record.Decode[record.Cluster](kv.Key, kv.Value)
		if err != nil {
			return err
		}
		if known.Level < c.Level {
			return status.Errorf(codes.FailedPrecondition, "node %s: the cluster has feature level %d, and its agent knows levels up to %d: install the version of the coordinators there", node, c.Level, known.Level)
		}
	}
	t.If = append(t.If, record.ModRevIs(record.ClusterKey, kv.ModRev), record.Absent(record.RaiseKey))
	if known.Level > 0 {
		known.Registered = spec.Registrations[len(spec.Registrations)-1]
		t.Then = append(t.Then, record.Put(record.NodeLevelKey(node), record.MustEncode(known)))
	}
	return nil
}
