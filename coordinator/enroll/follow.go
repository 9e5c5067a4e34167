package enroll

import (
	"context"
	"errors"
	"time"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/pki"
)

// How often the service looks and retries.
const (
	lookEvery  = 2 * time.Second  // at authorities in files
	retryEvery = time.Second      // after an error of the store
	renewLate  = 10 * time.Second // after an own certificate could not be renewed
)

// Run follows store and files, and renews this coordinator's
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
	changes := s.config.Store.Watch(ctx, record.PKIPrefix, store.WatchOptions{From: revision + 1})
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
				return errors.Join(errors.New("the watch of "+record.PKIPrefix+" ended"), batch.Err)
			}
			if !s.taken(batch) {
				continue
			}
		case <-tick:
			s.save()
			if !s.config.Files.changed(s.trust.Load()) {
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
