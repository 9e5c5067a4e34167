// Package clicontext reads and writes the file in which the command line finds
// its server: address, token and namespace. It holds a credential, so it is
// written with mode 0600 and refused when others may read it.
package clicontext

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Context says where the server is and how to be let in. Any field may be "".
type Context struct {
	// Addr is one address, or several with commas in between: they are tried in
	// turn.
	Addr      string `json:"addr"`
	Token     string `json:"token"`
	Namespace string `json:"namespace,omitempty"`
	// CertificateAuthority is a PEM file of the authorities that the server is
	// trusted by; "" is the system's.
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

// Load reads the file. A missing one is an error that errors.Is finds to be
// fs.ErrNotExist; a broken one, or one that others may read, is refused.
func Load(path string) (Context, error) {
	var c Context
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return c, fmt.Errorf("context file %s: %w", path, fs.ErrNotExist)
	case err != nil:
		return c, fmt.Errorf("context file: %w", err)
	case !info.Mode().IsRegular():
		return c, fmt.Errorf("context file %s is not a regular file", path)
	case info.Mode().Perm()&0o077 != 0:
		return c, fmt.Errorf("context file %s holds a token and others may use it (mode %04o): chmod 600 %s", path, info.Mode().Perm(), path)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return c, fmt.Errorf("context file: %w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&c); err != nil {
		return Context{}, fmt.Errorf("context file %s: %w: repair it, or remove it and start muster dev again", path, err)
	}
	return c, nil
}

// Save replaces the file in one step: readers see the old or the new one.
func Save(path string, c Context) (err error) {
	raw, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return fmt.Errorf("context file %s: %w", path, err)
	}
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("context file: %w", err)
	}
	f, err := os.CreateTemp(folder, ".context-*") // mode 0600
	if err != nil {
		return fmt.Errorf("context file: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("context file: %w", err), os.Remove(f.Name()))
		}
	}()
	_, writeErr := f.Write(append(raw, '\n'))
	if err := errors.Join(writeErr, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
