package gossip

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/hashicorp/memberlist"
)

// keyBytes is the length of keys that GenerateKey draws: AES-256.
const keyBytes = 32

// maxKeys bounds a keyring; two are in use while one takes over from another.
const maxKeys = 16

// Keyring holds the keys that encrypt both rings: the first one to send, all
// of them to read. The stock `serf keys` changes it on every member at once. It
// may be used by several goroutines.
type Keyring struct{ ring *memberlist.Keyring }

// NewKeyring returns a keyring of 1 to 16 keys of 16, 24 or 32 bytes.
func NewKeyring(keys [][]byte) (*Keyring, error) {
	if err := checkKeys(keys); err != nil {
		return nil, err
	}
	ring, err := memberlist.NewKeyring(clones(keys), bytes.Clone(keys[0]))
	if err != nil {
		return nil, fmt.Errorf("keyring: %w", err)
	}
	return &Keyring{ring}, nil
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

// GenerateKey draws a key.
func GenerateKey() []byte {
	key := make([]byte, keyBytes)
	rand.Read(key) // never fails
	return key
}

// Keys returns the keys, the one to send with first; the copy is the caller's.
func (k *Keyring) Keys() [][]byte { return clones(k.ring.GetKeys()) }

func clones(keys [][]byte) [][]byte {
	out := make([][]byte, 0, len(keys))
	for _, k := range keys {
		out = append(out, bytes.Clone(k))
	}
	return out
}

// Replace makes keys the keyring's. New ones are installed first and old ones
// removed last, so that what is under way can be read throughout.
func (k *Keyring) Replace(keys [][]byte) error {
	if err := checkKeys(keys); err != nil {
		return err
	}
	var errs []error
	for _, key := range keys {
		errs = append(errs, k.ring.AddKey(bytes.Clone(key)))
	}
	errs = append(errs, k.ring.UseKey(keys[0]))
	for _, old := range slices.Backward(k.Keys()) {
		if !slices.ContainsFunc(keys, func(key []byte) bool { return bytes.Equal(key, old) }) {
			errs = append(errs, k.ring.RemoveKey(old))
		}
	}
	return errors.Join(errs...)
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

// FormatKeyring writes what ParseKeyring reads.
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
