package dev

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// FAULTS S13: muster dev printed its token.
func TestTheTokenIsNamedByItsFileAndNotPrinted(t *testing.T) {
	dir := t.TempDir()
	token, file, err := tokenIn(dir, "token")
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has mode %v, %v", info.Mode(), err)
	}
	c := Config{Nodes: 1, Profile: "dgx-a100", DataDir: dir, Version: "test"}
	found, err := hardware(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	d := &Cluster{config: c, Token: token.Secret(), Addresses: Addresses{REST: "http://127.0.0.1:1", TokenFile: file}, Discovered: found("node-0")}
	var out strings.Builder
	d.announce(&out, AddedContext{Name: "dev", File: filepath.Join(dir, "context.json")}, false, time.Second)
	if strings.Contains(out.String(), token.Secret()) || !strings.Contains(out.String(), file) || !strings.Contains(out.String(), "context.json") {
		t.Errorf("announced:\n%s", out.String())
	}
}
