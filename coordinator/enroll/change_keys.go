package enroll

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/musterd/muster/coordinator/record"
)

// ChangeKeys replaces the gossip keys of the cluster by the result of change,
// which may be called several times and must not keep or change its argument.
// It returns once store and keyring have the new keys; other coordinators follow
// the store, and agents are told at once. An error of change is returned as it
// is, and then nothing is changed.
func (s *Service) ChangeKeys(ctx context.Context, change func(keys [][]byte) ([][]byte, error)) error {
	if err := s.changeKeys(ctx, change); err != nil {
		return err
	}
	s.announce()
	return nil
}

func (s *Service) changeKeys(ctx context.Context, change func(keys [][]byte) ([][]byte, error)) error {
	s.replacing.Lock()
	defer s.replacing.Unlock()
	for range attempts {
		rec, revision, err := s.readKeysOr(ctx, s.keyring.Keys())
		if err != nil {
			return err
		}
		want, err := change(slices.Clone(rec.Keys))
		if err != nil {
			return err
		}
		if !sameKeys(want, rec.Keys) {
			done, err := s.writeKeys(ctx, withKeys(rec, want), revision)
			if errors.Is(err, record.ErrUnknownOutcome) {
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
		return s.keyring.Replace(want)
	}
	return errors.New("change the gossip keys: others kept changing them; try again")
}
