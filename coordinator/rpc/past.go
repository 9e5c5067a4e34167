package rpc

import (
	"context"

	"github.com/musterd/muster/coordinator/era"
	"github.com/musterd/muster/coordinator/record"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/resource"
)

// judgePast compares an agent's knowledge of the store's past with the store, before the
// write of the registration, and notes the restoration accepted by the agent in the
// identity. The answer has the fields of a RegisterResponse about the past. An agent of
// an older version has no knowledge and accepts no restoration.
func (s *Server) judgePast(ctx context.Context, node resource.NodeID, m *musterv1.KnownStore, identity *record.NodeIdentity) (*musterv1.RegisterResponse, error) {
	k := era.Known{
		Revision: resource.Revision(m.GetRevision()), Epoch: resource.Epoch(m.GetEpoch()), Mark: m.GetTerm(), Restored: m.GetRestored(),
	}
	if tx := m.GetTx(); tx != "" {
		k.Anchor = era.Anchor{Key: record.TxKey(resource.TxID(tx)), Revision: resource.Revision(m.GetTxRevision())}
	}
	if m.GetAcceptsAny() {
		k = era.Known{}
	}
	restored, lost, err := era.Judge(ctx, s.Store, node, k, s.Era.Blind())
	if err != nil {
		return nil, err
	}
	epoch, mark := s.Era.Term()
	past := &musterv1.RegisterResponse{Epoch: int64(epoch), Term: mark, Restored: restored.Mark, Lost: lost}
	switch {
	case m.GetAcceptsAny():
		identity.Restored = restored.Mark
	case lost != "":
		s.Logger.Warn("node_knows_another_past", "node", node, "lost", lost)
		identity.Restored = m.GetRestored()
	case m.GetRestored() == restored.Mark:
		identity.Restored = restored.Mark
	default: // model: mutant UNDECLARED
		identity.Restored = m.GetRestored()
		past.Lost = "the store was restored from a backup since the agent registered: " + restored.Why
	}
	return past, nil
}
