// Package nvmltest builds the fake NVML library of this folder and writes its
// scripts, so that tests drive GPU discovery through the dynamic linker as on
// a real host. README.md describes the scripts. It knows no GPU itself
// (devices/fake does).
package nvmltest

import (
	"crypto/sha256"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/musterd/muster/devices/fake"
	"github.com/musterd/muster/devices/fake/fakehost"
	"github.com/musterd/muster/test/prerequisite"
)

// ScriptVariable is the environment variable by which a process that loads the
// fake library names its script.
const ScriptVariable = "MUSTER_FAKE_NVML"

// LibraryName is the file that the dynamic linker looks for.
const LibraryName = "libnvidia-ml.so.1"

var (
	//go:embed fakenvml.c
	librarySource []byte
	//go:embed fakescript.h
	scriptSource []byte
	//go:embed fakeevents.h
	eventsSource []byte
)

// Build compiles the fake library and returns the folder that holds it, fit
// for LD_LIBRARY_PATH. The result is kept in the system's temporary folder by
// the hash of its source, so all tests of a machine compile it once. Where gcc
// is missing the test is skipped, and failed if CI=true.
func Build(tb testing.TB) (libDir string) {
	tb.Helper()
	return build(tb)
}

// BuildOld is Build for a library without the functions that came after the
// R418 drivers: MIG, NUMA affinity, NVSwitch detection.
func BuildOld(tb testing.TB) (libDir string) {
	tb.Helper()
	return build(tb, "-DOLD_DRIVER")
}

// BuildWithout is Build for a library that lacks one function.
func BuildWithout(tb testing.TB, function string) (libDir string) {
	tb.Helper()
	return build(tb, "-D"+function+"=absent_"+function)
}

func build(tb testing.TB, defines ...string) string {
	tb.Helper()
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		prerequisite.Missing(tb, "the fake NVML library needs gcc: %v", err)
	}
	flags := append([]string{
		"-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC", "-pthread", "-Wl,-soname," + LibraryName,
	}, defines...)
	sum := sha256.New()
	for _, part := range [][]byte{librarySource, scriptSource, eventsSource, []byte(strings.Join(flags, " "))} {
		fmt.Fprintf(sum, "%d\n%s", len(part), part)
	}
	dir, err := privateDir(fmt.Sprintf("muster-fakenvml-%d-%.16x", os.Getuid(), sum.Sum(nil)))
	if err != nil {
		tb.Fatal(err)
	}
	library := filepath.Join(dir, LibraryName)
	if _, err := os.Stat(library); err == nil {
		return dir
	}
	if err := compile(gcc, flags, library); err != nil {
		tb.Fatal(err)
	}
	return dir
}

// compile puts the library in place in one step, so that tests which run at
// the same time see all of it or nothing.
func compile(gcc string, flags []string, library string) error {
	work, err := os.MkdirTemp(filepath.Dir(library), "build-")
	if err != nil {
		return fmt.Errorf("build the fake NVML library: %w", err)
	}
	defer func() { _ = os.RemoveAll(work) }() // in the temporary folder anyway
	for name, text := range map[string][]byte{"fakenvml.c": librarySource, "fakescript.h": scriptSource, "fakeevents.h": eventsSource} {
		if err := os.WriteFile(filepath.Join(work, name), text, 0o600); err != nil {
			return fmt.Errorf("build the fake NVML library: %w", err)
		}
	}
	built := filepath.Join(work, LibraryName)
	command := exec.Command(gcc, append(flags, "-o", built, filepath.Join(work, "fakenvml.c"))...)
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(command.Args, " "), err, output)
	}
	if err := os.Rename(built, library); err != nil {
		return fmt.Errorf("build the fake NVML library: %w", err)
	}
	return nil
}

// privateDir returns a folder of the temporary folder that only this user can
// write: code is loaded from it.
func privateDir(name string) (string, error) {
	dir := filepath.Join(os.TempDir(), name)
	if err := os.Mkdir(dir, 0o700); err != nil && !os.IsExist(err) {
		return "", fmt.Errorf("folder for the fake NVML library: %w", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return "", fmt.Errorf("folder for the fake NVML library: %w", err)
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || info.Mode().Perm()&0o022 != 0 || !ok || int(owner.Uid) != os.Getuid() {
		return "", fmt.Errorf("folder for the fake NVML library: %s (%s) is not a folder that only this user can write: remove it", dir, info.Mode())
	}
	return dir, nil
}

// WriteScript writes the profile's script for the host nodeName into dir and
// returns its path. A library that has it open sees the new one from its next
// call on.
func WriteScript(tb testing.TB, dir string, profile fake.Profile, nodeName string) (path string) {
	tb.Helper()
	path = filepath.Join(dir, "nvml-"+nodeName+".script")
	ReplaceScript(tb, path, fakehost.NVMLScript(profile, nodeName))
	return path
}

// ReplaceScript puts text in the place of the script at path in one step. A
// new file never has the old one's number and time together, so the library
// notices.
func ReplaceScript(tb testing.TB, path string, text []byte) {
	tb.Helper()
	fresh, err := os.CreateTemp(filepath.Dir(path), ".script-")
	if err != nil {
		tb.Fatal(err)
	}
	_, err = fresh.Write(text)
	for _, step := range []func() error{
		func() error { return err },
		fresh.Close,
		func() error { return os.Rename(fresh.Name(), path) },
	} {
		if err := step(); err != nil {
			tb.Fatal(err)
		}
	}
}

// Act has the library that obeys the script at path do what happens to host:
// it puts the host's script there, or takes it away while the driver is
// unloaded. Events that host tells are then to be told by a watch through the
// library.
func Act(tb testing.TB, path string, host *fakehost.Host) {
	tb.Helper()
	if text := host.NVMLScript(); text != nil {
		ReplaceScript(tb, path, text)
	} else if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		tb.Fatal(err)
	}
}

// Environ returns the two variables under which a program that looks for NVML
// finds the library in libDir and obeys the script.
func Environ(libDir, script string) []string {
	return []string{"LD_LIBRARY_PATH=" + libDir, ScriptVariable + "=" + script}
}
