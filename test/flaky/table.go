package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// The kinds of packages.
const (
	waits    = "real"     // has tests with real clocks, sockets, files or processes
	computes = "computes" // has none
)

// row is the last count of a package.
type row struct {
	Package  string // folder
	Commit   string
	Date     string
	Files    string // hash of the package's folder
	Kind     string
	Runs     int // beside the one on one core
	Loops    int // busy loops beside the runs
	Failures int // runs that failed
	Failed   []string
}

// head is the first line of the table.
const head = "package\tcommit\tdate\tfiles\tkind\truns\tloops\tfailures\tfailed tests"

func tablePath(root string) string { return filepath.Join(root, "test", "flaky", "table.tsv") }

// covers reports whether the row makes a count of these runs needless.
func (r *row) covers(next *row) bool {
	return r.Failures == 0 && r.Files == next.Files && r.Kind == next.Kind && r.Runs >= next.Runs && r.Loops >= next.Loops
}

func (r *row) String() string {
	return strings.Join([]string{
		r.Package, r.Commit, r.Date, r.Files, r.Kind, strconv.Itoa(r.Runs), strconv.Itoa(r.Loops), strconv.Itoa(r.Failures), strings.Join(r.Failed, " "),
	}, "\t")
}

// readTable reads the rows by package; a table that is not there has none.
func readTable(path string) (map[string]row, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]row{}, nil
	}
	if err != nil {
		return nil, err
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if lines[0] != head {
		return nil, fmt.Errorf("%s: the first line is %q, want %q", path, lines[0], head)
	}
	rows := map[string]row{}
	for i, line := range lines[1:] {
		cells := strings.Split(line, "\t")
		if len(cells) != strings.Count(head, "\t")+1 {
			return nil, fmt.Errorf("%s:%d: %d cells", path, i+2, len(cells))
		}
		r := row{Package: cells[0], Commit: cells[1], Date: cells[2], Files: cells[3], Kind: cells[4], Failed: strings.Fields(cells[8])}
		for at, number := range map[int]*int{5: &r.Runs, 6: &r.Loops, 7: &r.Failures} {
			if *number, err = strconv.Atoi(cells[at]); err != nil {
				return nil, fmt.Errorf("%s:%d: %w", path, i+2, err)
			}
		}
		rows[r.Package] = r
	}
	return rows, nil
}

// writeRow replaces the row of a package. Several programs may write at once.
func writeRow(path string, r *row) error {
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer folder.Close() // ends the lock
	if err := syscall.Flock(int(folder.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("lock %s: %w", folder.Name(), err)
	}
	rows, err := readTable(path)
	if err != nil {
		return err
	}
	rows[r.Package] = *r
	text := head + "\n"
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		one := rows[name]
		text += one.String() + "\n"
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

// hashOf is a hash of the files of a package: its folder, with the folders of data below
// it, and without those of other packages.
func hashOf(folder string) (string, error) {
	sum := sha256.New()
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != folder && isPackage(path):
			return fs.SkipDir
		case !d.Type().IsRegular() || path == tablePath(filepath.Dir(filepath.Dir(folder))):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		fmt.Fprintf(sum, "%s %d\n", filepath.ToSlash(name), len(text))
		sum.Write(text)
		return nil
	})
	return fmt.Sprintf("%x", sum.Sum(nil)[:6]), err
}

// isPackage reports whether a folder holds a package of its own.
func isPackage(folder string) bool {
	found, err := filepath.Glob(filepath.Join(folder, "*.go"))
	return err == nil && len(found) > 0 && filepath.Base(filepath.Dir(folder)) != "testdata"
}
