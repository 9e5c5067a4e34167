package clicontext

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSavedContextIsLoadedAndPrivate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "folder", "context.json")
	for _, want := range []Context{{Addr: "http://127.0.0.1:1", Token: "a"}, {Addr: "http://127.0.0.1:2", Token: "b", Namespace: "ml"}} {
		if err := Save(path, want); err != nil {
			t.Fatal(err)
		}
		got, err := Load(path)
		if err != nil || got != want {
			t.Errorf("got %+v, %v; want %+v", got, err, want)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("%d files left in the folder, want 1 (%v)", len(entries), err)
	}
}

func TestContextsThatAreRefused(t *testing.T) {
	cases := map[string]struct {
		mode    fs.FileMode
		content string
		want    string
	}{
		"readable by others": {0o644, `{}`, "others may use it (mode 0644): chmod 600 "},
		"not JSON":           {0o600, `addr: x`, "invalid character"},
		"an unknown field":   {0o600, `{"address":"x"}`, `unknown field "address"`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "context.json")
			if err := os.WriteFile(path, []byte(c.content), c.mode); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(path, c.mode); err != nil {
				t.Fatal(err)
			}
			if _, err := Load(path); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q in it", err, c.want)
			}
		})
	}
	if _, err := Load(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: got %v", err)
	}
	if _, err := Load(t.TempDir()); err == nil {
		t.Error("a folder was loaded")
	}
}

func TestPathIsTheVariablesOrTheUsers(t *testing.T) {
	got, err := Path(func(string) string { return "/elsewhere/c.json" })
	if err != nil || got != "/elsewhere/c.json" {
		t.Errorf("got %q, %v", got, err)
	}
	t.Setenv("XDG_CONFIG_HOME", "/home/x/.config")
	got, err = Path(func(string) string { return "" })
	if err != nil || got != "/home/x/.config/muster/context.json" {
		t.Errorf("got %q, %v", got, err)
	}
}
