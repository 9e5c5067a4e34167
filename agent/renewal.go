package agent

import (
	"context"
	"crypto"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/musterd/muster/agent/rpc"
	"github.com/musterd/muster/pki"
)

// renew asks for another certificate, under a new key, by the present one.
func (i *Identity) renew(ctx context.Context, calls *rpc.Coordinators) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	key, err := i.pendingKey()
	if err != nil {
		return err
	}
	return i.renewAs(ctx, calls, key)
}

// refresh fetches authorities, gossip keys and revoked keys under the node's present key. The
// certificate stays, unless another authority signs.
func (i *Identity) refresh(ctx context.Context, calls *rpc.Coordinators) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.renewAs(ctx, calls, i.tls.Material().Key)
}

func (i *Identity) renewAs(ctx context.Context, calls *rpc.Coordinators, key crypto.Signer) error {
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

// fingerprint is compared by coordinators with theirs.
func (i *Identity) fingerprint() string {
	m := i.tls.Material()
	return pki.Fingerprint(m.Roots, m.Chain[0].AuthorityKeyId, i.keyring.Keys(), i.revokedKeys()...)
}

// renewTo takes a coordinator's news. soon: a host is to be kept out of the rings.
func (a *Agent) renewTo(fingerprint string, soon bool) {
	if i := a.deps.Identity; i != nil {
		i.told.Store(&fingerprint)
		i.soon.Store(soon)
		wake(a.renewal)
	}
}

// doubtIdentity takes the error of a call: a coordinator may not accept the certificate.
func (a *Agent) doubtIdentity(err error) {
	if i := a.deps.Identity; i != nil && rpc.IsNotAccepted(err) {
		i.doubted.Store(true)
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
	var doubts, got time.Time
	for failures := 0; ctx.Err() == nil; {
		wait, _ := pki.RenewIn(i.tls.Material().Chain[0], time.Now(), got)
		if failures > 0 {
			wait = backoff(failures-1, renewFirst, renewLast)
		}
		due := a.awaitRenewal(ctx, wait, &done)
		if i.doubted.Swap(false) && time.Since(doubts) > doubtEvery {
			doubts = time.Now()
			a.rejoin(ctx)
		}
		var err error
		before := i.tls.Material().Chain[0]
		switch due {
		case nothingDue:
			continue
		case newsDue:
			err = i.refresh(ctx, a.calls)
		case renewalDue:
			err = i.renew(ctx, a.calls)
		}
		if err != nil && time.Now().After(i.tls.Material().Chain[0].NotAfter) && i.config.TokenFile != "" {
			err = errors.Join(err, i.enroll(ctx)) // a certificate that is over renews nothing; the operator may have left a token
		}
		switch {
		case err == nil && i.tls.Material().Chain[0].Equal(before):
			failures = 0
			a.log.Info("authorities_confirmed", "authorities", len(i.tls.Material().Roots), "gossip_keys", len(i.keyring.Keys()))
		case err == nil:
			failures, got = 0, time.Now()
			a.log.Info("certificate_renewed", "expires", i.tls.Material().Chain[0].NotAfter)
			if _, isAhead := pki.RenewIn(i.tls.Material().Chain[0], got, got); isAhead {
				a.log.Warn("clock_ahead", "do", "set the clock of this host: it is ahead of the coordinators' by most of a certificate's time")
			}
		case ctx.Err() == nil:
			failures++
			a.log.Warn("certificate_not_renewed", "expires", i.tls.Material().Chain[0].NotAfter, "error", err)
		}
	}
}

// due is the result of awaitRenewal.
type due int

const (
	nothingDue due = iota
	newsDue        // a coordinator has something new
	renewalDue     // the certificate is to be renewed
)

// doubtEvery is the least time between two attempts to be accepted again.
const doubtEvery = 10 * time.Second

// rejoin asks whether the certificate still counts, and enrolls by a token that
// was not tried before where it does not.
func (a *Agent) rejoin(ctx context.Context) {
	i := a.deps.Identity
	err := i.refresh(ctx, a.calls)
	if !rpc.IsNotAccepted(err) {
		return
	}
	if i.config.TokenFile != "" {
		var tried bool
		if tried, err = i.enrollAnew(ctx, err); tried && err == nil {
			_ = a.calls.Close() // connections with the certificate before are refused
			wake(a.register)
			return
		}
	}
	a.log.Warn("certificate_refused", "error", err,
		"do", fmt.Sprintf("put a token of `muster token create --node %s --replace` into bootstrapTokenFile", a.config.Node))
}

// awaitRenewal waits until wait has passed, or until a coordinator has sent a
// fingerprint that is neither this node's nor that of the last renewal.
func (a *Agent) awaitRenewal(ctx context.Context, wait time.Duration, done *string) due {
	timer := time.NewTimer(max(0, wait))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return nothingDue
	case <-timer.C:
		return renewalDue
	case <-a.renewal:
	}
	i := a.deps.Identity
	stale := func() string {
		if told := i.told.Load(); told != nil && *told != *done && *told != i.fingerprint() {
			return *told
		}
		return ""
	}
	if stale() == "" {
		return nothingDue
	}
	spread := renewSpread
	if i.soon.Load() {
		spread = soonSpread
	}
	if !pause(ctx, rand.N(spread)) { // a step of a rotation may bring it meanwhile
		return nothingDue
	}
	want := stale()
	if want == "" {
		return nothingDue
	}
	*done = want
	return newsDue
}
