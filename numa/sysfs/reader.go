package sysfs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/musterd/muster/resource/bitset"
)

// Bounds of the files that are read from a tree. The kernel's own are lower or equal:
// NR_CPUS is at most 8192 and MAX_NUMNODES at most 1024 on every port.
const (
	maxFileBytes  = 64 << 10
	maxTotalBytes = 64 << 20
	maxCPU        = 8191
	maxNode       = 1023
	maxWarnings   = 200
	// maxEntries bounds one folder: all CPUs and some more.
	maxEntries = maxCPU + 1 + 256
)

var (
	errNotRegular = errors.New("not a regular file")
	errNotFolder  = errors.New("not a folder")
	errTooLong    = fmt.Errorf("longer than %d bytes", maxFileBytes)
	errNotText    = errors.New("not UTF-8 text")
	errBudget     = errors.New("not read: the tree is too large")
)

// reader reads small text files and collects faults. One call of an exported
// function owns it.
type reader struct {
	fsys     fs.FS
	unread   int // bytes that may still be read
	warnings []Warning
	unshown  int // warnings beyond maxWarnings
	over     bool
}

func newReader(fsys fs.FS) *reader { return &reader{fsys: fsys, unread: maxTotalBytes} }

func (r *reader) exhausted() bool { return r.over }

func (r *reader) warn(path, format string, args ...any) {
	if len(r.warnings) == maxWarnings {
		r.unshown++
		return
	}
	r.warnings = append(r.warnings, Warning{Path: path, Problem: fmt.Sprintf(format, args...)})
}

// faults returns the warnings, with one more that counts those left out.
func (r *reader) faults() []Warning {
	if r.unshown == 0 {
		return r.warnings
	}
	return append(r.warnings[:maxWarnings:maxWarnings], Warning{Path: "sys", Problem: fmt.Sprintf("%d more faults are not shown", r.unshown)})
}

// text returns a file's content without surrounding white space and without
// the NUL that kernels before 2.6.38 left behind the newline of node lists. It
// gives no warning: the error describes the fault, without the path.
func (r *reader) text(path string) (string, error) {
	text, cut, err := r.head(path)
	if err == nil && cut {
		return "", errTooLong
	}
	return text, err
}

// head does as text for the first maxFileBytes of a file; cut reports that
// there is more.
func (r *reader) head(path string) (text string, cut bool, err error) {
	if r.over {
		return "", false, errBudget
	}
	// Opening a FIFO would block, and a device could be endless.
	info, err := fs.Stat(r.fsys, path)
	if err != nil {
		return "", false, cause(err)
	}
	if !info.Mode().IsRegular() {
		return "", false, errNotRegular
	}
	f, err := r.fsys.Open(path)
	if err != nil {
		return "", false, cause(err)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	err = errors.Join(err, f.Close())
	if r.unread -= len(data); r.unread < 0 {
		r.over = true
		return "", false, errBudget
	}
	if err != nil {
		return "", false, cause(err)
	}
	if cut = len(data) > maxFileBytes; cut {
		data = data[:bytes.LastIndexByte(data[:maxFileBytes], '\n')+1]
	}
	if !utf8.Valid(data) {
		return "", cut, errNotText
	}
	return strings.TrimSpace(strings.TrimRight(string(data), "\x00")), cut, nil
}

// list reads a file in the kernel's list format; members above limit are left
// out and warned about.
func (r *reader) list(path string, limit int) (bitset.Set, error) {
	text, err := r.text(path)
	if err != nil {
		return bitset.Set{}, err
	}
	return r.bounded(path, limit)(parseList(text, limit))
}

// mask reads a file of hexadecimal words, most significant first, as list does.
func (r *reader) mask(path string, limit int) (bitset.Set, error) {
	text, err := r.text(path)
	if err != nil {
		return bitset.Set{}, err
	}
	return r.bounded(path, limit)(parseMask(text, limit))
}

func (r *reader) bounded(path string, limit int) func(bitset.Set, bool, error) (bitset.Set, error) {
	return func(s bitset.Set, beyond bool, err error) (bitset.Set, error) {
		if beyond {
			r.warn(path, "names members above %d; they are ignored", limit)
		}
		return s, err
	}
}

// number reads a decimal number of at least -1, which the kernel prints where
// it does not know one.
func (r *reader) number(path string) (int, error) {
	text, err := r.text(path)
	if err != nil {
		return 0, err
	}
	return parseNumber(text)
}

// folders returns the numbers of the entries prefix0, prefix1, … of a folder.
func (r *reader) folders(dir, prefix string, limit int) (bitset.Set, error) {
	var s bitset.Set
	names, err := r.names(dir)
	for _, name := range names {
		digits, ok := strings.CutPrefix(name, prefix)
		if n, err := strconv.ParseUint(digits, 10, 16); ok && err == nil && digits == strconv.FormatUint(n, 10) {
			if int(n) > limit {
				r.warn(dir+"/"+name, "its number is above %d; it is ignored", limit)
				continue
			}
			s.Add(int(n))
		}
	}
	return s, err
}

// names lists a folder, at most maxEntries of it.
func (r *reader) names(dir string) ([]string, error) {
	if r.over {
		return nil, errBudget
	}
	info, err := fs.Stat(r.fsys, dir)
	if err != nil {
		return nil, cause(err)
	}
	if !info.IsDir() {
		return nil, errNotFolder
	}
	f, err := r.fsys.Open(dir)
	if err != nil {
		return nil, cause(err)
	}
	folder, ok := f.(fs.ReadDirFile)
	if !ok {
		return nil, errors.Join(errNotFolder, f.Close())
	}
	entries, err := folder.ReadDir(maxEntries)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if len(entries) == maxEntries {
		r.warn(dir, "has %d entries or more; the rest is ignored", maxEntries)
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, cause(errors.Join(err, folder.Close()))
}

// cause strips the path, which a Warning carries already.
func cause(err error) error {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err
	}
	return err
}

func absent(err error) bool { return errors.Is(err, fs.ErrNotExist) }
