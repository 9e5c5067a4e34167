package rest

import (
	"sync"
	"syscall"
)

// pieces are the bytes of an answer in equal parts, which are used again for
// later answers: lists do not grow and copy one large buffer each. The zero
// value is empty.
type pieces struct {
	parts []*part
	size  int
}

type part struct {
	bytes []byte // of the capacity piece
	arena bool
}

// arena is the memory of maxAnswers bytes of parts. It is outside of the
// collector's heap, which may grow to several times the memory in use: a byte
// that waits for a slow reader takes one byte.
var arena = struct {
	begin sync.Once
	mu    sync.Mutex
	free  []*part
}{}

// newPart takes a part from the arena, and from the heap where the arena is
// used up, which the room of answers does not allow for long.
func newPart() *part {
	arena.begin.Do(func() {
		memory, err := syscall.Mmap(-1, 0, maxAnswers, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
		if err != nil {
			return // all parts are of the heap
		}
		for at := maxAnswers - piece; at >= 0; at -= piece {
			arena.free = append(arena.free, &part{bytes: memory[at : at : at+piece], arena: true})
		}
	})
	arena.mu.Lock()
	defer arena.mu.Unlock()
	last := len(arena.free) - 1
	if last < 0 {
		return &part{bytes: make([]byte, 0, piece)}
	}
	p := arena.free[last]
	arena.free = arena.free[:last]
	return p
}

// drop gives a part back. Its bytes are not used after it.
func (p *part) drop() {
	if !p.arena {
		return
	}
	p.bytes = p.bytes[:0]
	arena.mu.Lock()
	defer arena.mu.Unlock()
	arena.free = append(arena.free, p)
}

// Write appends b. It never fails.
func (p *pieces) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 {
		if len(p.parts) == 0 || len(p.parts[len(p.parts)-1].bytes) == piece {
			p.parts = append(p.parts, newPart())
		}
		last := p.parts[len(p.parts)-1]
		fits := min(piece-len(last.bytes), len(b))
		last.bytes = append(last.bytes, b[:fits]...)
		b = b[fits:]
	}
	p.size += n
	return n, nil
}

// held is the memory of all parts, in bytes.
func (p *pieces) held() int64 { return int64(len(p.parts)) * piece }

// each calls f with the bytes of each part, in order, and gives each part back
// after its call; f keeps none. It stops at the first error; p is empty after it.
func (p *pieces) each(f func([]byte) error) (err error) {
	for _, one := range p.parts {
		if err == nil {
			err = f(one.bytes)
		}
		one.drop()
	}
	p.parts, p.size = nil, 0
	return err
}

// drop gives all parts back.
func (p *pieces) drop() { _ = p.each(func([]byte) error { return nil }) }
