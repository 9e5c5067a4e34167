package rig

import (
	"errors"
	"io"
	"io/fs"
	"sync"

	"github.com/musterd/muster/agent/journal"
)

// disk is the folder of one host's journal, in memory. It outlives the
// processes that write it and knows what is durable.
type disk struct {
	mu      sync.Mutex
	names   map[string]*content
	durable map[string]*content // as of the last sync of the folder
}

type content struct {
	name         string
	now, durable []byte
}

func newDisk() *disk { return &disk{names: map[string]*content{}, durable: map[string]*content{}} }

// lose is what a power cut leaves: what was synced, under the names that were.
func (d *disk) lose() {
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.names)
	for name, c := range d.durable {
		c.now = append([]byte(nil), c.durable...)
		d.names[name] = c
	}
}

// journalName is the journal's file; any other is on its way to become it.
const journalName = "journal"

// mount is the disk as one process sees it, which stops there with the process:
// from then on nothing changes, whatever is answered.
type mount struct {
	*disk
	agent *Agent
	proc  *process
}

// do carries out one operation between the two sides of its step.
func (m mount) do(step string, act func()) error {
	if err := m.agent.cluster.at(Step{Name: step, Node: m.agent.Node}); err != nil {
		return err
	}
	if !m.proc.pass() {
		return nil
	}
	m.mu.Lock()
	act()
	m.mu.Unlock()
	if err := m.agent.cluster.at(Step{Name: step, After: true, Node: m.agent.Node}); err != nil {
		return err
	}
	m.proc.pass()
	return nil
}

// Open implements journal.FS.
func (m mount) Open(name string, create bool) (journal.File, error) {
	if !create {
		m.mu.Lock()
		defer m.mu.Unlock()
		c := m.names[name]
		if c == nil {
			return nil, fs.ErrNotExist
		}
		return file{m, c}, nil
	}
	c := &content{name: name}
	err := m.do("journal create", func() { m.names[name] = c })
	return file{m, c}, err
}

// Rename implements journal.FS.
func (m mount) Rename(from, to string) error {
	return m.do("journal rename", func() {
		m.names[to] = m.names[from]
		m.names[to].name = to
		delete(m.names, from)
	})
}

// SyncDir implements journal.FS.
func (m mount) SyncDir() error {
	return m.do("journal sync folder", func() {
		clear(m.durable)
		for name, c := range m.names {
			m.durable[name] = c
		}
	})
}

// file is one open file.
type file struct {
	mount
	*content
}

// ReadAt implements io.ReaderAt.
func (f file) ReadAt(p []byte, off int64) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if off >= int64(len(f.now)) {
		return 0, io.EOF
	}
	n := copy(p, f.now[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// WriteAt implements io.WriterAt.
func (f file) WriteAt(p []byte, off int64) (int, error) {
	f.mu.Lock()
	step := "journal append"
	switch {
	case f.name != journalName:
		step = "journal fill"
	case off == 0:
		step = "journal mark"
	}
	f.mu.Unlock()
	err := f.do(step, func() { f.write(p, off) })
	if errors.Is(err, ErrTorn) {
		f.mu.Lock()
		f.write(p[:len(p)/2], off)
		f.mu.Unlock()
	}
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

// Allocate implements journal.File.
func (f file) Allocate(end int64) error {
	return f.do("journal allocate", func() { f.grow(end) })
}

// write is called with mu held.
func (f file) write(p []byte, off int64) {
	f.grow(off + int64(len(p)))
	copy(f.now[off:], p)
}

// grow is called with mu held.
func (f file) grow(end int64) {
	if more := end - int64(len(f.now)); more > 0 {
		f.now = append(f.now, make([]byte, more)...)
	}
}

// Size implements journal.File.
func (f file) Size() (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return int64(len(f.now)), nil
}

// Sync implements journal.File.
func (f file) Sync() error {
	return f.do("journal sync", func() { f.durable = append(f.durable[:0], f.now...) })
}

// Close implements io.Closer.
func (file) Close() error { return nil }
