package record

import (
	"fmt"
	"strings"
)

// A path segment is percent-encoded byte by byte: A-Z a-z 0-9 '-' '_' '.' '~'
// stand for themselves, every other byte is '%' and two upper-case hex digits.
// The empty segment is a single '%', so that encoding is total and injective,
// and no segment contains '/'.

const upperHex = "0123456789ABCDEF"

func unreserved(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
		c == '-' || c == '_' || c == '.' || c == '~'
}

// appendSegment appends the encoding of s to b.
func appendSegment(b []byte, s string) []byte {
	if s == "" {
		return append(b, '%')
	}
	for i := 0; i < len(s); i++ {
		if c := s[i]; unreserved(c) {
			b = append(b, c)
		} else {
			b = append(b, '%', upperHex[c>>4], upperHex[c&15])
		}
	}
	return b
}

// parseSegment is the inverse of appendSegment. It refuses what appendSegment
// would have written otherwise, so every name has exactly one key.
func parseSegment(e string) (string, error) {
	if e == "%" {
		return "", nil
	}
	if e == "" {
		return "", fmt.Errorf("empty path segment")
	}
	if !strings.Contains(e, "%") {
		for i := 0; i < len(e); i++ {
			if !unreserved(e[i]) {
				return "", fmt.Errorf("path segment %q: byte %q at %d must be percent-encoded", e, e[i], i)
			}
		}
		return e, nil
	}
	b := make([]byte, 0, len(e))
	for i := 0; i < len(e); i++ {
		c := e[i]
		if c != '%' {
			if !unreserved(c) {
				return "", fmt.Errorf("path segment %q: byte %q at %d must be percent-encoded", e, c, i)
			}
			b = append(b, c)
			continue
		}
		if i+2 >= len(e) {
			return "", fmt.Errorf("path segment %q: escape at %d is cut off", e, i)
		}
		hi, lo := strings.IndexByte(upperHex, e[i+1]), strings.IndexByte(upperHex, e[i+2])
		if hi < 0 || lo < 0 {
			return "", fmt.Errorf("path segment %q: escape %q at %d is not two upper-case hex digits", e, e[i:i+3], i)
		}
		d := byte(hi<<4 | lo)
		if unreserved(d) {
			return "", fmt.Errorf("path segment %q: escape %q at %d stands for %q, which is never escaped", e, e[i:i+3], i, d)
		}
		b = append(b, d)
		i += 2
	}
	return string(b), nil
}

// join builds a key of prefix and the encoded segments.
func join(prefix string, segments ...string) string {
	n := len(prefix) + len(segments)
	for _, s := range segments {
		n += len(s)
	}
	b := append(make([]byte, 0, n+8), prefix...)
	for i, s := range segments {
		if i > 0 {
			b = append(b, '/')
		}
		b = appendSegment(b, s)
	}
	return string(b)
}

// split takes key apart below prefix into exactly len(into) decoded segments.
func split(what, key, prefix string, into ...*string) error {
	rest, ok := strings.CutPrefix(key, prefix)
	if !ok {
		return fmt.Errorf("%s key %q: does not begin with %q", what, key, prefix)
	}
	for i, p := range into {
		segment, tail, more := strings.Cut(rest, "/")
		if more != (i < len(into)-1) {
			return fmt.Errorf("%s key %q: want %d segments below %q", what, key, len(into), prefix)
		}
		s, err := parseSegment(segment)
		if err != nil {
			return fmt.Errorf("%s key %q: %w", what, key, err)
		}
		*p, rest = s, tail
	}
	return nil
}
