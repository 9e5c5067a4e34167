// Package raise shows the feature level of a cluster and raises the level (ADR 139): in a
// Txn under the leader's epoch, once each candidate and the agent of each registered node
// know the new level. The package does not decide which features a level has: package level
// does. Any coordinator may raise.
package raise

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/level"
)

// Door answers for the feature level.
type Door struct {
	Cluster string
	Store   store.Store
	// Noted is Store with the entries of the audit; nil = Store.
	Noted store.KVStore
	// Known is the newest level of this coordinator, Features those up to it.
	Known    level.Level
	Features []level.Feature
}

// within is the lease of a raise: a dead coordinator stops registrations no longer.
const within = 5 * time.Second

// GetFeatureLevel returns the level and the parties below Known. Errors are the store's.
func (d *Door) GetFeatureLevel(ctx context.Context) (*api.FeatureLevel, error) {
	s, err := look(ctx, d.Store)
	if err != nil {
		return nil, err
	}
	return d.shown(s), nil
}

// RaiseFeatureLevel raises the level to p.Level. An *api.Status is a refusal, 409 with the
// names of those below the level; other errors are the store's.
func (d *Door) RaiseFeatureLevel(ctx context.Context, p api.FeatureLevelPatch, by string) (*api.FeatureLevel, error) {
	if status := p.Validate(); status != nil {
		return nil, status
	}
	before, err := look(ctx, d.Store)
	if err != nil {
		return nil, err
	}
	if status := d.shown(before).Raisable(p.Level); status != nil {
		return nil, status
	}
	want := level.Level(p.Level)
	if before.cluster.Level == want {
		return d.shown(before), nil
	}
	end, err := d.begin(ctx, record.Raise{To: want, By: by})
	if err != nil {
		return nil, err
	}
	defer end()
	s, err := look(ctx, d.Store) // no agent registers from here on
	if err != nil {
		return nil, err
	}
	t, status := s.raiseTo(want, d.Cluster)
	if status != nil {
		return nil, status
	}
	var noted store.KVStore = d.Store
	if d.Noted != nil {
		noted = d.Noted
	}
	done, err := noted.Txn(ctx, t)
	if err != nil && !errors.Is(err, record.ErrUnknownOutcome) {
		return nil, err
	}
	after, failed := look(ctx, d.Store)
	switch {
	case failed == nil && after.cluster.Level >= want:
		return d.shown(after), nil
	case err == nil && !done.Succeeded:
		return nil, api.Errorf(http.StatusConflict, "feature level %d: the leader or the level has changed meanwhile; ask again", want)
	}
	return nil, errors.Join(err, failed)
}

// begin stops registrations until end, or for the time of a lease.
func (d *Door) begin(ctx context.Context, r record.Raise) (end func(), err error) {
	lease, err := d.Store.Grant(ctx, within)
	var unknown *level.UnknownError
	switch {
	case errors.As(err, &unknown):
		return nil, api.Errorf(http.StatusServiceUnavailable, "%v", unknown)
	case err != nil:
		return nil, err
	}
	end = func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = d.Store.Revoke(ctx, lease.ID) // else the lease ends
	}
	done, err := d.Store.Txn(ctx, record.Txn{
		If: []record.Compare{record.Absent(record.RaiseKey)}, Then: []record.Op{record.PutLeased(record.RaiseKey, record.MustEncode(r), lease.ID)},
	})
	if err == nil && !done.Succeeded {
		err = api.Errorf(http.StatusConflict, "another raise of the feature level goes on; ask again")
	}
	if err != nil {
		end()
		return nil, err
	}
	return end, nil
}

// shown is the document of a state.
func (d *Door) shown(s *state) *api.FeatureLevel {
	l := &api.FeatureLevel{
		APIVersion: api.APIVersion, Kind: api.KindFeatureLevel, Level: int(s.cluster.Level), Newest: int(d.Known), Behind: s.below(max(d.Known, s.cluster.Level)),
	}
	for _, f := range d.Features {
		l.Features = append(l.Features, api.FeatureOfLevel{Level: int(f.Level), Name: f.Name})
	}
	return l
}
