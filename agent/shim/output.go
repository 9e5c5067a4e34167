package shim

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// This file keeps the output of a command. A log file is named by the offset of its
// first byte in the whole output, so that a reader knows what it has missed.

const logPrefix = "log."

// output writes the output of a command into files.
type output struct {
	folder Folder
	most   int64 // bytes of a file
	files  int
	file   *os.File
	begin  int64 // offset of the file in the output
	size   int64 // of the file
}

func logName(begin int64) string { return fmt.Sprintf("%s%020d", logPrefix, begin) }

func newOutput(f Folder, most int64, files int) (*output, error) {
	o := &output{folder: f, most: most, files: files}
	return o, o.next()
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (n int, err error) {
	for len(p) > 0 {
		if o.size >= o.most {
			if err := o.next(); err != nil {
				return n, err
			}
		}
		part := p[:min(int64(len(p)), o.most-o.size)]
		k, err := o.file.Write(part)
		n, o.size = n+k, o.size+int64(k)
		if err != nil {
			return n, err
		}
		p = p[k:]
	}
	return n, nil
}

// next begins another file and removes the oldest ones.
func (o *output) next() error {
	if o.file != nil {
		if err := o.file.Close(); err != nil {
			return err
		}
		o.begin += o.size
	}
	file, err := os.OpenFile(o.folder.path(logName(o.begin)), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	o.file, o.size = file, 0
	begins, err := o.folder.logs()
	if err != nil {
		return err
	}
	for i := range max(0, len(begins)-o.files) {
		if err := os.Remove(o.folder.path(logName(begins[i]))); err != nil {
			return err
		}
	}
	return nil
}

// logs are the offsets of the log files, ascending.
func (f Folder) logs() ([]int64, error) {
	entries, err := os.ReadDir(string(f))
	if err != nil {
		return nil, err
	}
	var list []int64
	for _, e := range entries {
		text, ok := strings.CutPrefix(e.Name(), logPrefix)
		if begin, err := strconv.ParseInt(text, 10, 64); ok && err == nil && begin >= 0 {
			list = append(list, begin)
		}
	}
	slices.Sort(list)
	return list, nil
}

// ReadLog reads output from an offset into p. It returns the offset of the first
// byte that was read, which is later than from where older output is gone, and 0
// bytes where there is no more yet.
func (f Folder) ReadLog(from int64, p []byte) (at int64, n int, err error) {
	begins, err := f.logs()
	if err != nil || len(begins) == 0 {
		return from, 0, err
	}
	at = max(from, begins[0])
	for i, begin := range slices.Backward(begins) {
		if at < begin {
			continue
		}
		file, err := os.Open(f.path(logName(begin)))
		if errors.Is(err, fs.ErrNotExist) { // it was the oldest, and is gone
			return f.ReadLog(begin+1, p)
		} else if err != nil {
			return at, 0, err
		}
		n, err = file.ReadAt(p, at-begin)
		file.Close()
		if n == 0 && i+1 < len(begins) && at < begins[i+1] {
			return f.ReadLog(begins[i+1], p)
		}
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return at, n, err
	}
	return at, 0, nil
}

// LogBytes is the size of the log files, in bytes.
func (f Folder) LogBytes() int64 {
	var sum int64
	begins, _ := f.logs()
	for _, begin := range begins {
		if info, err := os.Stat(filepath.Join(string(f), logName(begin))); err == nil {
			sum += info.Size()
		}
	}
	return sum
}
