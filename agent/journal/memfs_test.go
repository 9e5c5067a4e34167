package journal

import (
	"io"
	"io/fs"
	"math/rand/v2"
	"sync"

	"golang.org/x/sys/unix"
)

// memFS is a folder in memory that knows which bytes are durable and fails on
// demand.
type memFS struct {
	mu      sync.Mutex
	names   map[string]*memBytes
	durable map[string]*memBytes // as of the last SyncDir
	room    int64                // bytes that may still be allocated, -1 = any
	fail    map[string]error     // by operation: open, write, sync, allocate, rename, syncdir
	short   int                  // with fail["write"]: bytes written before the failure
}

type memBytes struct{ now, durable []byte }

func newMemFS() *memFS {
	return &memFS{names: map[string]*memBytes{}, durable: map[string]*memBytes{}, room: -1, fail: map[string]error{}}
}

func (m *memFS) Open(name string, create bool) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.fail["open"]; err != nil {
		return nil, err
	}
	b, ok := m.names[name]
	switch {
	case create:
		if ok && m.room >= 0 {
			m.room += int64(len(b.now))
		}
		b = &memBytes{}
		m.names[name] = b
	case !ok:
		return nil, fs.ErrNotExist
	}
	return &memFile{m, b}, nil
}

func (m *memFS) Rename(from, to string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.fail["rename"]; err != nil {
		return err
	}
	m.names[to] = m.names[from]
	delete(m.names, from)
	return nil
}

func (m *memFS) SyncDir() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.fail["syncdir"]; err != nil {
		return err
	}
	clear(m.durable)
	for n, b := range m.names {
		m.durable[n] = b
	}
	return nil
}

// crash returns the files after a power cut: of each file any mixture of its
// durable and its present pages, under the durable names.
func (m *memFS) crash(r *rand.Rand) *memFS {
	m.mu.Lock()
	defer m.mu.Unlock()
	after := newMemFS()
	for name, b := range m.durable {
		content := append([]byte(nil), b.now...)
		for at := 0; at < len(content); at += pageSize {
			if r.IntN(2) == 0 {
				continue
			}
			page := content[at:min(at+pageSize, len(content))]
			clear(page)
			if at < len(b.durable) {
				copy(page, b.durable[at:])
			}
		}
		after.names[name] = &memBytes{now: content, durable: append([]byte(nil), content...)}
		after.durable[name] = after.names[name]
	}
	return after
}

type memFile struct {
	fs *memFS
	b  *memBytes
}

func (f *memFile) ReadAt(p []byte, off int64) (int, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if off >= int64(len(f.b.now)) {
		return 0, io.EOF
	}
	n := copy(p, f.b.now[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *memFile) WriteAt(p []byte, off int64) (int, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	var err error
	if err = f.fs.fail["write"]; err != nil {
		p = p[:min(f.fs.short, len(p))]
	}
	if grow := off + int64(len(p)) - int64(len(f.b.now)); grow > 0 {
		if err := f.grow(grow); err != nil {
			return 0, err
		}
	}
	return copy(f.b.now[off:], p), err
}

func (f *memFile) grow(n int64) error {
	if f.fs.room >= 0 {
		if n > f.fs.room {
			return unix.ENOSPC
		}
		f.fs.room -= n
	}
	f.b.now = append(f.b.now, make([]byte, n)...)
	return nil
}

func (f *memFile) Size() (int64, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	return int64(len(f.b.now)), nil
}

func (f *memFile) Sync() error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if err := f.fs.fail["sync"]; err != nil {
		return err
	}
	f.b.durable = append(f.b.durable[:0], f.b.now...)
	return nil
}

func (f *memFile) Allocate(end int64) error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if err := f.fs.fail["allocate"]; err != nil {
		return err
	}
	if n := end - int64(len(f.b.now)); n > 0 {
		return f.grow(n)
	}
	return nil
}

func (f *memFile) Close() error { return nil }
