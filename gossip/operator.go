package gossip

import (
	"context"
	"errors"

	"github.com/musterd/muster/gossip/ipc"
)

// KeyChanger changes the gossip keys of the whole cluster. Coordinators have
// one: it writes to their store.
type KeyChanger interface {
	// ChangeKeys replaces the cluster's keys by the result of change, which may be
	// called several times and whose error is returned as it is. It returns once
	// the store and this member have the new keys.
	ChangeKeys(ctx context.Context, change func(keys [][]byte) ([][]byte, error)) error
}

// ErrKeysElsewhere is the answer of a member without a KeyChanger to
// `serf keys`.
var ErrKeysElsewhere = errors.New("gossip keys are changed on a coordinator's host: run `serf keys` against gossip.serfRPC of a coordinator, 127.0.0.1:7374 by default; agents receive the keys from there")

// operatorKeys is `serf keys` on this member's RPC port.
type operatorKeys struct {
	keyring *Keyring
	changer KeyChanger // nil for none
}

func keysOf(k *Keyring, c KeyChanger) ipc.Keys {
	if k == nil {
		return nil
	}
	return operatorKeys{k, c}
}

// List returns this member's keys.
func (o operatorKeys) List(context.Context) ([][]byte, error) { return o.keyring.Keys(), nil }

// Install implements ipc.Keys.
func (o operatorKeys) Install(ctx context.Context, key []byte) error {
	return o.change(ctx, key, InstallKey)
}

// Use implements ipc.Keys.
func (o operatorKeys) Use(ctx context.Context, key []byte) error { return o.change(ctx, key, UseKey) }

// Remove implements ipc.Keys.
func (o operatorKeys) Remove(ctx context.Context, key []byte) error {
	return o.change(ctx, key, RemoveKey)
}

func (o operatorKeys) change(ctx context.Context, key []byte, how func(keys [][]byte, key []byte) ([][]byte, error)) error {
	if o.changer == nil {
		return ErrKeysElsewhere
	}
	return o.changer.ChangeKeys(ctx, func(keys [][]byte) ([][]byte, error) { return how(keys, key) })
}

// localAnswers are the handlers in ipc's words. Their answers are not cut: they
// stay on this host.
func localAnswers(handlers map[string]QueryHandler) map[string]func([]byte) []byte {
	answers := make(map[string]func([]byte) []byte, len(handlers))
	for name, h := range handlers {
		answers[name] = h
	}
	return answers
}
