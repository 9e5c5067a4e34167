// Package manualtest holds a program's manual: every command and flag has a text,
// the reference page is fresh, and each command has a man page and a completion.
package manualtest

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/musterd/muster/cmd/manual"
	"github.com/musterd/muster/test/fresh"
)

// Texts checks that no command and no flag is without a text.
func Texts(t *testing.T, root *cobra.Command) {
	t.Helper()
	for _, missing := range missingTexts(root) {
		t.Error(missing)
	}
}

// Page compares the page in docs/reference.
func Page(t *testing.T, root *cobra.Command) {
	t.Helper()
	fresh.File(t, filepath.Join("..", "..", "docs", "reference", root.Name()+".md"), pageOf(root))
}

// Man writes the man pages twice, and checks that every command has one and that
// both are equal. The second tree is a new one, since cobra adds to a tree.
func Man(t *testing.T, tree func() *cobra.Command) {
	t.Helper()
	first, second := t.TempDir(), t.TempDir()
	for _, folder := range []string{first, second} {
		if err := manual.Man(tree(), "v0.0.0", folder); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range commands(tree()) {
		name := manFile(c)
		page, err := os.ReadFile(filepath.Join(first, name))
		if err != nil {
			t.Error(err)
			continue
		}
		again, err := os.ReadFile(filepath.Join(second, name))
		if err != nil || !bytes.Equal(page, again) {
			t.Errorf("%s differs when it is written again, %v", name, err)
		}
		for _, want := range []string{".TH ", "NAME", "SYNOPSIS", "v0.0.0"} {
			if !strings.Contains(string(page), want) {
				t.Errorf("%s has no %s", name, want)
			}
		}
	}
}

// Completions checks the scripts of bash, zsh and fish.
func Completions(t *testing.T, tree func() *cobra.Command) {
	t.Helper()
	for _, shell := range []string{"bash", "zsh", "fish"} {
		root := tree()
		var out bytes.Buffer
		root.SetOut(&out)
		root.SetArgs([]string{"completion", shell})
		if err := root.Execute(); err != nil || !strings.Contains(out.String(), "__complete") || !strings.Contains(out.String(), root.Name()) {
			t.Errorf("completion %s: %v, %d bytes", shell, err, out.Len())
		}
	}
}
