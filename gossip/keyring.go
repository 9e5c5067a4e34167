package gossip

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/memberlist"
)

// maxKeys bounds a keyring; two are in use while one takes over from another.
const maxKeys = 16

// Keyring holds the keys that encrypt both rings: the first one to send, all
// of them to read. Replace alone changes it: coordinators agree on the keys
// through the store, and agents receive them over mutual TLS. A change that
// comes from the ring is undone; see PutBack. It may be used by several
// goroutines.
type Keyring struct {
	ring    *memberlist.Keyring
	putBack atomic.Uint64

	mu sync.Mutex
	// Invariant: while mu is free and nothing but Replace changes ring, ring
	// holds exactly the keys of agreed and sends with the first one.
	agreed [][]byte
}

// NewKeyring returns a keyring of 1 to 16 keys of 16, 24 or 32 bytes.
func NewKeyring(keys [][]byte) (*Keyring, error) {
	if err := checkKeys(keys); err != nil {
		return nil, err
	}
	ring, err := memberlist.NewKeyring(clones(keys), bytes.Clone(keys[0]))
	if err != nil {
		return nil, fmt.Errorf("keyring: %w", err)
	}
	return &Keyring{ring: ring, agreed: clones(keys)}, nil
}

func checkKeys(keys [][]byte) error {
	if len(keys) == 0 || len(keys) > maxKeys {
		return fmt.Errorf("keyring: %d keys, want 1 to %d", len(keys), maxKeys)
	}
	for i, k := range keys {
		if err := memberlist.ValidateKey(k); err != nil {
			return fmt.Errorf("keyring: key %d has %d bytes, want 16, 24 or 32", i+1, len(k))
		}
	}
	return nil
}

// Keys returns the keys of NewKeyring or of the last Replace, the one to send
// with first; the copy is the caller's.
func (k *Keyring) Keys() [][]byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	return clones(k.agreed)
}

func clones(keys [][]byte) [][]byte {
	out := make([][]byte, 0, len(keys))
	for _, k := range keys {
		out = append(out, bytes.Clone(k))
	}
	return out
}

// Replace makes keys the keyring's. New ones are installed first and old ones
// removed last, so that messages under way can be read throughout.
func (k *Keyring) Replace(keys [][]byte) error {
	if err := checkKeys(keys); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.agreed = clones(keys)
	return k.enforce()
}

// enforce brings the library's keyring to the agreed keys. mu is held.
func (k *Keyring) enforce() error {
	var errs []error
	for _, key := range k.agreed {
		errs = append(errs, k.ring.AddKey(bytes.Clone(key)))
	}
	errs = append(errs, k.ring.UseKey(k.agreed[0]))
	for _, old := range slices.Backward(clones(k.ring.GetKeys())) {
		if !holdsKey(k.agreed, old) {
			errs = append(errs, k.ring.RemoveKey(old))
		}
	}
	return errors.Join(errs...)
}

// restore undoes a change that did not come through Replace and reports whether
// there was one.
func (k *Keyring) restore() (changed bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	have := k.ring.GetKeys()
	same := len(have) == len(k.agreed) && bytes.Equal(k.ring.GetPrimaryKey(), k.agreed[0])
	for _, key := range k.agreed {
		same = same && holdsKey(have, key)
	}
	if same {
		return false, nil
	}
	k.putBack.Add(1)
	return true, k.enforce()
}

// PutBack counts the changes that did not come through Replace and were undone.
// Ring members check once a second. It stays 0 as long as the ring members
// refuse the key queries of serf, as they do; more is a fault to report.
func (k *Keyring) PutBack() uint64 { return k.putBack.Load() }

func holdsKey(keys [][]byte, key []byte) bool {
	return slices.ContainsFunc(keys, func(k []byte) bool { return bytes.Equal(k, key) })
}

// InstallKey returns keys with key at the end; a key that is there already
// changes nothing. The error names the length or the limit that it breaks.
func InstallKey(keys [][]byte, key []byte) ([][]byte, error) {
	if holdsKey(keys, key) {
		return keys, nil
	}
	more := append(clones(keys), bytes.Clone(key))
	return more, checkKeys(more)
}

// UseKey returns keys with key first, so that it encrypts. The key must be
// installed.
func UseKey(keys [][]byte, key []byte) ([][]byte, error) {
	if !holdsKey(keys, key) {
		return nil, errors.New("use key: it is not installed; run: serf keys -install KEY")
	}
	others := slices.DeleteFunc(clones(keys), func(k []byte) bool { return bytes.Equal(k, key) })
	return append([][]byte{bytes.Clone(key)}, others...), nil
}

// RemoveKey returns keys without key. The first key encrypts and cannot be
// removed.
func RemoveKey(keys [][]byte, key []byte) ([][]byte, error) {
	switch {
	case !holdsKey(keys, key):
		return keys, nil
	case bytes.Equal(keys[0], key):
		return nil, errors.New("remove key: it is the one that encrypts; use another one first: serf keys -use KEY")
	}
	return slices.DeleteFunc(clones(keys), func(k []byte) bool { return bytes.Equal(k, key) }), nil
}

// ParseKeyring reads serf's keyring file: a JSON list of keys in base64, the one
// to send with first.
func ParseKeyring(text []byte) ([][]byte, error) {
	var list []string
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("keyring: %w", err)
	}
	var keys [][]byte
	for i, encoded := range list {
		key, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			return nil, fmt.Errorf("keyring: key %d is not base64: %w", i+1, err)
		}
		keys = append(keys, key)
	}
	return keys, checkKeys(keys)
}

// FormatKeyring writes a text that ParseKeyring reads.
func FormatKeyring(keys [][]byte) []byte {
	list := make([]string, 0, len(keys))
	for _, k := range keys {
		list = append(list, base64.StdEncoding.EncodeToString(k))
	}
	text, err := json.MarshalIndent(list, "", "  ")
	if err != nil {
		panic(err) // strings can always be encoded
	}
	return append(text, '\n')
}

// memberlist is the library's keyring, nil without one.
func (k *Keyring) memberlist() *memberlist.Keyring {
	if k == nil {
		return nil
	}
	return k.ring
}
