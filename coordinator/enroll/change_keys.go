package enroll

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/musterd/muster/coordinator/store"
)

// ChangeKeys replaces the gossip keys of the cluster by the result of change,
// which may be called several times and must not keep or change its argument.
// It returns once store and keyring have the new keys; other coordinators follow
// the store, and agents renew at their next heartbeat. An error of change is
// returned as it is, and then nothing is changed.
func (s *Service) ChangeKeys(ctx context.Context, change func(keys [][]byte) ([][]byte, error)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range attempts {
		stored, revision, err := s.readKeys(ctx)
		if err != nil {
			return fmt.Errorf("read the gossip keys: %w", err)
		}
		if revision == 0 {
			stored = s.base // somebody deleted the record
		}
		want, err := change(slices.Clone(stored))
		if err != nil {
			return err
		}
		if revision == 0 || !sameKeys(want, stored) {
			done, err := s.writeKeys(ctx, want, revision)
			if errors.Is(err, store.ErrUnknownOutcome) {
				return fmt.Errorf("write the gossip keys: %w; look with: serf keys -list, and try again", err)
			}
			if err != nil {
				return fmt.Errorf("write the gossip keys: %w", err)
			}
			if !done {
				continue // another coordinator changed them
			}
			s.log.Info("gossip_keys_stored", "keys", len(want))
		}
		if err := s.keyring.Replace(want); err != nil {
			return err
		}
		s.base = want
		return s.keepKeys(want)
	}
	return errors.New("change the gossip keys: others kept changing them; try again")
}
