package folder_test

import (
	"crypto/x509"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/musterd/muster/pki"
	"github.com/musterd/muster/pki/folder"
)

func open(t *testing.T) (*folder.Folder, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "identity")
	f, err := folder.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return f, dir
}

func party(t *testing.T, f *folder.Folder) folder.Party {
	t.Helper()
	a, err := pki.NewAuthority("c", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	key, err := f.PendingKey()
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := a.Issue(key.Public(), pki.Identity{Cluster: "c", Role: pki.Node, ID: "n"}, nil, time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return folder.Party{Chain: []*x509.Certificate{leaf}, Key: key, Roots: pki.Bundle{a.Certificate}}
}

func TestAPartyReadsBack(t *testing.T) {
	f, dir := open(t)
	if _, err := f.Load(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty folder: %v", err)
	}
	for range 2 { // the second replaces the first
		want := party(t, f)
		if err := f.Save(want); err != nil {
			t.Fatal(err)
		}
		got, err := f.Load()
		if err != nil || !got.Chain[0].Equal(want.Chain[0]) || len(got.Chain) != 1 || !got.Roots[0].Equal(want.Roots[0]) {
			t.Fatalf("read back: %v", err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("%d files, want party.pem and ca.pem: %v", len(entries), err)
	}
}

// The key that a certificate was asked for is the same after a crash, until
// the certificate is there.
func TestThePendingKeyOutlivesACrash(t *testing.T) {
	f, dir := open(t)
	first, err := f.PendingKey()
	if err != nil {
		t.Fatal(err)
	}
	again, err := folder.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	hash := func(f *folder.Folder) string {
		t.Helper()
		key, err := f.PendingKey()
		if err != nil {
			t.Fatal(err)
		}
		h, err := pki.KeyHash(key.Public())
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	want, err := pki.KeyHash(first.Public())
	if err != nil {
		t.Fatal(err)
	}
	if got := hash(again); got != want {
		t.Error("another key after a crash")
	}
	if err := again.Save(party(t, again)); err != nil {
		t.Fatal(err)
	}
	if got := hash(again); got == want {
		t.Error("the key of the certificate is asked for again")
	}
	if err := os.WriteFile(filepath.Join(dir, "next.pem"), []byte("half a"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := hash(again); got == want {
		t.Error("a damaged key is not replaced")
	}
}

func TestWhatOthersMayUseOrIsDamagedIsRefused(t *testing.T) {
	for want, spoil := range map[string]func(dir string) error{
		"chmod 0600 ":           func(dir string) error { return os.Chmod(filepath.Join(dir, "party.pem"), 0o640) },
		"no PEM private key":    func(dir string) error { return os.WriteFile(filepath.Join(dir, "party.pem"), []byte("x"), 0o600) },
		"not a list of PEM":     func(dir string) error { return os.WriteFile(filepath.Join(dir, "ca.pem"), nil, 0o600) },
		"1048577 bytes":         func(dir string) error { return os.Truncate(filepath.Join(dir, "ca.pem"), 1<<20+1) },
		"no such file or direc": func(dir string) error { return os.Remove(filepath.Join(dir, "ca.pem")) },
	} {
		f, dir := open(t)
		if err := errors.Join(f.Save(party(t, f)), spoil(dir)); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Load(); err == nil || errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	_, dir := open(t)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := folder.Open(dir); err == nil || !strings.Contains(err.Error(), "chmod 0700") {
		t.Errorf("an open folder: %v", err)
	}
}
