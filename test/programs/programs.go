// Package programs builds Muster's programs for tests that run them as
// processes, and waits for what processes do. It builds each program once for all
// test packages of a checkout. How a test starts and ends the processes is its
// own: on this host (test/integration) or on hosts of their own (test/cluster).
package programs

import (
	"errors"
	"os"
	"path/filepath"
	"runtime/debug"
)

// Run builds the programs, puts them first on PATH, calls tests and returns
// their exit code. What was built is removed afterwards.
func Run(tests func() int) (code int, err error) {
	dir, err := os.MkdirTemp("", "muster-programs-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := Build(dir, "muster", "muster-agent", "muster-shim", "muster-coordinator"); err != nil {
		return 0, err
	}
	if err := os.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH")); err != nil {
		return 0, err
	}
	return tests(), nil
}

// RaceEnabled reports whether this test was built with -race.
func RaceEnabled() bool {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return false
	}
	for _, s := range info.Settings {
		if s.Key == "-race" {
			return s.Value == "true"
		}
	}
	return false
}

// Root is the folder of go.mod, found upwards from the test's own.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("no go.mod above the tests")
		}
		dir = up
	}
}
