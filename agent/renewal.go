package agent

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/musterd/muster/agent/rpc"
	"github.com/musterd/muster/pki"
)

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
	if stale() == "" || !pause(ctx, rand.N(renewSpread)) {
		return false
	}
	want := stale()
	if want != "" {
		*done = want
	}
	return want != ""
}
