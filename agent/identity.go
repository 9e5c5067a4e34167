package agent

import (
	"context"
	"crypto"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"strings"
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

// IdentityConfig says where a node's certificate is and how it gets one.
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

	mu sync.Mutex // one renewal at a time
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
	return &Identity{config: c, tls: t, keyring: keyring}, nil
}

// TLS is how the node proves itself.
func (i *Identity) TLS() *rpcauth.TLS { return i.tls }

// Keyring is the rings' keys.
func (i *Identity) Keyring() *gossip.Keyring { return i.keyring }

// ErrNoIdentity means that the node has no certificate that is good, and no way
// to get one; the text says what to do.
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
		// A crash while serf rewrote it: a coordinator has the keys.
		c.Log.Warn("gossip keys unreadable, asking a coordinator", "file", f.KeyringPath(), "error", err)
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
	i.tls = t
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

// recoverKeyring renews, since that tells the gossip keys too.
func (i *Identity) recoverKeyring(ctx context.Context) error {
	calls := rpc.NewCoordinators(func() []string { return i.config.Coordinators }, i.tls, i.config.Dialer)
	err := i.retry(ctx, func() error { return i.renew(ctx, calls) })
	return errors.Join(err, calls.Close())
}

// enrollUntil enrolls by the token; why says what is wrong with the certificate.
func (i *Identity) enrollUntil(ctx context.Context, why string) error {
	c := i.config
	if c.TokenFile == "" {
		return fmt.Errorf("%w: %s; put a token made by `muster token create --node %s` (with --replace if the node exists) into bootstrapTokenFile and start again",
			ErrNoIdentity, why, c.Node)
	}
	return i.retry(ctx, func() error { return i.enroll(ctx) })
}

// retry repeats what failed for want of a coordinator.
func (i *Identity) retry(ctx context.Context, try func() error) error {
	var last error
	for {
		err := try()
		switch {
		case err == nil || errors.Is(err, rpc.ErrRefused) || errors.Is(err, ErrNoIdentity):
			return err
		case ctx.Err() != nil:
			return errors.Join(last, ctx.Err()) // err says no more than that
		}
		last = err
		i.config.Log.Warn("no coordinator answers yet", "retry_in", enrollRetry, "error", err)
		if !pause(ctx, enrollRetry) {
			return errors.Join(last, ctx.Err())
		}
	}
}

func (i *Identity) enroll(ctx context.Context) error {
	c := i.config
	token, err := ReadBootstrapToken(c.TokenFile)
	if err != nil {
		return fmt.Errorf("%w: bootstrapTokenFile: %w", ErrNoIdentity, err)
	}
	key, err := i.pendingKey()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoIdentity, err)
	}
	csr, err := pki.NewRequest(key)
	if err != nil {
		return err
	}
	got, err := rpc.Enroll(ctx, c.Coordinators, c.Cluster, c.Node, token, csr, c.Dialer)
	if err != nil {
		return err
	}
	if err := i.take(got, key); err != nil {
		return err
	}
	c.Log.Info("enrolled", "token", token.ID, "expires", i.tls.Material().Chain[0].NotAfter)
	return nil
}

func (i *Identity) pendingKey() (crypto.Signer, error) {
	if i.folder == nil {
		return pki.NewKey()
	}
	return i.folder.PendingKey()
}

// take checks what a coordinator gave, keeps it, and uses it from then on.
func (i *Identity) take(got rpc.Certified, key crypto.Signer) error {
	chain, err := pki.ParseCertificates(got.Chain)
	if err != nil {
		return fmt.Errorf("the coordinator's answer: chain: %w", err)
	}
	roots, err := pki.ParseCertificates(got.Authorities)
	if err != nil {
		return fmt.Errorf("the coordinator's answer: authorities: %w", err)
	}
	keyring, err := gossip.NewKeyring(got.GossipKeys)
	if err != nil {
		return fmt.Errorf("the coordinator's answer: %w", err)
	}
	m := rpcauth.Material{Chain: chain, Key: key, Roots: roots}
	t, err := rpcauth.NewTLS(m)
	if err == nil && t.Identity() != i.name() {
		err = fmt.Errorf("it is of %s", t.Identity())
	}
	if err != nil {
		return fmt.Errorf("the coordinator's answer: the certificate for %s: %w", i.name(), err)
	}
	if i.folder != nil {
		if err := i.folder.SaveKeyring(gossip.FormatKeyring(got.GossipKeys)); err != nil {
			return err
		}
		if err := i.folder.Save(folder.Party{Chain: chain, Key: key, Roots: roots}); err != nil {
			return err
		}
	}
	if i.keyring == nil {
		i.keyring = keyring
	} else if err := i.keyring.Replace(got.GossipKeys); err != nil {
		return err
	}
	if i.tls == nil {
		i.tls = t
		return nil
	}
	return i.tls.Replace(m)
}

// renew asks for another certificate by the present one.
func (i *Identity) renew(ctx context.Context, calls *rpc.Coordinators) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	key, err := i.pendingKey()
	if err != nil {
		return err
	}
	csr, err := pki.NewRequest(key)
	if err != nil {
		return err
	}
	got, err := calls.Renew(ctx, csr)
	if err != nil {
		return err
	}
	return i.take(got, key)
}

// fingerprint is what coordinators compare with theirs.
func (i *Identity) fingerprint() string {
	m := i.tls.Material()
	return pki.Fingerprint(m.Roots, m.Chain[0].AuthorityKeyId, i.keyring.Keys())
}

// keyringFile is where `serf keys` keeps its changes, "" for memory alone.
func (i *Identity) keyringFile() string {
	if i.folder == nil {
		return ""
	}
	return i.folder.KeyringPath()
}

// ReadBootstrapToken reads a bootstrap token from a file that its owner alone
// may use.
func ReadBootstrapToken(path string) (pki.Token, error) {
	info, err := os.Stat(path)
	if err != nil {
		return pki.Token{}, err
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return pki.Token{}, fmt.Errorf("%s: mode %04o lets others use it; run: chmod 0600 %s", path, mode, path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return pki.Token{}, err
	}
	token, err := pki.ParseToken(strings.TrimSpace(string(text)))
	if err != nil {
		return pki.Token{}, fmt.Errorf("%s: %w", path, err)
	}
	return token, nil
}

const (
	// renewSpread is the longest that an agent waits after a coordinator's
	// directive, so that not all of them come at once.
	renewSpread = 3 * time.Second
	renewFirst  = time.Second // after a failure, then twice as long each time
	renewLast   = time.Minute
)

// renewTo takes a coordinator's word that there is something new.
func (a *Agent) renewTo(fingerprint string) {
	if a.deps.Identity != nil {
		a.deps.Identity.told.Store(&fingerprint)
		wake(a.renewal)
	}
}

// renewer keeps the certificate good, until ctx ends: at two thirds of its
// time, and when a coordinator has something new. Sessions that are open stay.
func (a *Agent) renewer(ctx context.Context) {
	i := a.deps.Identity
	if i == nil {
		return
	}
	done := "" // the fingerprint that was last renewed to
	for failures := 0; ctx.Err() == nil; {
		wait := time.Until(pki.RenewAt(i.tls.Material().Chain[0]))
		if failures > 0 {
			wait = backoff(failures-1, renewFirst, renewLast)
		}
		if !a.awaitRenewal(ctx, wait, &done) {
			continue
		}
		err := i.renew(ctx, a.calls)
		if err != nil && time.Now().After(i.tls.Material().Chain[0].NotAfter) && i.config.TokenFile != "" {
			err = errors.Join(err, i.enroll(ctx)) // a certificate that is over renews nothing; the operator may have left a token
		}
		switch {
		case err == nil:
			failures = 0
			a.log.Info("certificate renewed", "expires", i.tls.Material().Chain[0].NotAfter)
		case ctx.Err() == nil:
			failures++
			a.log.Warn("certificate not renewed", "expires", i.tls.Material().Chain[0].NotAfter, "error", err)
		}
	}
}

// awaitRenewal waits and reports whether a renewal is due: wait has passed, or a
// coordinator told of a fingerprint that is neither this node's nor what the
// last renewal was for.
func (a *Agent) awaitRenewal(ctx context.Context, wait time.Duration, done *string) bool {
	timer := time.NewTimer(max(0, wait))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	case <-a.renewal:
	}
	i := a.deps.Identity
	stale := func() string {
		if told := i.told.Load(); told != nil && *told != *done && *told != i.fingerprint() {
			return *told
		}
		return ""
	}
	if stale() == "" || !pause(ctx, rand.N(renewSpread)) { // `serf keys` may bring it meanwhile
		return false
	}
	want := stale()
	if want != "" {
		*done = want
	}
	return want != ""
}

// member is how this agent proves itself.
func (a *Agent) member() rpcauth.Member {
	if i := a.deps.Identity; i != nil {
		return i.tls
	}
	return a.deps.Token
}

// keyring is the rings' keys and the file that keeps them, nil and "" without
// an identity.
func (a *Agent) keyring() (*gossip.Keyring, string) {
	if i := a.deps.Identity; i != nil {
		return i.keyring, i.keyringFile()
	}
	return nil, ""
}
