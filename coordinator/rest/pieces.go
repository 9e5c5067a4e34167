package rest

import "sync"

// pieces are the bytes of an answer in equal parts, which are used again for
// later answers: lists do not grow and copy one large buffer each. The zero
// value is empty.
type pieces struct {
	parts []*part
	size  int
}

type part struct {
	used  int
	bytes [piece]byte
}

var parts = sync.Pool{New: func() any { return new(part) }}

// Write appends b. It never fails.
func (p *pieces) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 {
		if len(p.parts) == 0 || p.parts[len(p.parts)-1].used == piece {
			next, _ := parts.Get().(*part)
			next.used = 0
			p.parts = append(p.parts, next)
		}
		last := p.parts[len(p.parts)-1]
		copied := copy(last.bytes[last.used:], b)
		last.used += copied
		b = b[copied:]
	}
	p.size += n
	return n, nil
}

// held is the memory of all parts, in bytes.
func (p *pieces) held() int64 { return int64(len(p.parts)) * piece }

// each calls f with the bytes of each part, in order, and gives each part back
// after its call. It stops at the first error; p is empty after it.
func (p *pieces) each(f func([]byte) error) (err error) {
	for _, one := range p.parts {
		if err == nil {
			err = f(one.bytes[:one.used])
		}
		parts.Put(one)
	}
	p.parts, p.size = nil, 0
	return err
}

// drop gives all parts back.
func (p *pieces) drop() { _ = p.each(func([]byte) error { return nil }) }
