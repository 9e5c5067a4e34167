package audit

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/musterd/muster/api"
)

// Config bounds the files of refused requests. The zero value of a number is its
// default.
type Config struct {
	Dir      string // made with mode 0700 if need be
	Name     string // begins the names of the files; default "refused"
	MaxBytes int64  // the size at which a file is turned over; default 64 MiB
	Files    int    // kept, with the one that is written; default 16
	// Lost is called for each entry that is in no file.
	Lost func()
	Log  *slog.Logger
}

const (
	defaultMaxBytes = 64 << 20
	defaultFiles    = 16
	// waitingRoom bounds the entries that wait for the disk. Further ones are lost, and
	// counted: no request waits for the disk.
	waitingRoom = 4096
	// suffix ends the names of the files. A name is the time at which the file began,
	// so that names sort by time.
	suffix = ".jsonl"
	// mostLine bounds a line that is read back, in bytes.
	mostLine = 64 << 10
)

// Files is an open series of files, one JSON document a line. A file that another
// process has left may end in the middle of a line: it is never appended to, and a line
// that cannot be read is passed over.
type Files struct {
	config  Config
	entries chan *api.AuditEntry
	quit    chan struct{}
	wg      sync.WaitGroup

	// Of the writer.
	file   *os.File
	out    *bufio.Writer
	size   int64
	failed bool // the last write has failed, which was logged
}

// OpenFiles makes the folder, hands the entries of earlier files to earlier, the oldest
// first, and starts the writer.
func OpenFiles(c Config, earlier func(*api.AuditEntry)) (*Files, error) {
	if c.MaxBytes == 0 {
		c.MaxBytes = defaultMaxBytes
	}
	if c.Files == 0 {
		c.Files = defaultFiles
	}
	if c.Name == "" {
		c.Name = "refused"
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.MaxBytes < 0 || c.Files < 1 {
		return nil, fmt.Errorf("audit: maxBytes %d, files %d: want positive numbers", c.MaxBytes, c.Files)
	}
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("audit: dir: %w", err)
	}
	f := &Files{config: c, entries: make(chan *api.AuditEntry, waitingRoom), quit: make(chan struct{})}
	names, err := f.names()
	if err != nil {
		return nil, fmt.Errorf("audit: dir: %w", err)
	}
	if n := len(names); n > 0 { // the newest file has the entries that somebody may ask for
		readFile(filepath.Join(c.Dir, names[n-1]), earlier)
	}
	f.wg.Go(f.run)
	return f, nil
}

// Append takes an entry. It does not block.
func (f *Files) Append(e *api.AuditEntry) {
	select {
	case f.entries <- e:
	default:
		f.lost()
	}
}

func (f *Files) lost() {
	if f.config.Lost != nil {
		f.config.Lost()
	}
}

// Close writes the entries that wait, and ends the writer. It is called once, after the
// last Append.
func (f *Files) Close() error {
	close(f.quit)
	f.wg.Wait()
	if f.file == nil {
		return nil
	}
	err := f.out.Flush()
	if closed := f.file.Close(); err == nil {
		err = closed
	}
	return err
}

func (f *Files) run() {
	for {
		select {
		case e := <-f.entries:
			f.write(e)
		case <-f.quit:
			for len(f.entries) > 0 {
				f.write(<-f.entries)
			}
			return
		}
		if len(f.entries) == 0 && f.out != nil {
			f.note(f.out.Flush())
		}
	}
}

// write appends an entry to the present file, or to a new one.
func (f *Files) write(e *api.AuditEntry) {
	line, err := json.Marshal(e)
	if err == nil && (f.file == nil || f.size+int64(len(line)) >= f.config.MaxBytes) {
		err = f.turn()
	}
	if err == nil {
		var n int
		n, err = f.out.Write(append(line, '\n'))
		f.size += int64(n)
	}
	f.note(err)
	if err != nil {
		f.lost()
	}
}

// note logs the first of several failures. A file that has failed is left: what follows
// begins a new one.
func (f *Files) note(err error) {
	switch {
	case err == nil:
		f.failed = false
		return
	case !f.failed:
		f.config.Log.Error("audit_not_written", "dir", f.config.Dir, "error", err)
	}
	f.failed = true
	if f.file != nil {
		_ = f.file.Close()
		f.file, f.out = nil, nil
	}
}

// turn begins a new file, and removes the oldest ones.
func (f *Files) turn() error {
	if f.file != nil {
		err := f.out.Flush()
		if closed := f.file.Close(); err == nil {
			err = closed
		}
		f.file, f.out = nil, nil
		if err != nil {
			return err
		}
	}
	names, err := f.names()
	if err != nil {
		return err
	}
	for len(names) >= f.config.Files {
		if err := os.Remove(filepath.Join(f.config.Dir, names[0])); err != nil {
			return err
		}
		names = names[1:]
	}
	file, err := os.OpenFile(filepath.Join(f.config.Dir, fmt.Sprintf("%s-%020d%s", f.config.Name, time.Now().UnixNano(), suffix)), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	f.file, f.out, f.size = file, bufio.NewWriterSize(file, 64<<10), 0
	return nil
}

// names are the files of the folder, the oldest first.
func (f *Files) names() ([]string, error) {
	found, err := os.ReadDir(f.config.Dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, one := range found {
		if name := one.Name(); strings.HasPrefix(name, f.config.Name+"-") && strings.HasSuffix(name, suffix) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// readFile hands the entries of a file on. Lines that cannot be read are passed over.
func readFile(name string, take func(*api.AuditEntry)) {
	file, err := os.Open(name)
	if err != nil {
		return // it was removed: nothing is left of it to be shown
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewReaderSize(file, mostLine)
	for {
		line, err := lines.ReadSlice('\n')
		if e := ReadLine(line); e != nil {
			take(e)
		}
		if err != nil && err != bufio.ErrBufferFull {
			return
		}
	}
}

// ReadLine reads a line of a file; nil for a line that is no entry, such as one whose
// end was lost with a process.
func ReadLine(line []byte) *api.AuditEntry {
	e := new(api.AuditEntry)
	d := json.NewDecoder(bytes.NewReader(line))
	if len(line) == 0 || line[len(line)-1] != '\n' || d.Decode(e) != nil || e.ID == "" || e.Result != api.AuditRefused {
		return nil
	}
	return e
}
