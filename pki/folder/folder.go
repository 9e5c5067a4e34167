// Package folder keeps one party's certificate, key, trusted authorities and
// gossip keys on disk, for their owner alone. It decides how they are written,
// so that a crash leaves the old or the new ones; what is in them is pki's
// business.
package folder

import (
	"crypto"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/musterd/muster/pki"
)

// The files. The certificate and its key share one, so that they always fit.
const (
	partyFile   = "party.pem"    // private key, then the chain, own certificate first
	rootsFile   = "ca.pem"       // the trusted authorities
	pendingFile = "next.pem"     // the key that a certificate was asked for
	keyringFile = "keyring.json" // an agent's, in serf's keyring format
	knownFile   = "known.json"   // a coordinator's: nodes' keys, bans and operators
	revokedFile = "revoked.json" // an agent's: the keys of revoked operators
)

// Folder is one party's. Its methods are for one goroutine at a time.
type Folder struct{ dir string }

// Open makes the folder, with mode 0700, or checks that nobody else can use it.
func Open(dir string) (*Folder, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("identity folder: %w", err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("identity folder: %w", err)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return nil, fmt.Errorf("identity folder %s: mode %04o lets others use it; run: chmod 0700 %s", dir, mode, dir)
	}
	return &Folder{dir}, nil
}

// Party is a certificate with its key and whom its owner trusts.
type Party struct {
	Chain []*x509.Certificate // own certificate first
	Key   crypto.Signer
	Roots pki.Bundle
}

// Load returns what Save wrote; an error that errors.Is finds to be
// fs.ErrNotExist where nothing has been yet.
func (f *Folder) Load() (Party, error) {
	text, err := f.read(partyFile)
	if err != nil {
		return Party{}, err
	}
	var p Party
	if p.Key, err = parseKey(text); err != nil {
		return Party{}, fmt.Errorf("%s: %w", f.path(partyFile), err)
	}
	if p.Chain, err = pki.ParsePEM(pki.WithoutKeys(text)); err != nil {
		return Party{}, fmt.Errorf("%s: %w", f.path(partyFile), err)
	}
	if text, err = f.read(rootsFile); err != nil {
		return Party{}, fmt.Errorf("%s is there: %v", f.path(partyFile), err) //nolint:errorlint // not fs.ErrNotExist: something has been
	}
	if p.Roots, err = pki.ParsePEM(text); err != nil {
		return Party{}, fmt.Errorf("%s: %w", f.path(rootsFile), err)
	}
	return p, nil
}

// Save replaces the party's files and forgets the pending key.
func (f *Folder) Save(p Party) error {
	key, err := pki.MarshalKey(p.Key)
	if err != nil {
		return err
	}
	if err := f.write(rootsFile, pki.FormatPEM(p.Roots)); err != nil {
		return err
	}
	if err := f.write(partyFile, append(pki.FormatKeyPEM(key), pki.FormatPEM(p.Chain)...)); err != nil {
		return err
	}
	if err := os.Remove(f.path(pendingFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("identity folder: %w", err)
	}
	return nil
}

// PendingKey returns the key to ask a certificate for: the one that was asked
// with before and whose certificate never came, or a new one. It is on disk
// before it is returned.
func (f *Folder) PendingKey() (crypto.Signer, error) {
	text, err := f.read(pendingFile)
	if err == nil {
		if key, err := parseKey(text); err == nil {
			return key, nil
		} // a damaged one has no certificate either
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	key, err := pki.NewKey()
	if err != nil {
		return nil, err
	}
	der, err := pki.MarshalKey(key)
	if err != nil {
		return nil, err
	}
	return key, f.write(pendingFile, pki.FormatKeyPEM(der))
}

// KeyringPath is the file of the gossip keys.
func (f *Folder) KeyringPath() string { return f.path(keyringFile) }

// PartyPath is the file of the private key and the chain, and RootsPath that of
// the trusted authorities, in PEM.
func (f *Folder) PartyPath() string { return f.path(partyFile) }

// RootsPath is the file of the trusted authorities, in PEM.
func (f *Folder) RootsPath() string { return f.path(rootsFile) }

// LoadKeyring returns the content of the gossip keys' file; fs.ErrNotExist as
// in Load.
func (f *Folder) LoadKeyring() ([]byte, error) { return f.read(keyringFile) }

// SaveKeyring replaces the gossip keys' file.
func (f *Folder) SaveKeyring(text []byte) error { return f.write(keyringFile, text) }

// LoadKnown returns what SaveKnown wrote; fs.ErrNotExist as in Load.
func (f *Folder) LoadKnown() ([]byte, error) { return f.readUpTo(knownFile, maxKnown) }

// SaveKnown keeps the nodes' keys, bans and operators that a coordinator knows,
// for the day on which the store is restored from an older backup.
func (f *Folder) SaveKnown(text []byte) error { return f.write(knownFile, text) }

// LoadRevoked returns what SaveRevoked wrote; fs.ErrNotExist as in Load.
func (f *Folder) LoadRevoked() ([]byte, error) { return f.read(revokedFile) }

// SaveRevoked keeps the keys of the operators that an agent was told to refuse.
func (f *Folder) SaveRevoked(text []byte) error { return f.write(revokedFile, text) }

func parseKey(text []byte) (crypto.Signer, error) {
	der, err := pki.ParseKeyPEM(text)
	if err != nil {
		return nil, err
	}
	return pki.ParseKey(der)
}

func (f *Folder) path(name string) string { return filepath.Join(f.dir, name) }

// maxFile bounds a file, in bytes; maxKnown that of SaveKnown, which has about
// 400 bytes for each node.
const (
	maxFile  = 1 << 20
	maxKnown = 64 << 20
)

// read reads a file that its owner alone may use.
func (f *Folder) read(name string) ([]byte, error) { return f.readUpTo(name, maxFile) }

func (f *Folder) readUpTo(name string, most int64) ([]byte, error) {
	path := f.path(name)
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("identity: %w", err)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return nil, fmt.Errorf("identity: %s: mode %04o lets others use it; run: chmod 0600 %s", path, mode, path)
	}
	if info.Size() > most {
		return nil, fmt.Errorf("identity: %s: %d bytes, more than %d", path, info.Size(), most)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("identity: %w", err)
	}
	return text, nil
}

// write replaces a file in one step, durably.
func (f *Folder) write(name string, text []byte) (err error) {
	file, err := os.CreateTemp(f.dir, "."+name+"-*") // mode 0600
	if err != nil {
		return fmt.Errorf("identity: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("identity: %w", err), os.Remove(file.Name()))
		}
	}()
	_, writeErr := file.Write(text)
	if err := errors.Join(writeErr, file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := os.Rename(file.Name(), f.path(name)); err != nil {
		return err
	}
	dir, err := os.Open(f.dir)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
