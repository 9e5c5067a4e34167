package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/musterd/muster/agent/rpc"
	"github.com/musterd/muster/gossip"
	"github.com/musterd/muster/pki"
	"github.com/musterd/muster/pki/folder"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/rpcauth"
)

// IdentityConfig holds the files of a node's certificate and the means of
// getting one.
type IdentityConfig struct {
	Cluster string
	Node    resource.NodeID
	// Dir holds the certificate, its key, the authorities and the gossip keys;
	// made with mode 0700 if need be.
	Dir string
	// TokenFile holds a bootstrap token, for a node without a certificate; ""
	// is none.
	TokenFile string
	// Coordinators are where to enroll.
	Coordinators []string
	Dialer       rpc.Dialer // nil dials TCP
	Log          *slog.Logger
}

// Identity is a node's certificate and gossip keys, which the agent renews.
type Identity struct {
	config  IdentityConfig
	folder  *folder.Folder // nil keeps everything in memory
	tls     *rpcauth.TLS
	keyring *gossip.Keyring
	told    atomic.Pointer[string] // the fingerprint that a coordinator wants renewed to
	// soon: a coordinator has pushed the fingerprint, because of a ban or a
	// replacement, so that the renewal waits soonSpread at most.
	soon    atomic.Bool
	doubted atomic.Bool              // a coordinator did not accept the certificate
	revoked atomic.Pointer[[]string] // keys of operators that are refused, in order

	mu    sync.Mutex // one renewal at a time
	tried string     // the text's hash of the bootstrap token that was tried last
}

// NewIdentity is an identity in memory: a process that starts anew is given
// another one.
func NewIdentity(m rpcauth.Material, gossipKeys [][]byte) (*Identity, error) {
	t, err := rpcauth.NewTLS(m)
	if err != nil {
		return nil, err
	}
	keyring, err := gossip.NewKeyring(gossipKeys)
	if err != nil {
		return nil, err
	}
	own := t.Identity()
	c := IdentityConfig{Cluster: own.Cluster, Node: resource.NodeID(own.ID), Log: slog.New(slog.DiscardHandler)}
	i := &Identity{config: c, keyring: keyring}
	i.use(t)
	return i, nil
}

// TLS is how the node proves itself.
func (i *Identity) TLS() *rpcauth.TLS { return i.tls }

// Keyring is the rings' keys.
func (i *Identity) Keyring() *gossip.Keyring { return i.keyring }

// ErrNoIdentity means that the node has no certificate that is good, and no way
// to get one; the text names the remedy.
var ErrNoIdentity = errors.New("this node has no good certificate")

// enrollRetry is the time between two attempts to enroll, while no coordinator
// answers.
const enrollRetry = 2 * time.Second

// OpenIdentity reads the node's identity, or enrolls by the bootstrap token. It
// blocks while no coordinator answers, until ctx ends. Errors: files that others
// may use or that are damaged; ErrNoIdentity; rpc.ErrRefused if the token is not
// accepted.
func OpenIdentity(ctx context.Context, c IdentityConfig) (*Identity, error) {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	f, err := folder.Open(c.Dir)
	if err != nil {
		return nil, err
	}
	i := &Identity{config: c, folder: f}
	i.loadRevoked()
	party, err := f.Load()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return i, i.enrollUntil(ctx, "it has never had one")
	case err != nil:
		return nil, fmt.Errorf("%w; if it cannot be repaired, remove the folder %s and enroll again with: muster token create --node %s --replace", err, c.Dir, c.Node)
	}
	if err := i.own(party); err != nil {
		return i, i.enrollUntil(ctx, err.Error())
	}
	if i.keyring, err = i.readKeyring(); err != nil {
		// A version before let serf rewrite the file in place, and a crash in
		// between left half of it: a coordinator has the keys.
		c.Log.Warn("gossip_keys_unreadable", "file", f.KeyringPath(), "error", err, "do", "asking a coordinator")
		err = i.recoverKeyring(ctx)
	}
	return i, err
}

// own takes a party that has to be this node's, and good.
func (i *Identity) own(p folder.Party) error {
	t, err := rpcauth.NewTLS(rpcauth.Material{Chain: p.Chain, Key: p.Key, Roots: p.Roots})
	if err != nil {
		return err
	}
	if want := i.name(); t.Identity() != want {
		return fmt.Errorf("the certificate in %s is of %s, not of %s", i.config.Dir, t.Identity(), want)
	}
	i.use(t)
	return nil
}

func (i *Identity) name() pki.Identity {
	return pki.Identity{Cluster: i.config.Cluster, Role: pki.Node, ID: string(i.config.Node)}
}

func (i *Identity) readKeyring() (*gossip.Keyring, error) {
	text, err := i.folder.LoadKeyring()
	if err != nil {
		return nil, err
	}
	keys, err := gossip.ParseKeyring(text)
	if err != nil {
		return nil, err
	}
	return gossip.NewKeyring(keys)
}

const (
	// renewSpread is the longest that an agent waits after a coordinator's
	// directive, so that not all of them come at once; soonSpread after one that
	// answers no heartbeat. A rotation of the gossip keys gives agents 3 s for each
	// step (coordinator/enroll).
	renewSpread = 3 * time.Second
	soonSpread  = time.Second
	renewFirst  = time.Second // after a failure, then twice as long each time
	renewLast   = time.Minute
)

// member is how this agent proves itself.
func (a *Agent) member() rpcauth.Member {
	if i := a.deps.Identity; i != nil {
		return i.tls
	}
	return a.deps.Token
}

// keyring is the rings' keys, nil without an identity.
func (a *Agent) keyring() *gossip.Keyring {
	if i := a.deps.Identity; i != nil {
		return i.keyring
	}
	return nil
}
