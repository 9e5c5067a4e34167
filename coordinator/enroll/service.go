package enroll

import (
	"cmp"
	"context"
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
// first. Only this package replaces them.
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
	// Folder keeps the enrolled keys, bans and operators, for a store that is
	// restored from an older backup; nil keeps nothing.
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
	renewals renewals

	// replacing is held from a read of the store's gossip keys until the keyring
	// has them: an older read replaces no newer keys.
	replacing sync.Mutex

	mu      sync.Mutex
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
