package enroll

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/resource"
)

// Ban bans a node id: its certificate ends, nobody takes a call of it or calls
// it, it can neither enroll nor renew, and the gossip key is replaced. All of
// that is one Txn; the other coordinators follow the store. A ban that stands is
// returned as it is. Errors: ErrInvalid, and those of the store.
func (s *Service) Ban(ctx context.Context, node resource.NodeID, reason, by string) (Banned, error) {
	if err := s.node(node).Check(); err != nil {
		return Banned{}, fmt.Errorf("%w: ban: %w", ErrInvalid, err)
	}
	for range attempts {
		before, at, err := s.readBan(ctx, node)
		if err != nil || before.Banned {
			return Banned{node, before, at}, err
		}
		enrolled, had, err := s.readEnrolled(ctx, node)
		if err != nil {
			return Banned{}, err
		}
		now := time.Now()
		ban := record.Ban{
			Banned: true, Reason: reason, By: by, At: stamp(now), Generation: s.nextBan(node, before, now), Enrolled: had != 0 && enrolled.Ended == "",
		}
		txn := record.Txn{
			If:   []record.Compare{record.ModRevIs(record.BanKey(node), at), record.ModRevIs(record.EnrolledKey(node), had)},
			Then: []record.Op{record.Put(record.BanKey(node), record.MustEncode(ban))},
		}
		if ban.Enrolled {
			txn.Then = append(txn.Then, record.Put(record.EnrolledKey(node), record.MustEncode(s.end(node, enrolled, now))))
		}
		if err := s.rotateKeys(ctx, &txn, fmt.Sprintf("node %s was banned", node)); err != nil {
			return Banned{}, err
		}
		revision, err := s.commit(ctx, txn)
		if err != nil {
			return Banned{}, fmt.Errorf("ban node %s: %w", node, err)
		}
		if revision != 0 {
			s.log.Warn("node_banned", "node", node, "by", by, "reason", reason, "enrolled", ban.Enrolled)
			return Banned{node, ban, revision}, nil
		}
	}
	return Banned{}, fmt.Errorf("ban node %s: its keys kept changing; try again", node)
}

// Unban ends a ban for which check returns no error, so that the node id may enroll
// again, by a token: the certificate that the ban ended stays ended. Errors: ErrNotFound
// where no ban stands.
func (s *Service) Unban(ctx context.Context, node resource.NodeID, by string, check Check[Banned]) (Banned, error) {
	for range attempts {
		before, at, err := s.readBan(ctx, node)
		if err != nil {
			return Banned{}, err
		}
		if !before.Banned {
			return Banned{}, fmt.Errorf("%w: node %s is not banned", ErrNotFound, node)
		}
		if err := check.of(Banned{node, before, at}); err != nil {
			return Banned{}, err
		}
		now := time.Now()
		ban := record.Ban{By: by, At: stamp(now), Generation: s.nextBan(node, before, now)}
		revision, err := s.commit(ctx, record.Txn{
			If:   []record.Compare{record.ModRevIs(record.BanKey(node), at)},
			Then: []record.Op{record.Put(record.BanKey(node), record.MustEncode(ban))},
		})
		if err != nil {
			return Banned{}, fmt.Errorf("unban node %s: %w", node, err)
		}
		if revision != 0 {
			s.log.Warn("node_unbanned", "node", node, "by", by)
			return Banned{node, ban, revision}, nil
		}
	}
	return Banned{}, fmt.Errorf("unban node %s: its ban kept changing; try again", node)
}

// Banned is a decision about a node id: a ban, or the end of one.
type Banned struct {
	Node resource.NodeID
	record.Ban
	At resource.Revision // of the decision
}

// Bans lists the bans that stand, by node.
func (s *Service) Bans(ctx context.Context) ([]Banned, error) {
	all, _, err := s.config.Store.Range(ctx, record.BansPrefix, store.RangeOptions{})
	if err != nil {
		return nil, fmt.Errorf("read the bans: %w", err)
	}
	var list []Banned
	for _, kv := range all {
		node, err := record.ParseBanKey(kv.Key)
		if err != nil {
			return nil, err
		}
		ban, err := record.Decode[record.Ban](kv.Key, kv.Value)
		if err != nil {
			return nil, err
		}
		if ban.Banned {
			list = append(list, Banned{node, ban, kv.ModRev})
		}
	}
	slices.SortFunc(list, func(a, b Banned) int { return cmp.Compare(a.Node, b.Node) })
	return list, nil
}

// nextBan is the generation of the decision that follows the one in the store.
// The one that is known here may be newer, if the store was restored.
func (s *Service) nextBan(node resource.NodeID, stored record.Ban, now time.Time) int64 {
	_, _, known := s.known.node(node)
	return generation(max(stored.Generation, known.Generation), now)
}

// readBan returns the decision on a node, and revision 0 if there is none.
func (s *Service) readBan(ctx context.Context, node resource.NodeID) (record.Ban, resource.Revision, error) {
	key := record.BanKey(node)
	kv, found, _, err := s.config.Store.Get(ctx, key)
	if err != nil || !found {
		return record.Ban{}, 0, err
	}
	ban, err := record.Decode[record.Ban](key, kv.Value)
	return ban, kv.ModRev, err
}

// end is the record of a node whose certificate has ended.
func (s *Service) end(node resource.NodeID, r record.Enrolled, now time.Time) record.Enrolled {
	r.Keys, r.Token, r.Ended, r.Generation = nil, "", stamp(now), s.nextEnrolled(node, r.Generation, now)
	return r
}

// nextEnrolled is the generation of the record that follows the one in the
// store, as nextBan.
func (s *Service) nextEnrolled(node resource.NodeID, stored int64, now time.Time) int64 {
	known, _, _ := s.known.node(node)
	return generation(max(stored, known.Generation), now)
}

// commit writes, and takes what was written at once: the watch brings it to the
// other coordinators, and here a moment later. The revision is 0 where the comparisons
// of the Txn do not hold.
func (s *Service) commit(ctx context.Context, txn record.Txn) (resource.Revision, error) {
	result, err := s.config.Store.Txn(ctx, txn)
	if err != nil || !result.Succeeded {
		return 0, err
	}
	for _, op := range txn.Then {
		if op.Value != nil {
			s.learn(record.KV{Key: op.Key, Value: op.Value, ModRev: result.Revision})
		}
	}
	return result.Revision, nil
}
