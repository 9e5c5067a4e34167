package dev

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestAHostsGPUsAreLeftToTheProgramWithTheDriver(t *testing.T) {
	dir := t.TempDir()
	own := func() (string, error) { return filepath.Join(dir, "muster"), nil }
	var ran []string
	exec := func(path string, args, env []string) error { ran = append([]string{path}, args...); return nil }
	if err := becomeDriver(own, exec, nil); err != nil || ran != nil {
		t.Fatalf("without the program: ran %q, %v", ran, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "muster-dev"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := becomeDriver(own, exec, nil); err != nil || !slices.Equal(ran, append([]string{filepath.Join(dir, "muster-dev")}, os.Args...)) {
		t.Errorf("ran %q, %v", ran, err)
	}
	broken := func(string, []string, []string) error { return errors.New("exec format error") }
	if err := becomeDriver(own, broken, nil); err == nil || !strings.Contains(err.Error(), "muster-dev: exec format error") {
		t.Errorf("a broken program: %v", err)
	}
}
