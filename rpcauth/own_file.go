package rpcauth

import (
	"errors"
	"io/fs"
)

// ReadOrGenerate reads a token as ReadFile does, or writes a new one where there
// is no file. Its folder must exist.
func ReadOrGenerate(path string) (Token, error) {
	t, err := ReadFile(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return t, err
	}
	t = Generate()
	return t, WriteFile(path, t)
}
