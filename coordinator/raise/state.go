package raise

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/level"
	"github.com/musterd/muster/resource"
)

// The kinds of parties.
const (
	coordinator = "Coordinator"
	node        = "Node"
)

// state is the knowledge of all parties at a revision of the store.
type state struct {
	cluster record.Cluster
	// written is the revision of the last write of cluster, raising that of RaiseKey; 0: no
	// key.
	written, raising resource.Revision
	// leader is the key of the leader; empty without a candidate.
	leader  store.Leader
	parties []api.BehindLevel // coordinators, then nodes, by name
}

// look reads the state. Errors are the store's, or of a key that cannot be decoded.
func look(ctx context.Context, s store.KVStore) (*state, error) {
	leaders, at, err := s.Range(ctx, record.LeaderPrefix, store.RangeOptions{})
	if err != nil {
		return nil, fmt.Errorf("read the candidates: %w", err)
	}
	var read [3][]record.KV
	for i, prefix := range []string{record.ClusterKey, record.LevelsPrefix, record.NodesPrefix} {
		if read[i], _, err = s.Range(ctx, prefix, store.RangeOptions{AtRevision: at}); err != nil {
			return nil, fmt.Errorf("read the feature levels: %w", err)
		}
	}
	return stateOf(leaders, read[0], read[1], read[2])
}

// stateOf makes a state of keys at a revision: of candidates, of the cluster, below
// LevelsPrefix, and of nodes.
func stateOf(leaders, cluster, levels, nodes []record.KV) (*state, error) {
	s := &state{}
	known := map[string]record.KnownLevel{}
	for _, kv := range levels {
		if kv.Key == record.RaiseKey {
			s.raising = kv.ModRev
			continue
		}
		k, err := record.Decode[record.KnownLevel](kv.Key, kv.Value)
		if err != nil {
			return nil, err
		}
		known[kv.Key] = k
	}
	var err error
	for _, kv := range cluster {
		if s.written = kv.ModRev; err == nil {
			s.cluster, err = record.Decode[record.Cluster](kv.Key, kv.Value)
		}
	}
	candidates, fault := store.Candidates(leaders)
	if err = cmp.Or(err, fault); err != nil {
		return nil, err
	}
	if len(candidates) > 0 {
		s.leader = candidates[0]
	}
	for _, c := range candidates {
		s.parties = append(s.parties, api.BehindLevel{Kind: coordinator, Name: c.Address.ID, Level: int(known[record.LevelOfCandidate(c.Key)].Level)})
	}
	for _, kv := range nodes {
		key, err := record.ParseNodeKey(kv.Key)
		if err != nil {
			return nil, err
		}
		if key.Part != record.NodeSpecPart {
			continue
		}
		spec, err := record.Decode[record.NodeSpec](kv.Key, kv.Value)
		if err != nil {
			return nil, err
		}
		if !spec.HasRegistered() {
			continue
		}
		p := api.BehindLevel{Kind: node, Name: string(key.ID)}
		if k := known[record.NodeLevelKey(key.ID)]; len(spec.Registrations) > 0 && k.Registered == spec.Registrations[len(spec.Registrations)-1] {
			p.Level = int(k.Level)
		}
		s.parties = append(s.parties, p)
	}
	slices.SortFunc(s.parties, func(a, b api.BehindLevel) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name), cmp.Compare(a.Level, b.Level))
	})
	return s, nil
}

// below are the parties that do not know a level.
func (s *state) below(l level.Level) []api.BehindLevel {
	var list []api.BehindLevel
	for _, p := range s.parties {
		if p.Level < int(l) {
			list = append(list, p)
		}
	}
	return list
}

// named bounds the parties in a refusal.
const named = 8

// raiseTo is the Txn of a raise, or the refusal.
func (s *state) raiseTo(want level.Level, name string) (record.Txn, *api.Status) {
	if behind := s.below(want); len(behind) > 0 {
		var parts []string
		for _, p := range behind[:min(named, len(behind))] {
			parts = append(parts, fmt.Sprintf("%s %s knows %d", strings.ToLower(p.Kind), p.Name, p.Level))
		}
		if more := len(behind) - named; more > 0 {
			parts = append(parts, fmt.Sprintf("%d more", more))
		}
		return record.Txn{}, api.Errorf(http.StatusConflict, "feature level %d is not known everywhere: %s; install this version there and restart, delete nodes that are gone", want, strings.Join(parts, ", "))
	}
	if s.leader.Key == "" {
		return record.Txn{}, api.Errorf(http.StatusServiceUnavailable, "feature level %d: no coordinator leads; ask again", want)
	}
	c := s.cluster
	c.Name, c.Level = cmp.Or(c.Name, name), want
	return record.Txn{
		If: []record.Compare{
			record.CreateRevIs(s.leader.Key, resource.Revision(s.leader.Epoch)), record.ModRevIs(record.ClusterKey, s.written), record.ModRevIs(record.RaiseKey, s.raising),
		},
		Then: []record.Op{record.Put(record.ClusterKey, record.MustEncode(c))},
	}, nil
}
