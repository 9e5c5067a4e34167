package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/musterd/muster/pki"
	"github.com/musterd/muster/rpcauth"
)

// use makes t the node's TLS identity, before its first connection.
func (i *Identity) use(t *rpcauth.TLS) {
	t.SetJudge(i, func(peer rpcauth.Caller, reason error) {
		i.config.Log.Info("connection_ended", "peer", peer.Identity.String(), "reason", reason)
	})
	i.tls = t
}

// Admit implements rpcauth.Judge.
func (i *Identity) Admit(_ context.Context, peer rpcauth.Caller) error { return i.Holds(peer) }

// Holds implements rpcauth.Judge: operators whose certificates were revoked are
// refused. Coordinators send the list; an agent without contact to any goes by
// the last list.
func (i *Identity) Holds(peer rpcauth.Caller) error {
	if peer.Identity.Role != pki.Operator {
		return nil
	}
	hash, err := pki.KeyHash(peer.Certificate.PublicKey)
	if err != nil {
		return err
	}
	if slices.Contains(i.revokedKeys(), hash) {
		return fmt.Errorf("the certificate of operator %s was revoked", peer.Identity.ID)
	}
	return nil
}

func (i *Identity) revokedKeys() []string {
	if list := i.revoked.Load(); list != nil {
		return *list
	}
	return nil
}

// refuse takes the list of revoked keys from a coordinator, keeps it, and ends
// the connections of their operators.
func (i *Identity) refuse(keys []string) error {
	if slices.Equal(keys, i.revokedKeys()) {
		return nil
	}
	if i.folder != nil {
		text, err := json.Marshal(keys)
		if err != nil {
			return err
		}
		if err := i.folder.SaveRevoked(text); err != nil {
			return err
		}
	}
	i.revoked.Store(&keys)
	if i.tls != nil {
		i.tls.Recheck()
	}
	return nil
}

// loadRevoked reads the list that was kept. A coordinator sends it again when
// the fingerprint differs, as it does after a damaged file.
func (i *Identity) loadRevoked() {
	text, err := i.folder.LoadRevoked()
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	var keys []string
	if err == nil {
		err = json.Unmarshal(text, &keys)
	}
	if err != nil {
		i.config.Log.Warn("revoked_operators_unreadable", "error", err, "do", "asking a coordinator")
		return
	}
	i.revoked.Store(&keys)
}
