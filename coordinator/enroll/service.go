// Package enroll is a coordinator's side of who is who (docs/security.md): it
// keeps the cluster's authorities, bootstrap tokens and gossip keys in the
// store, certifies nodes and coordinators, and serves muster.v1.Enrollment.
//
// It decides who gets a certificate for which identity. Whether a certificate
// is good is pki's to say, and what it allows rpcauth's. Any coordinator can do
// all of it, leader or not: whatever must be decided once is one Txn with
// compares.
package enroll

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"

	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/pki"
	"github.com/musterd/muster/pki/folder"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/rpcauth"
)

// DefaultTTL is how long a certificate is good for.
const DefaultTTL = 30 * 24 * time.Hour

// Keyring is the rings' keys as this process uses them, the one to send with
// first.
type Keyring interface {
	Keys() [][]byte
	Replace(keys [][]byte) error
}

// Config is a coordinator that certifies.
type Config struct {
	Cluster string
	ID      string // the coordinator's
	Store   interface {
		store.KVStore
		store.Watcher
	}
	// Files is the cluster's own authority; nil is the built-in one, which is
	// kept in the store.
	Files *Files
	// Names are host names and IP addresses at which clients reach this
	// coordinator, for its certificate.
	Names []string
	// TTL is how long certificates are good for; 0 is DefaultTTL.
	TTL time.Duration
	// Folder keeps the gossip keys over a restart that comes between `serf keys`
	// and the store; nil keeps nothing.
	Folder *folder.Folder
	// Changed, if set, is told what is trusted, at Open and after each change.
	Changed func(roots pki.Bundle)
	// Metrics takes the counter of refused enrolments; nil for none.
	Metrics prometheus.Registerer
	Logger  *slog.Logger
}

// Service certifies. Open makes one, Run keeps it up to date. Its methods may
// be called by several goroutines and block no longer than the store.
type Service struct {
	musterv1.UnimplementedEnrollmentServer
	config  Config
	log     *slog.Logger
	tls     *rpcauth.TLS
	trust   atomic.Pointer[trust]
	keyring Keyring

	known    *known
	looks    *rate.Limiter // of reads that refused peers cause
	rotating rotating
	failures *failures

	mu      sync.Mutex
	base    [][]byte      // the gossip keys on which store and keyring agreed last
	changed chan struct{} // closed and replaced when Fingerprint may have changed
}

// trust is what is believed now. It is immutable.
type trust struct {
	roots  pki.Bundle
	signer *pki.Authority // the newest root
	// revision is that of the store's record, 0 for authorities from files.
	revision resource.Revision
}

// Open reads the authorities and the gossip keys, or makes them if this is the
// cluster's first coordinator, and certifies this coordinator.
func Open(ctx context.Context, c Config, newKeyring func(keys [][]byte) (Keyring, error)) (*Service, error) {
	identity := pki.Identity{Cluster: c.Cluster, Role: pki.Coordinator, ID: c.ID}
	if err := identity.Check(); err != nil {
		return nil, err
	}
	c.TTL = cmp.Or(c.TTL, DefaultTTL)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Service{
		config: c, log: c.Logger, known: newKnown(), looks: rate.NewLimiter(looksPerSecond, looksAtOnce),
		failures: newFailures(c.Metrics), changed: make(chan struct{}),
	}
	t, err := s.loadTrust(ctx)
	if err != nil {
		return nil, err
	}
	s.trust.Store(t)
	material, err := s.issue(t, identity, c.Names)
	if err != nil {
		return nil, err
	}
	if s.tls, err = rpcauth.NewTLS(material); err != nil {
		return nil, err
	}
	s.tls.SetJudge(s, s.ended)
	keys, err := s.loadKeys(ctx)
	if err != nil {
		return nil, err
	}
	s.loadKept()
	if _, err := s.load(ctx); err != nil {
		return nil, err
	}
	s.base = keys
	if here, agreed, ok := s.keptKeys(); ok {
		keys, s.base = here, agreed
	}
	if s.keyring, err = newKeyring(keys); err != nil {
		return nil, err
	}
	s.tell(t)
	return s, nil
}

func (s *Service) tell(t *trust) {
	if s.config.Changed != nil {
		s.config.Changed(t.roots)
	}
}

// TLS is this coordinator's own identity.
func (s *Service) TLS() *rpcauth.TLS { return s.tls }

// Keyring is the rings' keys, as newKeyring made it.
func (s *Service) Keyring() Keyring { return s.keyring }

// Roots are the authorities that are trusted now.
func (s *Service) Roots() pki.Bundle { return s.trust.Load().roots }

// Fingerprint changes whenever a node should ask for what is new: an authority
// has come or gone, another one signs, or the rings' keys have changed.
func (s *Service) Fingerprint() string {
	t := s.trust.Load()
	return pki.Fingerprint(t.roots, t.signer.Certificate.SubjectKeyId, s.keyring.Keys(), s.known.revoked(time.Now())...)
}

// Changed is closed when Fingerprint may have changed since the call.
func (s *Service) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// announce has those who wait on Changed look at the fingerprint.
func (s *Service) announce() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.changed)
	s.changed = make(chan struct{})
}

// issue certifies an identity under a key of its own.
func (s *Service) issue(t *trust, i pki.Identity, names []string) (rpcauth.Material, error) {
	key, err := pki.NewKey()
	if err != nil {
		return rpcauth.Material{}, err
	}
	leaf, err := t.signer.Issue(key.Public(), i, names, time.Now(), s.config.TTL)
	if err != nil {
		return rpcauth.Material{}, err
	}
	return rpcauth.Material{Chain: t.shown(i.Role, t.signer.Chain(leaf)), Key: key, Roots: t.roots}, nil
}

// IssueNodes certifies nodes that this process runs itself, whether or not they
// exist already, in one Txn per 50.
func (s *Service) IssueNodes(ctx context.Context, nodes []resource.NodeID) (map[resource.NodeID]rpcauth.Material, error) {
	t := s.trust.Load()
	out := make(map[resource.NodeID]rpcauth.Material, len(nodes))
	var ops []store.Op
	flush := func() error {
		if len(ops) == 0 {
			return nil
		}
		_, err := s.commit(ctx, store.Txn{Then: ops})
		ops = nil
		return err
	}
	for _, node := range nodes {
		material, err := s.issue(t, s.node(node), nil)
		if err != nil {
			return nil, err
		}
		hash, err := pki.KeyHash(material.Key.Public())
		if err != nil {
			return nil, err
		}
		record := s.enrolled(t, node, 0, material.Chain[0].NotAfter, hash)
		out[node] = material
		ops = append(ops, store.Put(store.EnrolledKey(node), store.MustEncode(record)))
		if len(ops) == 50 {
			if err := flush(); err != nil {
				return nil, fmt.Errorf("certify nodes: %w", err)
			}
		}
	}
	if err := flush(); err != nil {
		return nil, fmt.Errorf("certify nodes: %w", err)
	}
	return out, nil
}

// IssueOperator certifies an operator of this process's own, for as long as it
// certifies nodes. It takes the place of the one that was issued before to the
// same name.
func (s *Service) IssueOperator(ctx context.Context, name string) (rpcauth.Material, error) {
	material, err := s.issue(s.trust.Load(), pki.Identity{Cluster: s.config.Cluster, Role: pki.Operator, ID: name}, nil)
	if err != nil {
		return rpcauth.Material{}, err
	}
	creator := "coordinator " + s.config.ID
	if err := s.forgetOperator(ctx, name, creator); err != nil {
		return rpcauth.Material{}, err
	}
	return material, s.noteOperator(ctx, name, creator, material.Chain[0])
}

func (s *Service) node(id resource.NodeID) pki.Identity {
	return pki.Identity{Cluster: s.config.Cluster, Role: pki.Node, ID: string(id)}
}

// enrolled is the record of a node that follows one of generation before.
func (s *Service) enrolled(t *trust, node resource.NodeID, before int64, expires time.Time, keys ...string) store.Enrolled {
	now := time.Now()
	return store.Enrolled{
		Keys: keys, Issuer: t.signer.ID(), Expires: stamp(expires), Enrolled: stamp(now), Generation: s.nextEnrolled(node, before, now),
	}
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// How often what does not tell of its changes is looked at.
const (
	lookEvery  = 2 * time.Second  // the keyring, which serf changes, and authorities in files
	retryEvery = time.Second      // after an error of the store
	renewLate  = 10 * time.Second // after an own certificate could not be renewed
)

// Run follows store, keyring and files, and renews this coordinator's
// certificate, until ctx ends.
func (s *Service) Run(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		err := s.follow(ctx, tick.C)
		if ctx.Err() != nil {
			return
		}
		s.log.Warn("identity_not_followed", "error", err, "retry_in", retryEvery)
		select {
		case <-ctx.Done():
		case <-time.After(retryEvery):
		}
	}
}

// follow reads everything and then keeps up with it until something fails.
func (s *Service) follow(ctx context.Context, tick <-chan time.Time) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	revision, err := s.load(ctx)
	if err != nil {
		return err
	}
	if err := s.refresh(ctx); err != nil {
		return err
	}
	changes := s.config.Store.Watch(ctx, store.PKIPrefix, store.WatchOptions{From: revision + 1})
	renew := time.NewTimer(time.Until(pki.RenewAt(s.tls.Material().Chain[0])))
	defer renew.Stop()
	step := time.NewTimer(s.rotating.wait())
	defer step.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-step.C:
			if err := s.advance(ctx); err != nil {
				return err
			}
		case batch, open := <-changes:
			if !open || batch.Err != nil {
				return errors.Join(errors.New("the watch of "+store.PKIPrefix+" ended"), batch.Err)
			}
			if !s.taken(batch) {
				continue
			}
		case <-tick:
			s.save()
			if !s.changedHere() {
				continue
			}
		case <-renew.C:
			if err := s.renewOwn(s.trust.Load()); err != nil {
				s.log.Error("own_certificate_not_renewed", "error", err)
				renew.Reset(renewLate)
				continue
			}
		}
		if err := s.refresh(ctx); err != nil {
			return err
		}
		step.Reset(s.rotating.wait())
		renew.Reset(time.Until(pki.RenewAt(s.tls.Material().Chain[0])))
	}
}

// changedHere reports whether the keyring or the files differ from what is
// known to all.
func (s *Service) changedHere() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !sameKeys(s.base, s.keyring.Keys()) || s.config.Files.changed(s.trust.Load())
}

// refresh takes over new authorities and gossip keys.
func (s *Service) refresh(ctx context.Context) error {
	t, err := s.loadTrust(ctx)
	if err != nil {
		return err
	}
	if before := s.trust.Load(); !before.same(t) {
		if err := s.renewOwn(t); err != nil {
			return err
		}
		s.trust.Store(t)
		s.tell(t)
		if len(t.roots) < len(before.roots) {
			s.announce() // of a new one agents are told with their heartbeats: each has to be certified anew
		}
		s.log.Info("authorities_changed", "trusted", len(t.roots), "signs", t.signer.ID())
	}
	return s.syncKeys(ctx)
}

// renewOwn replaces this coordinator's certificate.
func (s *Service) renewOwn(t *trust) error {
	material, err := s.issue(t, s.tls.Identity(), s.config.Names)
	if err != nil {
		return err
	}
	return s.tls.Replace(material)
}
