package rpcauth

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
)

// maxTokenFile bounds the part of a token file that is read, in bytes.
const maxTokenFile = 4096

// ReadFile reads a token from a file that only its owner may read. A file that
// its group or others may read or write is refused with the command that
// mends it.
func ReadFile(path string) (Token, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe does not block the start
	if err != nil {
		return Token{}, fmt.Errorf("token file: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return Token{}, fmt.Errorf("token file: %w", err)
	}
	if !info.Mode().IsRegular() {
		return Token{}, fmt.Errorf("token file %s: not a regular file", path)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return Token{}, fmt.Errorf("token file %s: mode %04o lets others use it; run: chmod 0600 %s", path, mode, path)
	}
	if info.Size() > maxTokenFile {
		return Token{}, fmt.Errorf("token file %s: %d bytes, more than %d", path, info.Size(), maxTokenFile)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxTokenFile))
	if err != nil {
		return Token{}, fmt.Errorf("token file: %w", err)
	}
	t, err := NewToken(strings.TrimSpace(string(data)))
	if err != nil {
		return Token{}, fmt.Errorf("token file %s: %w", path, err)
	}
	return t, nil
}

// Generate draws a token of 128 random bits.
func Generate() Token {
	var b [16]byte
	rand.Read(b[:])
	return Token{hex.EncodeToString(b[:])}
}

// WriteFile creates a token file with mode 0600. An existing file is an error
// that satisfies errors.Is(err, fs.ErrExist).
func WriteFile(path string, t Token) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("token file: %w", err)
	}
	if _, err := f.WriteString(t.secret + "\n"); err != nil {
		f.Close()
		return fmt.Errorf("token file: %w", err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("token file: %w", err)
	}
	return nil
}
