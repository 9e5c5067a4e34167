package journal

import (
	"bytes"
	"errors"
	"testing"
)

// FuzzParse: no bytes make the parser panic; accepted bytes encode back to
// themselves.
func FuzzParse(f *testing.F) {
	data, boundaries, _ := file(f)
	f.Add(data)
	f.Add(append(append([]byte(nil), data...), make([]byte, 50)...))
	f.Add(data[:boundaries[3]+5])
	f.Add(data[:headerSize])
	f.Add([]byte(magic))
	old := header{version: 1, counter: 7, base: 40}
	f.Add(appendRecord(old.encode(), old.seed(), 41, []byte("of version 1")))
	truncated := header{version: version, counter: 7, base: 40, size: 4096}
	f.Add(appendRecord(truncated.encode(), truncated.seed(), 41, []byte("truncated")))
	f.Fuzz(func(t *testing.T, b []byte) {
		img, err := parse(b)
		if err != nil {
			var corrupt *CorruptError
			if !errors.As(err, &corrupt) || corrupt.Offset < 0 || corrupt.Offset > int64(len(b)) {
				t.Fatalf("error %v for %d bytes", err, len(b))
			}
			return
		}
		encoded := img.header.encode()
		for i, p := range img.payloads {
			encoded = appendRecord(encoded, img.header.seed(), img.header.base+uint64(i)+1, p)
		}
		if len(encoded) != img.end || !bytes.Equal(encoded, b[:img.end]) {
			t.Fatalf("%d records encode to %d bytes, read from %d", len(img.payloads), len(encoded), img.end)
		}
		if want := max(0, int64(img.header.size)-int64(len(b))); img.short != want {
			t.Fatalf("short of %d bytes, want %d", img.short, want)
		}
		if img.torn == allZero(b[img.end:]) {
			t.Fatalf("torn %v with the rest zero %v", img.torn, allZero(b[img.end:]))
		}
	})
}
