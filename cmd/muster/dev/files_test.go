package dev

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FAULTS U4: muster dev --data-dir /etc wrote into a folder of others.
func TestDataFoldersThatAreTaken(t *testing.T) {
	for name, c := range map[string]struct {
		files []string
		want  string // in the error; "" for none
	}{
		"an empty folder":                 {nil, ""},
		"a folder of muster dev":          {[]string{"token", "coordinator/x", "dev.json"}, ""},
		"a folder of others":              {[]string{"passwd", "shadow"}, "the folder holds other files (passwd, …)"},
		"a folder with a token of others": {[]string{"token"}, "the folder holds other files (token, …)"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, f := range c.files {
				path := filepath.Join(dir, f)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got, err := ownFolder(dir)
			if c.want == "" && (err != nil || got != dir) {
				t.Errorf("refused: %v", err)
			}
			if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "--data-dir "+dir)) {
				t.Errorf("got %v, want %q and the folder", err, c.want)
			}
		})
	}
	missing := filepath.Join(t.TempDir(), "new")
	if got, err := ownFolder(missing); err != nil || got != missing {
		t.Errorf("a new folder: %q, %v", got, err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ownFolder(file); err == nil || !strings.Contains(err.Error(), "--data-dir "+file) {
		t.Errorf("a file: %v", err)
	}
}
