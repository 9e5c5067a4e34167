package dev

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/musterd/muster/rpcauth"
)

// tokenIn reads the token of that name in the data folder, or makes it.
func tokenIn(dir, name string) (rpcauth.Token, string, error) {
	path := filepath.Join(dir, name)
	t, err := rpcauth.ReadOrGenerate(path)
	return t, path, err
}

// ownFolder returns the absolute path of a data folder. A folder that is not
// empty has to be one of muster dev's own: its state would lie among the files
// of others.
func ownFolder(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("--data-dir: %w", err)
	}
	entries, err := os.ReadDir(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return path, nil
	case err != nil:
		return "", fmt.Errorf("--data-dir %s: %w", path, err)
	case len(entries) == 0:
		return path, nil
	}
	has := func(name string) bool {
		_, err := os.Lstat(filepath.Join(path, name))
		return err == nil
	}
	if !has("token") || !has("cluster-token") && !has("coordinator") {
		return "", fmt.Errorf("--data-dir %s: the folder holds other files (%s, …) and no state of muster dev: want an empty folder, a new one, or one that muster dev has made",
			path, entries[0].Name())
	}
	return path, nil
}

// writeAddresses replaces dev.json at once.
func writeAddresses(path string, a Addresses) error {
	data, err := json.MarshalIndent(a, "", "  ")
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	temporary := path + ".new"
	if err := os.WriteFile(temporary, append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.Rename(temporary, path)
}

// nodeIDOf turns a host's name into a node id: lower case, other characters
// become '-'.
func nodeIDOf(hostname string) string {
	id := strings.Map(func(r rune) rune {
		if (r >= 'a' && r <= 'z') || (r >= '0' && r <= '9') || r == '-' || r == '.' {
			return r
		}
		return '-'
	}, strings.ToLower(hostname))
	id = strings.Trim(id, "-.")
	if id == "" {
		return "localhost"
	}
	return id[:min(len(id), 63)]
}

// profileLabel is the profile's name without its path.
func profileLabel(profile string) string {
	return strings.TrimSuffix(filepath.Base(profile), ".json")
}
