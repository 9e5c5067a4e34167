package gossip

import (
	"errors"
	"slices"
	"sync"
)

// Rings is a member of both rings of a cluster. Close ends it.
type Rings struct {
	Serf     *Serf
	Capacity *Capacity

	joined chan struct{}
	wg     sync.WaitGroup
}

// Start binds, joins both rings in the background and returns. The capacity
// ring's address travels in the serf ring's tags, so addresses of the serf ring
// are all that has to be known.
func Start(cfg Config) (*Rings, error) {
	if cfg.Cell == "" {
		cfg.Cell = DefaultCell
	}
	more, err := joinAddresses(cfg.CapacityJoin)
	if err != nil {
		return nil, err
	}
	capacity, err := newCapacity(capacityConfig{
		Cluster: cfg.Cluster, Cell: cfg.Cell, ID: cfg.Tags.ID, Bind: cfg.CapacityBind, Advertise: cfg.Advertise,
		Keyring: cfg.Keyring, Transports: cfg.Transports, Profile: cfg.Profile, Logger: cfg.Logger,
	})
	if err != nil {
		return nil, err
	}
	tags := cfg.Tags
	tags.Cell, tags.Capacity = cfg.Cell, capacity.Addr()
	serf, err := StartSerf(SerfConfig{
		Cluster: cfg.Cluster, Tags: tags, Bind: cfg.SerfBind, Advertise: cfg.Advertise, Join: cfg.Join, RPC: cfg.RPC,
		Keyring: cfg.Keyring, Keys: cfg.Keys,
		Transports: cfg.Transports, Profile: cfg.Profile, Queries: cfg.Queries, Local: cfg.Local, OnHint: cfg.OnHint, Logger: cfg.Logger,
		OnMember: func(m Member) {
			capacity.joiner.nudge()
			if cfg.OnMember != nil {
				cfg.OnMember(m)
			}
		},
	})
	if err != nil {
		return nil, errors.Join(err, capacity.list.Shutdown())
	}
	r := &Rings{Serf: serf, Capacity: capacity, joined: make(chan struct{})}
	capacity.run(cfg.OnDigest, func() ([]string, bool) { return r.capacitySources(more) })
	r.wg.Go(r.watchJoined)
	return r, nil
}

// capacitySources lists this cell's members by their tags, and whether the serf
// ring has been joined, so that no more are to be expected.
func (r *Rings) capacitySources(more []string) ([]string, bool) {
	addresses := slices.Clone(more)
	for _, m := range r.Serf.Members() {
		if m.Status == Alive && m.Tags.Cell == r.Capacity.cell && m.Tags.Capacity != "" {
			addresses = append(addresses, m.Tags.Capacity)
		}
	}
	select {
	case <-r.Serf.Joined():
		return addresses, true
	default:
		return addresses, false
	}
}

// watchJoined ends when both rings are joined or either ends.
func (r *Rings) watchJoined() {
	for _, step := range []<-chan struct{}{r.Serf.Joined(), r.Capacity.Joined()} {
		select {
		case <-step:
			r.Capacity.joiner.nudge()
		case <-r.Serf.Stopped():
			return
		}
	}
	close(r.joined)
}

// Joined is closed once this member has joined both rings.
func (r *Rings) Joined() <-chan struct{} { return r.joined }

// Close leaves both rings at once and ends them, in one to two seconds.
func (r *Rings) Close() error { return r.end((*Serf).Close, (*Capacity).Close) }

// Abandon ends both without a word; see Serf.Abandon.
func (r *Rings) Abandon() error { return r.end((*Serf).Abandon, (*Capacity).Abandon) }

func (r *Rings) end(serf func(*Serf) error, capacity func(*Capacity) error) error {
	var serfErr, capacityErr error
	var wg sync.WaitGroup
	wg.Go(func() { serfErr = serf(r.Serf) })
	wg.Go(func() { capacityErr = capacity(r.Capacity) })
	wg.Wait()
	r.wg.Wait()
	return errors.Join(serfErr, capacityErr)
}
