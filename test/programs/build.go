package programs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// shared is the folder below the module's for the programs of all test packages.
// The go command itself decides whether a program there is up to date: it compares
// the build ID in the file with the ID of sources, flags and toolchain, and links
// only where these differ. All packages therefore build with the same flags, those
// of `go test`, which shares the compiled packages with the tests.
const shared = ".build/programs"

// Build puts programs of this module into a folder: "muster" is cmd/muster. They
// have the race detector where the test has it, and no debugging symbols.
func Build(into string, names ...string) error {
	packages := make([]string, len(names))
	for i, name := range names {
		packages[i] = "./cmd/" + name
	}
	return build(".", into, packages, names)
}

// BuildModule puts the program of a nested module's first package into a folder.
// The program has the name of the module's folder.
func BuildModule(module, into string) error {
	return build(module, into, []string{"."}, []string{filepath.Base(module)})
}

// build runs the go command in a folder below the root. One process at a time
// builds: the next one finds the programs up to date.
func build(module, into string, packages, names []string) (err error) {
	root, err := Root()
	if err != nil {
		return err
	}
	if err := seeSources(root, module); err != nil {
		return err
	}
	args := []string{"build", "-ldflags=-w"}
	folder := filepath.Join(root, shared, "plain")
	if RaceEnabled() {
		args, folder = append(args, "-race"), filepath.Join(root, shared, "race")
	}
	unlock, err := lock(folder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	command := exec.Command("go", append(append(args, "-o", folder+string(filepath.Separator)), packages...)...)
	command.Dir = filepath.Join(root, module)
	if os.Getenv("CGO_CFLAGS") == "" { // as the Makefile does
		command.Env = append(os.Environ(), "CGO_CFLAGS=-O2 -g -Wno-deprecated-declarations")
	}
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", command, err, output)
	}
	for _, name := range names {
		if err := place(filepath.Join(folder, name), filepath.Join(into, name)); err != nil {
			return err
		}
	}
	return nil
}

// seeSources looks at the folders of the program's sources, which makes a cached
// result of the test depend on them: the go command knows the test's own sources
// and the files that the test has opened.
func seeSources(root, module string) error {
	return filepath.WalkDir(filepath.Join(root, module), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() || path == filepath.Join(root, module) {
			return err
		}
		if strings.HasPrefix(d.Name(), ".") || slices.Contains([]string{"bin", "docs", "test", "testdata", "tools"}, d.Name()) {
			return filepath.SkipDir
		}
		return nil
	})
}

// lock makes the folder and waits until no other process builds in it.
func lock(folder string) (unlock func() error, err error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(folder+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX)
		if err == nil {
			return file.Close, nil
		}
		if !errors.Is(err, syscall.EINTR) {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", file.Name(), err), file.Close())
		}
	}
}

// place gives a test a program of its own: a second name of the file, or a copy on
// another file system. The go command replaces the file of a program that it builds
// anew and does not change it, so a running test keeps the program it has.
func place(from, to string) error {
	if os.Link(from, to) == nil {
		return nil
	}
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close())
}
