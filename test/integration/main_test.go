package integration

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"testing"
)

// stateVariable names the folder that the tests of one run share: the programs
// and the ports that are taken.
const stateVariable = "MUSTER_INTEGRATION_STATE"

// programs are what is built.
var programs = [...]string{"muster", "muster-agent", "muster-coordinator"}

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// run builds the programs, puts them first on PATH and runs the tests.
func run(m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "muster-integration-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	bin := filepath.Join(dir, "bin")
	if err := build(bin); err != nil {
		return 0, err
	}
	for _, set := range [][2]string{
		{stateVariable, dir},
		{"PATH", bin + string(os.PathListSeparator) + os.Getenv("PATH")},
	} {
		if err := os.Setenv(set[0], set[1]); err != nil {
			return 0, err
		}
	}
	return m.Run(), nil
}

// build compiles the programs into bin, under the race detector where the
// tests run under it.
func build(bin string) error {
	args := []string{"build", "-o", bin + string(filepath.Separator)}
	if raceEnabled() {
		args = append(args, "-race")
	}
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	for _, p := range programs {
		args = append(args, "./cmd/"+p)
	}
	if err := os.MkdirAll(bin, 0o700); err != nil {
		return err
	}
	command := exec.Command("go", args...)
	command.Dir = root
	if os.Getenv("CGO_CFLAGS") == "" { // as the Makefile does
		command.Env = append(os.Environ(), "CGO_CFLAGS=-O2 -g -Wno-deprecated-declarations")
	}
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", command, err, output)
	}
	return nil
}

// raceEnabled reports whether this test was built with -race.
func raceEnabled() bool {
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

// moduleRoot is the folder of go.mod, found upwards from the test's own.
func moduleRoot() (string, error) {
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

// example is the path of a file of examples/.
func example(t *testing.T, name string) string {
	t.Helper()
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(root, "examples", name)
}
