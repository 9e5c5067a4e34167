// Package clicontext reads and writes the file in which the command line finds
// its servers. The file holds contexts by name, each with address, token and
// namespace, and the name of the current one. It holds credentials, so it is
// written with mode 0600 and refused when others may read it.
package clicontext

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/musterd/muster/cmd/configfile"
)

// Bounds of a file.
const (
	maxFile     = 1 << 20 // bytes
	maxContexts = 1000
)

// CarriedOver is the name of the context that a file of version 0.1.0-dev
// becomes, which held a single context without a name.
const CarriedOver = "default"

// Context says where a server is and how to be let in. Any field may be "".
type Context struct {
	// Addr is one address, or several with commas in between: they are tried in
	// turn.
	Addr      string `json:"addr"`
	Token     string `json:"token"`
	Namespace string `json:"namespace,omitempty"`
	// CertificateAuthority is a PEM file of the authorities that the server is
	// trusted by; "" is the system's.
	CertificateAuthority string `json:"certificateAuthority,omitempty"`
	// ClientCertificate is a PEM file with the certificate that proves the caller where
	// there is no token; "" is none. ClientKey has its key, "" for the same file.
	ClientCertificate string `json:"clientCertificate,omitempty"`
	ClientKey         string `json:"clientKey,omitempty"`
	// Login is how the token was got and is renewed; nil for a token that a person has
	// set.
	Login *Login `json:"login,omitempty"`
	// Dev marks a context of muster dev, which removes it at its end.
	Dev *Dev `json:"dev,omitempty"`
}

// Login is a login at an identity provider.
type Login struct {
	Issuer   string   `json:"issuer"`
	ClientID string   `json:"clientID"`
	Scopes   []string `json:"scopes,omitempty"`
	// CertificateAuthority is a PEM file of the authorities that the provider is trusted
	// by; "" is the system's.
	CertificateAuthority string `json:"certificateAuthority,omitempty"`
	// RefreshToken gets the next token; "" for none.
	RefreshToken string `json:"refreshToken,omitempty"`
	// Expires is when the token ends, in RFC 3339.
	Expires string `json:"expires"`
}

// File is the content of the file. The zero value is that of a missing file.
//
// Invariant: Current is "" or a key of Contexts.
type File struct {
	Current  string             `json:"currentContext"`
	Contexts map[string]Context `json:"contexts"`
}

// single is a file of version 0.1.0-dev.
type single struct {
	Addr                 string `json:"addr"`
	Token                string `json:"token"`
	Namespace            string `json:"namespace,omitempty"`
	CertificateAuthority string `json:"certificateAuthority,omitempty"`
}

// Path is the file's: $MUSTER_CONTEXT, else muster/context.json under the
// user's config folder. env looks environment variables up.
func Path(env func(string) string) (string, error) {
	if path := env("MUSTER_CONTEXT"); path != "" {
		return path, nil
	}
	folder, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("no place for the context file: %w: set MUSTER_CONTEXT", err)
	}
	return filepath.Join(folder, "muster", "context.json"), nil
}

// Names returns the names of the contexts in order.
func (f File) Names() []string { return slices.Sorted(maps.Keys(f.Contexts)) }

// Select returns the context with a name, or the current one for "". The zero
// Context with an error says which contexts there are.
func (f File) Select(name string) (Context, error) {
	if name == "" {
		name = f.Current
	}
	if c, found := f.Contexts[name]; found {
		return c, nil
	}
	has := "there is none"
	if len(f.Contexts) > 0 {
		has = "there are " + strings.Join(f.Names(), ", ")
	}
	if name == "" {
		return Context{}, fmt.Errorf("no context is current: muster config use-context NAME chooses one, %s", has)
	}
	return Context{}, fmt.Errorf("context %q is not in the file, %s", name, has)
}

// contextName is a name that needs no quotes in a shell.
var contextName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._@-]{0,61}[A-Za-z0-9])?$`)

// CheckName refuses names that a shell or a table would not show as they are.
func CheckName(name string) error {
	if !contextName.MatchString(name) {
		return fmt.Errorf("%q is not the name of a context: want 1..63 letters, digits, '-', '_', '.' and '@', with a letter or digit at both ends", name)
	}
	return nil
}

// Load reads the file. A missing one is an error that errors.Is finds to be
// fs.ErrNotExist; a broken file, or a file that others may read, is refused.
func Load(path string) (File, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return File{}, fmt.Errorf("context file %s: %w", path, fs.ErrNotExist)
	case err != nil:
		return File{}, fmt.Errorf("context file: %w", err)
	case !info.Mode().IsRegular():
		return File{}, fmt.Errorf("context file %s is not a regular file", path)
	case info.Mode().Perm()&0o077 != 0:
		return File{}, fmt.Errorf("context file %s holds a token and others may use it (mode %04o): chmod 600 %s", path, info.Mode().Perm(), path)
	case info.Size() > maxFile:
		return File{}, fmt.Errorf("context file %s: %d bytes, more than %d", path, info.Size(), maxFile)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return File{}, fmt.Errorf("context file: %w", err)
	}
	f, err := Decode(raw)
	if err != nil {
		return File{}, fmt.Errorf("context file %s: %w: repair it, or remove it and start muster dev again", path, err)
	}
	return f, nil
}

// Decode reads the content of a file, or of a file that holds a single context
// without a name.
func Decode(raw []byte) (File, error) {
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(raw, &keys); err != nil {
		return File{}, err
	}
	_, named := keys["contexts"]
	_, current := keys["currentContext"]
	if !named && !current && len(keys) > 0 {
		var old single
		if err := decodeStrict(raw, &old); err != nil {
			return File{}, err
		}
		return File{Current: CarriedOver, Contexts: map[string]Context{CarriedOver: {
			Addr: old.Addr, Token: old.Token, Namespace: old.Namespace, CertificateAuthority: old.CertificateAuthority,
		}}}, nil
	}
	var f File
	if err := decodeStrict(raw, &f); err != nil {
		return File{}, err
	}
	return f, f.check()
}

func decodeStrict(raw []byte, into any) error {
	if err := configfile.CheckKeys(raw, into); err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return err
	}
	if decoder.More() {
		return errors.New("there is more behind the end of the document")
	}
	return nil
}

// check verifies the invariant, the bound and the names.
func (f File) check() error {
	if len(f.Contexts) > maxContexts {
		return fmt.Errorf("contexts: %d of them, the limit is %d", len(f.Contexts), maxContexts)
	}
	for _, name := range f.Names() {
		if err := CheckName(name); err != nil {
			return fmt.Errorf("contexts: %w", err)
		}
	}
	if _, found := f.Contexts[f.Current]; f.Current != "" && !found {
		return fmt.Errorf("currentContext: %q is not among the contexts", f.Current)
	}
	return nil
}

// Update changes the file: other programs that update it wait meanwhile, and
// readers see the old or the new one. A missing file is an empty one. Where
// change returns an error, the file stays as it is.
func Update(path string, change func(*File) error) error {
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("context file: %w", err)
	}
	lock, err := os.Open(folder)
	if err != nil {
		return fmt.Errorf("context file: %w", err)
	}
	defer func() { _ = lock.Close() }() // which ends the lock
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return fmt.Errorf("context file: lock %s: %w", folder, err)
	}
	f, err := Load(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f.Contexts = maps.Clone(f.Contexts)
	if f.Contexts == nil {
		f.Contexts = map[string]Context{}
	}
	if err := change(&f); err != nil {
		return err
	}
	if err := f.check(); err != nil {
		return fmt.Errorf("context file %s: %w", path, err)
	}
	return save(path, f)
}

// save replaces the file in one step. A symbolic link stays, and the file that
// it names is replaced.
func save(path string, f File) (err error) {
	raw, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return fmt.Errorf("context file %s: %w", path, err)
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	temporary, err := os.CreateTemp(filepath.Dir(path), ".context-*") // mode 0600
	if err != nil {
		return fmt.Errorf("context file: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("context file: %w", err), os.Remove(temporary.Name()))
		}
	}()
	_, writeErr := temporary.Write(append(raw, '\n'))
	if err := errors.Join(writeErr, temporary.Sync(), temporary.Close()); err != nil {
		return err
	}
	return os.Rename(temporary.Name(), path)
}
