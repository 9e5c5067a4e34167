package agent

import (
	"context"
	"crypto"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/musterd/muster/agent/rpc"
	"github.com/musterd/muster/gossip"
	"github.com/musterd/muster/pki"
	"github.com/musterd/muster/pki/folder"
	"github.com/musterd/muster/rpcauth"
)

// recoverKeyring renews the certificate, since the answer carries the gossip
// keys too.
func (i *Identity) recoverKeyring(ctx context.Context) error {
	calls := rpc.NewCoordinators(func() []string { return i.config.Coordinators }, i.tls, i.config.Dialer)
	err := i.retry(ctx, func() error { return i.renew(ctx, calls) })
	return errors.Join(err, calls.Close())
}

// enrollUntil enrolls by the token; why is the fault of the present
// certificate.
func (i *Identity) enrollUntil(ctx context.Context, why string) error {
	c := i.config
	if c.TokenFile == "" {
		return fmt.Errorf("%w: %s; put a token made by `muster token create --node %s` (with --replace if the node exists) into bootstrapTokenFile and start again",
			ErrNoIdentity, why, c.Node)
	}
	return i.retry(ctx, func() error { return i.enroll(ctx) })
}

// retry repeats a call that failed for want of a coordinator.
func (i *Identity) retry(ctx context.Context, try func() error) error {
	var last error
	for {
		err := try()
		switch {
		case err == nil || errors.Is(err, rpc.ErrRefused) || errors.Is(err, ErrNoIdentity):
			return err
		case ctx.Err() != nil:
			return errors.Join(last, ctx.Err()) // err adds nothing to that
		}
		last = err
		i.config.Log.Warn("enrolment_not_answered", "retry_in", enrollRetry, "error", err)
		if !pause(ctx, enrollRetry) {
			return errors.Join(last, ctx.Err())
		}
	}
}

// enrollAnew enrolls by the token unless the same one was tried before; why is
// the reason that it is needed. It reports whether it tried.
func (i *Identity) enrollAnew(ctx context.Context, why error) (tried bool, err error) {
	token, err := ReadBootstrapToken(i.config.TokenFile)
	if err != nil {
		return false, errors.Join(why, fmt.Errorf("bootstrapTokenFile: %w", err))
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if token.Hash() == i.tried {
		return false, why
	}
	if err = i.enroll(ctx); err == nil || errors.Is(err, rpc.ErrRefused) {
		i.tried = token.Hash()
	}
	return true, err
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

// take checks a coordinator's answer, keeps it, and uses it from then on.
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
	if err := i.refuse(got.Revoked); err != nil {
		return err
	}
	if i.tls == nil {
		i.use(t)
		return nil
	}
	return i.tls.Replace(m)
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
